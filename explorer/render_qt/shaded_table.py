"""A small matrix of numbers with cells shaded by value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHeaderView, QWidget

from explorer import theme
from explorer.render_qt.xy_plot import tone_color
from explorer.widgets import layouts
from explorer.widgets.heat_table import HeatData, HeatTable
from trainer.charts.marks import ShadedTable
from trainer.charts.panel_rows import values_of

CELL_PX = 30
TALLEST_CELL_PX = 72
WIDEST = 4.2
"""Of its height, how wide a cell becomes."""
LARGEST_TEXT = 1.6
"""Of the texts of the window, how large numbers become in the tallest cells."""
LARGE_CELL_PX = (90, 45)
"""Width and height of a cell from which on its number grows with it."""
LEAST_CELL_PX = 50
PALEST, DEEPEST = 0.1, 0.8
"""Shade of a cell of value 0 and of the highest value."""


class ShadedTableCard(QWidget):
    """The table's cells with headings, an optional extra column and row, and frames around marked cells."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=name)
        self.table: ShadedTable | None = None
        self.title = layouts.elided(role="strong")
        self.cells = _Cells(f"{name}-cells", "")
        layouts.column(self.title, (self.cells, 1), layouts.STRETCH, gap=theme.SPACE, of=self)
        theme.theme().changed.connect(self._show_cells)

    def show_mark(self, table: ShadedTable) -> None:
        self.table = table
        self.title.setText(table.title)
        self.setAccessibleName(table.title)
        self.cells.setAccessibleName(table.title)
        self._show_cells()
        self.cells.fit()

    def _show_cells(self) -> None:
        if (table := self.table) is None:
            return
        shade = np.zeros(table.values.shape)
        for cell in np.ndindex(shade.shape):
            if (depth := table.depth(*cell)) is not None:
                shade[cell] = PALEST + (DEEPEST - PALEST) * depth
        color = tone_color("first").name()
        self.cells.show_data(
            HeatData(
                table.rows,
                table.columns,
                np.nan_to_num(table.values),
                shade,
                lambda row, column, _value: table.text(row, column),
                (color, color),
                marked=frozenset(table.marked),
            )
        )

    @property
    def most_height(self) -> int:
        """How high it is with the tallest cells."""
        return self.title.sizeHint().height() + 2 * theme.SPACE + self.cells.height_of(TALLEST_CELL_PX)

    def shown(self) -> Iterator[tuple[Any, ...]]:
        """Yield row, column and value of every cell."""
        return iter(()) if self.table is None else values_of(self.table)


class _Cells(HeatTable):
    """A table whose cells grow with its room, and their numbers with them."""

    def __init__(self, name: str, label: str) -> None:
        super().__init__(name, label)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def height_of(self, cell: int) -> int:
        """Return the height of the table with cells of this height."""
        return self.horizontalHeader().sizeHint().height() + self.model().rowCount() * cell

    def sizeHint(self) -> QSize:
        wide = self.verticalHeader().sizeHint().width() + self.model().columnCount() * LEAST_CELL_PX
        return QSize(wide, self.height_of(CELL_PX))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def fit(self) -> None:
        """Give all cells the size for which there is room."""
        rows, columns = self.verticalHeader(), self.horizontalHeader()
        room = self.height() - columns.sizeHint().height()
        high = min(max(room // max(rows.count(), 1), CELL_PX), TALLEST_CELL_PX)
        wide = (self.width() - rows.sizeHint().width()) // max(columns.count(), 1)
        wide = max(LEAST_CELL_PX, min(wide, int(WIDEST * high)))
        rows.setDefaultSectionSize(high)
        columns.setDefaultSectionSize(wide)
        grown = min(max(min(wide / LARGE_CELL_PX[0], high / LARGE_CELL_PX[1]), 1.0), LARGEST_TEXT)
        self.number_px = round(theme.BODY_PX * grown)
        self.setMaximumHeight(self.height_of(TALLEST_CELL_PX))
        self.updateGeometry()
