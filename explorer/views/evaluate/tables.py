"""Tables of an evaluation: published results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from explorer import theme
from explorer.widgets import layouts
from trainer.charts.published_numbers import PublishedNumber

WIDEST_PX: Final = 1160
"""Wider, and an eye loses the line between a word and its number."""


class ResultTable(QTableWidget):
    """A table with text on the left and numbers on the right; heading rows are bold."""

    def __init__(self, name: str, label: str, parent: QWidget | None = None) -> None:
        super().__init__(0, 0, parent, objectName=name, accessibleName=label)
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
        """Return a pane with this table left-aligned, up to its maximum width."""
        return layouts.panel(layouts.row((self, 1000), (layouts.STRETCH, 1), gap=None))

    def show_cells(
        self, heads: Sequence[str], rows: Sequence[Sequence[str]], *, tips: Sequence[str] = (), text_columns: int = 1
    ) -> None:
        """Show the rows; the first `text_columns` columns contain text, and a row of one cell is a heading."""
        self.clear()
        self.clearSpans()
        self.setColumnCount(len(heads))
        self.setRowCount(len(rows))
        for column, head in enumerate(heads):
            item = QTableWidgetItem(head)
            item.setTextAlignment(self._side(column, text_columns))
            self.setHorizontalHeaderItem(column, item)
        for line, row in enumerate(rows):
            for column, text in enumerate(row):
                item = QTableWidgetItem(text)
                item.setTextAlignment(self._side(column, text_columns))
                item.setToolTip(tips[line] if line < len(tips) else "")
                if len(row) == 1:
                    item.setFont(theme.pixel_font(theme.BODY_PX, weight=QFont.Weight.DemiBold))
                self.setItem(line, column, item)
            if len(row) == 1:
                self.setSpan(line, 0, 1, len(heads))
        header = self.horizontalHeader()
        for column in range(len(heads)):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        if heads:
            header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)

    def texts(self) -> list[list[str]]:
        """Return the table's texts, row by row."""
        columns = range(self.columnCount())
        cells = [[self.item(row, column) for column in columns] for row in range(self.rowCount())]
        return [[item.text() for item in row if item is not None] for row in cells]

    @staticmethod
    def _side(column: int, text_columns: int) -> Qt.AlignmentFlag:
        side = Qt.AlignmentFlag.AlignLeft if column < text_columns else Qt.AlignmentFlag.AlignRight
        return side | Qt.AlignmentFlag.AlignVCenter


def show_published(table: ResultTable, published: Sequence[PublishedNumber]) -> None:
    """Show the results that papers report for the data set."""
    rows, tips = [], []
    for result in published:
        spread = f" ± {100 * result.std:.2f}" if result.std is not None else ""
        accuracy = f"{100 * result.value:.2f}{spread} %"
        rows.append([result.model, result.task_label, result.trained, f"{result.runs}", accuracy])
        tips.append(result.source)
    table.show_cells(["Model", "Task", "Trained on", "Runs", "Accuracy"], rows, tips=tips, text_columns=3)
