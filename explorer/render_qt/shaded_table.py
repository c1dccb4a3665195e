"""A small matrix of numbers with cells shaded by value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer import theme
from explorer.render_qt.xy_plot import tone_color
from explorer.widgets import layouts
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
HEAD_PX = 22
PALEST, DEEPEST = 0.06, 0.5
"""Opacity of the ground of a cell: the number on it must stay readable in both themes."""


class ShadedTableCard(QWidget):
    """The table's cells with headings, an optional extra column and row, and frames around marked cells."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=name)
        self.table: ShadedTable | None = None
        self.title = layouts.elided(role="strong")
        self.cells = _Cells(self)
        layouts.column(self.title, (self.cells, 1), layouts.STRETCH, gap=theme.SPACE, of=self)
        theme.theme().changed.connect(self.cells.update)

    def show_mark(self, table: ShadedTable) -> None:
        self.table = table
        self.title.setText(table.title)
        self.setAccessibleName(table.title)
        self.setAccessibleDescription(_in_words(table))
        self.cells.setMaximumHeight(HEAD_PX + len(table.rows) * TALLEST_CELL_PX)
        self.cells.updateGeometry()
        self.cells.update()

    @property
    def most_height(self) -> int:
        """How high it is with the tallest cells."""
        rows = len(self.table.rows) if self.table is not None else 0
        return self.title.sizeHint().height() + 2 * theme.SPACE + HEAD_PX + rows * TALLEST_CELL_PX

    def shown(self) -> Iterator[tuple[Any, ...]]:
        """Yield row, column and value of every cell."""
        return iter(()) if self.table is None else values_of(self.table)


class _Cells(QWidget):
    def __init__(self, matrix: ShadedTableCard) -> None:
        super().__init__(matrix)
        self._matrix = matrix
        self._heads: tuple[ShadedTable | None, float] = (None, 0.0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def sizeHint(self) -> QSize:
        table = self._matrix.table
        if table is None:
            return QSize(200, CELL_PX)
        wide = len(table.columns) * (LEAST_CELL_PX + 16)
        return QSize(int(self._heading()) + wide, HEAD_PX + len(table.rows) * CELL_PX)

    def minimumSizeHint(self) -> QSize:
        table, hint = self._matrix.table, self.sizeHint()
        columns = len(table.columns) if table else 3
        return QSize(int(self._heading()) + columns * LEAST_CELL_PX, hint.height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        table = self._matrix.table
        if table is None:
            return
        painter = theme.smooth_painter(self)
        for row, column in np.ndindex(table.values.shape):
            self._paint_cell(painter, table, row, column)
        for row, name in enumerate(table.rows):
            room = QRectF(0, HEAD_PX + row * self._high, self._heading() - theme.INSIDE, self._high)
            self._write(painter, room, name, "secondary", side=Qt.AlignmentFlag.AlignLeft)
        for column, name in enumerate(table.columns):
            room = QRectF(self._heading() + column * self._width(), 0, self._width(), HEAD_PX)
            self._write(painter, room, name, "secondary")

    def _paint_cell(self, painter: QPainter, table: ShadedTable, row: int, column: int) -> None:
        room = self._room(row, column)
        marked = (row, column) in table.marked
        if (depth := table.depth(row, column)) is not None:
            ground = QColor(tone_color("first"))
            ground.setAlphaF(PALEST + (DEEPEST - PALEST) * depth)
            painter.setPen(QPen(theme.color("text"), 1.2) if marked else Qt.PenStyle.NoPen)
            painter.setBrush(ground)
            painter.drawRoundedRect(room.adjusted(1.5, 1.5, -1.5, -1.5), 4, 4)
        self._write(painter, room, table.text(row, column), "text", strong=marked)

    def _heading(self) -> float:
        """Return the width of the row names; measured once per table, because every cell needs it."""
        table = self._matrix.table
        if self._heads[0] is not table or table is None:
            metrics = QFontMetricsF(theme.pixel_font(theme.SMALL_PX))
            widths = map(metrics.horizontalAdvance, table.rows if table else ())
            self._heads = (table, max(widths, default=0.0) + theme.BETWEEN)
        return self._heads[1]

    @property
    def _high(self) -> float:
        """The height of a cell: it grows with the room."""
        rows = len(self._matrix.table.rows) if self._matrix.table is not None else 1
        return min(max((self.height() - HEAD_PX) / rows, CELL_PX), TALLEST_CELL_PX)

    def _width(self) -> float:
        table = self._matrix.table
        return min((self.width() - self._heading()) / len(table.columns), WIDEST * self._high)

    def _room(self, row: int, column: int) -> QRectF:
        wide = self._width()
        return QRectF(self._heading() + column * wide, HEAD_PX + row * self._high, wide, self._high)

    def _write(
        self,
        painter: QPainter,
        room: QRectF,
        text: str,
        color: str,
        *,
        strong: bool = False,
        side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignHCenter,
    ) -> None:
        small = color == "secondary"
        weight = QFont.Weight.DemiBold if strong else QFont.Weight.Normal
        grown = min(max(min(self._width() / LARGE_CELL_PX[0], self._high / LARGE_CELL_PX[1]), 1.0), LARGEST_TEXT)
        theme.text_pen(painter, theme.SMALL_PX if small else round(theme.BODY_PX * grown), color, weight=weight)
        painter.drawText(room, int(side | Qt.AlignmentFlag.AlignVCenter), text)


def _in_words(table: ShadedTable) -> str:
    rows = [
        f"{name}: {', '.join(table.text(row, column) for column in range(len(table.columns)))}"
        for row, name in enumerate(table.rows)
    ]
    return "; ".join(rows)
