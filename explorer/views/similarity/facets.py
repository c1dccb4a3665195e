"""The values of a column, and how well the pairs of each stand out in both runs."""

from __future__ import annotations

import math

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from explorer import theme
from trainer.charts.similarity import SimilarityRun

COLUMNS = ("value", "n", "AUC A", "AUC B")


class FacetTable(QTableWidget):
    """A row a value; choosing one restricts the histograms to it, choosing it again takes that back.

    Signals:
        chosen: The value, or None for all.
    """

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(0, len(COLUMNS), parent)
        self.setObjectName("similarity-facets")
        self.setAccessibleName("Numbers of each value of the column")
        self.setHorizontalHeaderLabels(COLUMNS)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(26)
        self.setShowGrid(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setFont(theme.pixel_font(theme.SMALL_PX))
        header = self.horizontalHeader()
        header.setFont(theme.pixel_font(theme.SMALL_PX))
        header.setHighlightSections(False)
        header.setMinimumSectionSize(36)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.setMinimumHeight(150)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._only: str | None = None
        self.cellClicked.connect(lambda row, _column: self._choose(row))
        self.cellActivated.connect(lambda row, _column: self._choose(row))

    def show_facets(self, a: SimilarityRun | None, b: SimilarityRun | None, only: str | None) -> None:
        """Shows the values of both runs; `only` is the chosen one."""
        self._only = only
        sides = [{facet.value: facet for facet in run.facets} if run else {} for run in (a, b)]
        values = list(dict.fromkeys([*sides[0], *sides[1]]))
        self.setRowCount(len(values))
        for row, value in enumerate(values):
            facets = [side.get(value) for side in sides]
            n = next(facet.n for facet in facets if facet is not None)
            cells = [value or "(empty)", f"{n:,}"]
            cells += [_share(facet.auc if facet else None) for facet in facets]
            tip = ", ".join(f"R@1 of {s} {_share(f.recall1 if f else None)}" for s, f in zip("AB", facets, strict=True))
            for column, words in enumerate(cells):
                cell = QTableWidgetItem(words)
                cell.setToolTip(f"{value}: {tip}. Click to see only these images; again to see all.")
                cell.setData(Qt.ItemDataRole.UserRole, value)
                if column:
                    cell.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self.setItem(row, column, cell)
        self.clearSelection()
        if only in values:
            self.selectRow(values.index(only))

    def _choose(self, row: int) -> None:
        value = self.item(row, 0).data(Qt.ItemDataRole.UserRole)
        self.chosen.emit(None if value == self._only else value)


def _share(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.3f}"
