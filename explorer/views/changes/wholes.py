"""How alike whole snapshots are: a matrix over runs, steps and modalities."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.empty_state import EmptyState
from explorer.widgets.heat_map import HeatMapWidget
from trainer.charts.likeness import LIKENESSES, Likeness, Space


class Wholes(QWidget):
    """The heat map with a choice of measure.

    Signals:
        chosen: Two snapshots, as (run, step) each, that the person wants to see as A and B.
    """

    chosen = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="changes-wholes")
        self.likeness: Likeness | None = None
        self.map = HeatMapWidget(name="changes-matrix", words="Likeness of snapshots")
        self.note, self.cell = QLabel(), QLabel()
        for label in (self.note, self.cell):
            label.setTextFormat(Qt.TextFormat.PlainText)
            theme.set_role(label, "small")
        self.empty = EmptyState()
        self.measures = QButtonGroup(self)
        self._lay_out()
        self.map.pointed.connect(self._tell_cell)
        self.map.chosen.connect(self._choose)
        self.measures.buttonClicked.connect(lambda _button: self._draw())
        self.show_problem("")

    @property
    def measure(self) -> str:
        """`cka`, `rsa` or `neighbors`."""
        return self.measures.checkedButton().objectName().rpartition("-")[2]

    def show_likeness(self, found: Likeness) -> None:
        """Draws the matrix."""
        self.likeness = found
        self.note.setText(found.note)
        self.empty.hide()
        self.map.show()
        self._draw()

    def show_problem(self, words: str) -> None:
        """Says why there is no matrix."""
        self.likeness = None
        self.map.hide()
        self.note.setText("")
        self.cell.setText("")
        title = "No matrix" if words else "Comparing snapshots"
        self.empty.tell("grid-2x2", title, words or "Every snapshot is compared with every other.")
        self.empty.show()

    def _draw(self) -> None:
        found = self.likeness
        if found is None:
            return
        groups = [hash((space.run, space.modality)) for space in found.spaces]
        self.map.show_matrix(short_names(found.spaces), found.matrices[self.measure], groups=groups)
        self._tell_cell(-1, -1)

    def _tell_cell(self, line: int, column: int) -> None:
        if self.likeness is None or line < 0:
            self.cell.setText("Click a cell to see its two snapshots as A and B")
            return
        value = self.likeness.matrices[self.measure][line, column]
        first, second = self.likeness.spaces[column], self.likeness.spaces[line]
        self.cell.setText(f"{first.words}  ↔  {second.words}: {LIKENESSES[self.measure]} {value:.3f}")

    def _choose(self, line: int, column: int) -> None:
        first, second = sorted((column, line))
        spaces = self.likeness.spaces
        self.chosen.emit(*((s.run, s.step) for s in (spaces[first], spaces[second])))

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(theme.SPACE)
        for key, words in LIKENESSES.items():
            button = QPushButton(words, objectName=f"changes-measure-{key}", checkable=True, checked=key == "cka")
            self.measures.addButton(button)
            bar.addWidget(button)
        bar.addSpacing(theme.INSIDE)
        bar.addWidget(self.cell, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.INSIDE, 0, 0)
        column.setSpacing(theme.INSIDE)
        column.addLayout(bar)
        column.addWidget(self.map, 1)
        column.addWidget(self.empty, 1)
        column.addWidget(self.note)


def short_names(spaces: Sequence[Space]) -> list[str]:
    """Names that fit upright: of two runs A and B instead of their names, of one run the step and modality only."""
    runs = list(dict.fromkeys(space.run for space in spaces))
    if len(runs) > 2:
        return [space.words for space in spaces]
    letters = {run: f"{letter} · " if len(runs) > 1 else "" for run, letter in zip(runs, "AB", strict=False)}
    return [f"{letters[space.run]}{space.step:,} · {space.modality}s" for space in spaces]
