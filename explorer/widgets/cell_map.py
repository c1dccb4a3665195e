"""The base of heat maps: colored cells, the cell under the pointer or cursor, text in cells."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QImage, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer import theme
from explorer.widgets.accessible import announce, present
from explorer.widgets.viridis import picture

NOWHERE: Final = (-1, -1)
MOVES: Final = {
    Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)
}  # fmt: skip
"""Arrow key -> rows down and columns to the right."""


class CellMap(QWidget):
    """Rows and columns of equal cells in the rectangle `room`; row 0 is at the top.

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
        present(self, "Chart")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.theme().changed.connect(self.update)

    @property
    def values(self) -> Float[np.ndarray, "rows columns"]:
        """The values shown."""
        return self._cells

    def room(self) -> QRectF:
        """Return the rectangle of the cells, in widget pixels."""
        return QRectF(self.rect())

    def show_cells(
        self,
        values: Float[np.ndarray, "rows columns"],
        shares: Float[np.ndarray, "rows columns"],
        *,
        centered: bool = False,
    ) -> None:
        """Show these values in the colors of `shares`, with no current cell.

        0 is darkest and 1 brightest; of `centered` ones, which are differences, 0.5 is white.
        """
        self._cells, self._image, self._at = values, picture(shares, centered=centered), NOWHERE
        self.update()

    def paint_cells(self, painter: QPainter) -> None:
        """Draw the cells; those without a number are hatched, which no color of the scale is."""
        if self._image is None:
            return
        room = self.room()
        if not np.isfinite(self._cells).all():
            painter.fillRect(room, QBrush(theme.color("disabled"), Qt.BrushStyle.BDiagPattern))
        painter.drawImage(room, self._image)

    def cell_at(self, position: QPointF) -> tuple[int, int]:
        """Return row and column at a widget position; -1, -1 outside."""
        room, (rows, columns) = self.room(), self._cells.shape
        if not self._cells.size or not room.contains(position):
            return NOWHERE
        row = int((position.y() - room.top()) / room.height() * rows)
        return min(row, rows - 1), min(int((position.x() - room.left()) / room.width() * columns), columns - 1)

    def rect_of(self, row: float, column: float) -> QRectF:
        """Return the rectangle of a cell."""
        room, (rows, columns) = self.room(), self._cells.shape
        wide, high = room.width() / max(columns, 1), room.height() / max(rows, 1)
        return QRectF(room.left() + column * wide, room.top() + row * high, wide, high)

    def center_of(self, row: int, column: int) -> QPointF:
        """Return the center of a cell."""
        return self.rect_of(row, column).center()

    def point_at(self, cell: tuple[int, int]) -> None:
        """Make a cell current (-1, -1: none); the pointer becomes a hand over one."""
        if cell != self._at:
            self._at = cell
            self.setCursor(Qt.CursorShape.ArrowCursor if cell == NOWHERE else Qt.CursorShape.PointingHandCursor)
            self.pointed.emit(*cell)
            self.update()

    def words_at(self, row: int, column: int) -> str:
        """Return the text that a screen reader reads for a cell."""
        return f"row {row + 1}, column {column + 1}: {number_in(self._cells[row, column])}"

    def move_by_key(self, event: QKeyEvent) -> bool:
        """Move to the next cell for an arrow key and announce it; False for other keys."""
        rows, columns = self._cells.shape
        if event.key() not in MOVES or not rows:
            return False
        down, right = MOVES[Qt.Key(event.key())]
        row, column = self._at
        self.point_at((min(rows - 1, max(0, row + down)), min(columns - 1, max(0, column + right))))
        announce(self, self.words_at(*self._at))
        return True

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.point_at(self.cell_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.point_at(NOWHERE)


def number_in(value: float) -> str:
    """Return what is read out for a cell: its number, as `1,024` or `0.0001`, or that it has none."""
    if not np.isfinite(value):
        return "no value"
    return (f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}").replace("-", "\u2212")


def write_on(painter: QPainter, cell: QRectF, value: float, ground: QColor) -> None:
    """Write a number into a cell, dark or light, whichever has more contrast."""
    inks = (theme.LIGHT.surface, theme.LIGHT.text)
    painter.setPen(QColor(max(inks, key=lambda ink: theme.contrast(ink, ground.name()))))
    painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, f"{value:.2f}".replace("-", "\u2212"))
