"""The numbers beside the histograms: A, B, and their difference where it means something."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QWidget

from explorer import theme
from explorer.widgets.pickers import Badge
from trainer.charts.similarity import SimilarityRun


@dataclass(frozen=True)
class Measure:
    """One row: its words, how it is read off a run, digits, and whether two runs may be compared by it."""

    words: str
    hint: str
    read: Callable[[SimilarityRun], float]
    digits: int = 3
    comparable: bool = True


MEASURES: Final = (
    Measure("AUC", "Chance that a matched cosine exceeds an unmatched one; 0.5 is chance.", lambda r: r.auc),
    Measure("d′", "Difference of the means in pooled standard deviations.", lambda r: r.d_prime, 2),
    Measure("Overlap", "Area shared by both histograms, 0 to 1; less is better.", lambda r: r.overlap),
    Measure("R@1", "Share of images whose own text is the most similar one.", lambda r: r.recall1),
    Measure("Mean matched", "Raw cosine: not on one scale for two runs.", lambda r: r.mean_matched, 3, False),
    Measure("Mean unmatched", "Raw cosine: not on one scale for two runs.", lambda r: r.mean_unmatched, 3, False),
    Measure("n matched", "Pairs compared.", lambda r: len(r.matched), 0, False),
    Measure("n unmatched", "The most similar unmatched texts of every image.", lambda r: len(r.unmatched), 0, False),
)


class SimilarityTable(QFrame):
    """Measures in rows, A, B and B minus A in columns of aligned figures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="similarity-table", accessibleName="Numbers of both runs")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(theme.BETWEEN + theme.SPACE)
        self._grid.setVerticalSpacing(theme.INSIDE)
        self._grid.setColumnStretch(0, 1)
        self._cells: dict[tuple[str, str], QLabel] = {}
        right = Qt.AlignmentFlag.AlignRight
        for column, index in ((1, 0), (2, 1)):
            self._grid.addWidget(Badge("AB"[index], index), 0, column, right)
        self._grid.addWidget(_label("B − A", "heading"), 0, 3, right)
        for place, measure in enumerate(MEASURES, start=1):
            name = _label(measure.words, "")
            name.setToolTip(measure.hint)
            self._grid.addWidget(name, 2 * place, 0)
            self._grid.addWidget(_line(), 2 * place - 1, 0, 1, 4)
            for column, side in enumerate(("A", "B", "B-A"), start=1):
                cell = _label("", "secondary" if side == "B-A" else "")
                cell.setAlignment(right | Qt.AlignmentFlag.AlignVCenter)
                self._cells[measure.words, side] = cell
                self._grid.addWidget(cell, 2 * place, column, right)

    def show_runs(self, a: SimilarityRun | None, b: SimilarityRun | None) -> None:
        """Shows the numbers of both; a missing run has dashes."""
        for measure in MEASURES:
            values = [None if run is None else measure.read(run) for run in (a, b)]
            for side, value in zip(("A", "B"), values, strict=True):
                self._cells[measure.words, side].setText(written(value, measure.digits))
            both = measure.comparable and None not in values
            difference = values[1] - values[0] if both else None
            self._cells[measure.words, "B-A"].setText(written(difference, measure.digits, signed=True))

    def text(self, measure: str, side: str) -> str:
        """What a cell says; `side` is `A`, `B` or `B-A`."""
        return self._cells[measure, side].text()


def written(value: float | None, digits: int, *, signed: bool = False) -> str:
    """A number with its digits and a true minus sign; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:{'+' if signed else ''},.{digits}f}".replace("-", "−")


def _label(words: str, role: str) -> QLabel:
    label = QLabel(words)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if role:
        theme.set_role(label, role)
    return label


def _line() -> QFrame:
    line = QFrame()
    line.setProperty("role", "line")
    return line
