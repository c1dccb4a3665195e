"""The numbers of an evaluation: what was measured, what was published, and groups of runs over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from explorer import theme
from trainer.charts.evaluation import EvaluationChart
from trainer.charts.groups import GroupTable
from trainer.charts.reference import PublishedNumber
from trainer.render_mpl import evaluation_table
from trainer.render_mpl.groups import cell, p_cells, p_heads, sections

WIDEST_PX: Final = 1160
"""Wider, and an eye loses the line between a word and its number."""


class ResultTable(QTableWidget):
    """Words on the left, figures on the right; rows of a heading are strong."""

    def __init__(self, name: str, words: str, parent: QWidget | None = None) -> None:
        super().__init__(0, 0, parent)
        self.setObjectName(name)
        self.setAccessibleName(words)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(28)
        self.setShowGrid(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setWordWrap(False)
        self.horizontalHeader().setHighlightSections(False)
        self.setMaximumWidth(WIDEST_PX)

    def at_left(self) -> QWidget:
        """A pane with this table, as wide as there is room up to its most, and nothing beside it."""
        pane = QWidget()
        row = QHBoxLayout(pane)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self, 1000)
        row.addStretch(1)
        return pane

    def show_cells(
        self, heads: Sequence[str], rows: Sequence[Sequence[str]], *, tips: Sequence[str] = (), words: int = 1
    ) -> None:
        """Shows the rows; the first `words` columns hold words. A row of one cell is a heading."""
        self.clear()
        self.clearSpans()
        self.setColumnCount(len(heads))
        self.setRowCount(len(rows))
        for column, head in enumerate(heads):
            item = QTableWidgetItem(head)
            item.setTextAlignment(self._side(column, words))
            self.setHorizontalHeaderItem(column, item)
        for place, row in enumerate(rows):
            for column, text in enumerate(row):
                item = QTableWidgetItem(text)
                item.setTextAlignment(self._side(column, words))
                item.setToolTip(tips[place] if place < len(tips) else "")
                if len(row) == 1:
                    item.setFont(theme.pixel_font(theme.BODY_PX, weight=QFont.Weight.DemiBold))
                self.setItem(place, column, item)
            if len(row) == 1:
                self.setSpan(place, 0, 1, len(heads))
        header = self.horizontalHeader()
        for column in range(len(heads)):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        if heads:
            header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)

    def strengthen(self, place: int, column: int) -> None:
        """Writes one cell strongly."""
        item = self.item(place, column)
        if item is not None:
            item.setFont(theme.pixel_font(theme.BODY_PX, weight=QFont.Weight.DemiBold))

    def texts(self) -> list[list[str]]:
        """What it says, row by row."""
        columns = range(self.columnCount())
        cells = [[self.item(row, column) for column in columns] for row in range(self.rowCount())]
        return [[item.text() for item in row if item is not None] for row in cells]

    @staticmethod
    def _side(column: int, words: int) -> Qt.AlignmentFlag:
        side = Qt.AlignmentFlag.AlignLeft if column < words else Qt.AlignmentFlag.AlignRight
        return side | Qt.AlignmentFlag.AlignVCenter


def show_evaluation(table: ResultTable, chart: EvaluationChart) -> None:
    """A, B, their difference with its interval, and p; the better one is strong where the difference is real."""
    made = evaluation_table.table(chart)
    table.show_cells(made.heads, made.rows, tips=made.tips)
    for place, column in sorted(made.strong):
        table.strengthen(place, column)


def show_published(table: ResultTable, published: Sequence[PublishedNumber]) -> None:
    """What papers report about the data set."""
    words = {"zero_shot": "Zero-shot", "linear_probe": "Linear probe"}
    rows, tips = [], []
    for one in published:
        spread = f" ± {100 * one.std:.2f}" if one.std is not None else ""
        rows.append([one.model, words[one.task], one.trained, f"{one.runs}", f"{100 * one.value:.2f}{spread} %"])
        tips.append(one.source)
    table.show_cells(["Model", "Task", "Trained on", "Runs", "Accuracy"], rows, tips=tips, words=3)


def show_groups(table: ResultTable, groups: GroupTable) -> None:
    """Mean and deviation of each group, and both tests."""
    heads = ["Measure", *(f"{group.pattern}  (n = {len(group.runs)})" for group in groups.groups)]
    rows: list[list[str]] = []
    strong: list[tuple[int, int]] = []
    for title, members in sections(groups):
        rows.append([title])
        for line in members:
            cells = [cell(line, place) for place in range(len(groups.groups))]
            strong += [(len(rows), 1 + place) for place in line.better]
            rows.append([line.metric.label, *cells, *p_cells(line)])
    table.show_cells([*heads, *p_heads(groups)], rows)
    for place, column in strong:
        table.strengthen(place, column)
