"""The toy batch: vectors to type in, and every matrix up to the loss."""

from __future__ import annotations

from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.render_qt.shaded_table import ShadedTableCard
from explorer.views.losslab.panel import LabPanel
from explorer.views.view import hairline
from trainer.charts.lab import Panel
from trainer.charts.lab.pieces import LabChart

MOST_PX = 1240
TEMPERATURE = (
    "The same softmax for two classes. A high temperature flattens the shares, a low one sharpens them until the "
    "larger score takes everything; τ = 1 leaves the scores as they are."
)


class ToyPanel(LabPanel):
    """Three rows: what goes in and the logits, the two softmaxes and the loss, the temperature of two classes."""

    def __init__(self, panel: Panel, parent: QWidget | None = None) -> None:
        super().__init__(panel, parent)
        parts, classes = ("1", "2", "3"), ("class 1", "class 2")
        names = {letter: tuple(f"{letter}{sub}" for sub in "₁₂₃₄") for letter in "ITx"}
        image = self.new_cells("image", rows=names["I"][:3], columns=parts)
        text = self.new_cells("text", rows=names["T"][:3], columns=parts)
        scores = self.new_cells("scores", rows=names["x"], columns=classes)
        self.matrices = {
            key: ShadedTableCard(f"lab-toy-{key}") for key in ("logits", "to_text", "to_image", "two_classes")
        }
        self.formula = QLabel(wordWrap=True, objectName="lab-toy-formula")
        about = QLabel(TEMPERATURE, wordWrap=True)
        theme.set_role(about, "secondary")
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.AROUND + theme.INSIDE)
        grid.setVerticalSpacing(theme.BETWEEN)
        m = self.matrices
        rows = ((image, text, m["logits"]), (m["to_text"], m["to_image"], _top(self.formula)))
        rows = (*rows, (scores, m["two_classes"], _top(about)))
        for line, row in enumerate(rows):
            if line:
                grid.addWidget(hairline(), 2 * line - 1, 0, 1, 3)
            for column, widget in enumerate(row):
                grid.addWidget(widget, 2 * line, column)
        for column in range(3):
            grid.setColumnStretch(column, 1)
        inside = QWidget(maximumWidth=MOST_PX)
        inside.setLayout(grid)
        grid.setContentsMargins(0, 0, 0, 0)
        self.content.addWidget(inside, 0, 0, 1, 2)
        self.content.setRowStretch(1, 1)

    def show_chart(self, chart: LabChart) -> None:
        super().show_chart(chart)
        total, to_text, to_image = (fact.text for fact in chart.facts[:3])
        self.formula.setText(
            "−ln p of each match, averaged over the images and over the texts; the loss is the mean of both:\n\n"
            f"½ ({to_text} + {to_image}) = {total}"
        )

    def _build_tables(self, chart: LabChart) -> None:
        """All are there: the inputs are boxes."""


def _top(label: QLabel) -> QWidget:
    """The label at the top of its place, in line with the titles beside it."""
    holder = QWidget()
    column = QVBoxLayout(holder)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(label)
    column.addStretch()
    return holder
