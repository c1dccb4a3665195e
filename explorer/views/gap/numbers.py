"""The numbers beside the slider: as trained, and with the gap closed as far as the slider says."""

from __future__ import annotations

import math
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.combo_boxes import Badge
from trainer.charts.gap import PUBLISHED, SOURCE, GapPoint

ROWS: Final = (
    ("gap", "Gap", 4),
    ("loss", "Loss", 4),
    ("image_to_text", "R@1 image → text", 3),
    ("text_to_image", "R@1 text → image", 3),
    ("matched", "Matched cosine", 3),
    ("n", "n pairs", 0),
)
HEADS: Final = ("open", "now")


class GapNumbers(QFrame):
    """A row a measure; for each run the value as trained and the value now. Losses are never subtracted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="gap-numbers", accessibleName="Numbers of both runs")
        self._cells: dict[tuple[str, int, str], QLabel] = {}
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(theme.BETWEEN)
        grid.setVerticalSpacing(theme.INSIDE)
        grid.setColumnStretch(0, 1)
        right = Qt.AlignmentFlag.AlignRight
        for index in (0, 1):
            grid.addWidget(Badge("AB"[index], index), 0, 1 + 2 * index, 1, 2, right)
            for place, head in enumerate(HEADS):
                grid.addWidget(_label(head, "small"), 1, 1 + 2 * index + place, right)
        for row, (name, words, _) in enumerate(ROWS, start=2):
            grid.addWidget(_label(words, ""), row, 0)
            for index in (0, 1):
                for place, head in enumerate(HEADS):
                    cell = _label("–", "strong" if head == "now" else "secondary")
                    self._cells[name, index, head] = cell
                    grid.addWidget(cell, row, 1 + 2 * index + place, right)
        self.objectives = _label("", "small")
        self.objectives.setWordWrap(True)
        published = "\n".join(f"{p.what}: gap {p.gap:.4f}, loss {p.loss:.4f}" for p in PUBLISHED)
        self.published = _label(f"For comparison\n{published}\n{SOURCE}", "small")
        self.published.setWordWrap(True)
        self.published.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.BETWEEN)
        column.addLayout(grid)
        column.addWidget(self.objectives)
        column.addWidget(self.published)

    def show_point(self, index: int, head: str, point: GapPoint | None) -> None:
        """Shows a run's numbers `open` or `now`; dashes without any."""
        for name, _, digits in ROWS:
            value = None if point is None else getattr(point, name)
            bad = value is None or (isinstance(value, float) and math.isnan(value))
            self._cells[name, index, head].setText("–" if bad else f"{value:,.{digits}f}".replace("-", "−"))

    def text(self, name: str, index: int, head: str) -> str:
        """What a cell says."""
        return self._cells[name, index, head].text()


def _label(words: str, role: str) -> QLabel:
    label = QLabel(words)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if role:
        theme.set_role(label, role)
    return label
