"""The numbers beside the histograms: A, B, and their difference where it means something."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.combo_boxes import Badge
from trainer.charts.similarity import SimilarityRun


@dataclass(frozen=True)
class TableRow:
    """One row: its words, how it is read off a run, digits, and whether two runs may be compared by it."""

    words: str
    hint: str
    read: Callable[[SimilarityRun], float]
    digits: int = 3
    comparable: bool = True


MEASURES: Final = (
    TableRow("AUC", "Chance that a matched cosine exceeds an unmatched one; 1 is perfect.", lambda r: r.auc),
    TableRow("d′", "Difference of the means in pooled standard deviations.", lambda r: r.d_prime, 2),
    TableRow(
        "Overlap", "Area shared by both histograms, 0 to 1; AUC says which of them is above.", lambda r: r.overlap
    ),
    TableRow("KS", "Largest distance of the two cumulative distributions; AUC says which is above.", lambda r: r.ks),
    TableRow("R@1", "Share of images whose own text is the most similar of the distinct texts.", lambda r: r.recall1),
    TableRow("Mean matched", "Raw cosine: not on one scale for two runs.", lambda r: r.mean_matched, 3, False),
    TableRow("Mean unmatched", "Raw cosine: not on one scale for two runs.", lambda r: r.mean_unmatched, 3, False),
    TableRow("n matched", "Pairs compared.", lambda r: len(r.matched), 0, False),
    TableRow("n unmatched", "Unmatched pairs compared.", lambda r: r.n_unmatched, 0, False),
)


FIELDS: Final = {"AUC": "auc", "d′": "d_prime", "Overlap": "overlap", "KS": "ks"}
"""Measures with a level of shuffled pairs, and their names in the chart; the first two have an interval as well."""


class SimilarityTable(QFrame):
    """Measures in rows, A, B and B minus A in columns of aligned figures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="similarity-table", accessibleName="Numbers of both runs")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(theme.BETWEEN)
        self._grid.setVerticalSpacing(theme.INSIDE)
        self._grid.setColumnStretch(0, 1)
        self._cells: dict[tuple[str, str], QLabel] = {}
        self._spans: dict[tuple[str, str], QLabel] = {}
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
                room: QWidget = cell
                if measure.words in FIELDS and side != "B-A":
                    room = self._with_span(cell, measure.words, side)
                self._grid.addWidget(room, 2 * place, column, right)

    def show_runs(self, a: SimilarityRun | None, b: SimilarityRun | None) -> None:
        """Shows the numbers of both; a missing run has dashes."""
        for measure in MEASURES:
            values = [None if run is None else measure.read(run) for run in (a, b)]
            for side, value, run in zip(("A", "B"), values, (a, b), strict=True):
                self._cells[measure.words, side].setText(written(value, measure.digits))
                self._cells[measure.words, side].setToolTip(_interval(measure, run))
                if (measure.words, side) in self._spans:
                    parts = (_interval(measure, run, short=True), _level(measure, run))
                    self._spans[measure.words, side].setText("\n".join(filter(None, parts)))
            both = measure.comparable and None not in values
            difference = values[1] - values[0] if both else None
            self._cells[measure.words, "B-A"].setText(written(difference, measure.digits, signed=True))

    def span(self, measure: str, side: str) -> str:
        """What stands under a number: its interval where there is one, then the level of shuffled pairs."""
        found = self._spans.get((measure, side))
        return found.text() if found is not None else ""

    def _with_span(self, cell: QLabel, words: str, side: str) -> QWidget:
        span = _label("", "small")
        span.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._spans[words, side] = span
        room = QWidget()
        column = QVBoxLayout(room)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(cell)
        column.addWidget(span)
        return room

    def text(self, measure: str, side: str) -> str:
        """What a cell says; `side` is `A`, `B` or `B-A`."""
        return self._cells[measure, side].text()


def _interval(measure: TableRow, run: SimilarityRun | None, *, short: bool = False) -> str:
    low, high = run.intervals.get(FIELDS.get(measure.words, ""), (math.nan, math.nan)) if run else (math.nan, math.nan)
    if math.isnan(low):
        return ""
    ends = f"{written(low, measure.digits)} – {written(high, measure.digits)}"
    return ends if short else f"95 of 100 draws of the images lie in {ends}."


def _level(measure: TableRow, run: SimilarityRun | None) -> str:
    if run is None:
        return ""
    return f"shuffled {written(run.shuffled[FIELDS[measure.words]], measure.digits)}"


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
