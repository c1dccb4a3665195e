"""What the heat maps share: cells in shades of one picture, the cell under the pointer or the keys, words on a cell."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer import theme
from explorer.widgets.viridis import picture

NOWHERE: Final = (-1, -1)


class CellMap(QWidget):
    """Rows and columns of equal cells in a rectangle that `room` gives; row 0 is on top.

    Signals:
        pointed: Row and column under the pointer or the keyboard; -1, -1 for none.
    """

    pointed = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._image: QImage | None = None
        self._cells: Float[np.ndarray, "rows columns"] = np.zeros((0, 0))
        self._at = NOWHERE
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.theme().changed.connect(self.update)

    @property
    def values(self) -> Float[np.ndarray, "rows columns"]:
        """What is shown."""
        return self._cells

    def room(self) -> QRectF:
        """Where the cells are, in pixels of the widget."""
        return QRectF(self.rect())

    def show_cells(self, values: Float[np.ndarray, "rows columns"], shares: Float[np.ndarray, "rows columns"]) -> None:
        """Shows these values in the colors of `shares`, 0 the darkest and 1 the brightest; nothing is pointed at."""
        self._cells, self._image, self._at = values, picture(shares), NOWHERE
        self.update()

    def cell_at(self, place: QPointF) -> tuple[int, int]:
        """Row and column at a place of the widget; -1, -1 outside."""
        room, (rows, columns) = self.room(), self._cells.shape
        if not self._cells.size or not room.contains(place):
            return NOWHERE
        row = int((place.y() - room.top()) / room.height() * rows)
        return min(row, rows - 1), min(int((place.x() - room.left()) / room.width() * columns), columns - 1)

    def rect_of(self, row: float, column: float) -> QRectF:
        """Where a cell is drawn."""
        room, (rows, columns) = self.room(), self._cells.shape
        wide, high = room.width() / max(columns, 1), room.height() / max(rows, 1)
        return QRectF(room.left() + column * wide, room.top() + row * high, wide, high)

    def center_of(self, row: int, column: int) -> QPointF:
        """The middle of a cell."""
        return self.rect_of(row, column).center()

    def point_at(self, cell: tuple[int, int]) -> None:
        """Points at a cell, -1, -1 at none; the pointer becomes a hand over one."""
        if cell != self._at:
            self._at = cell
            self.setCursor(Qt.CursorShape.ArrowCursor if cell == NOWHERE else Qt.CursorShape.PointingHandCursor)
            self.pointed.emit(*cell)
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.point_at(self.cell_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.point_at(NOWHERE)


def write_on(painter: QPainter, cell: QRectF, value: float, ground: QColor) -> None:
    """Writes a number into a cell, dark or light, whichever is read better on its color."""
    inks = (theme.LIGHT.surface, theme.LIGHT.text)
    painter.setPen(QColor(max(inks, key=lambda ink: theme.contrast(ink, ground.name()))))
    painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, f"{value:.2f}".replace("-", "\u2212"))
