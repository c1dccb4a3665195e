"""A square matrix of values between 0 and 1 as colors, with names at both sides; cells can be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.widgets.cell_map import CellMap, write_on
from explorer.widgets.viridis import shade

LEAST_CELL: Final = 14
MOST_CELL: Final = 44
HEADS_PX: Final = 168
"""Greatest room for the upright names above."""


class HeatMapWidget(CellMap):
    """Cells in shades of one map, dark to bright.

    Signals:
        chosen: Line and column that were clicked, or Enter was pressed on.
    """

    chosen = Signal(int, int)

    def __init__(self, parent: QWidget | None = None, *, name: str, words: str) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(words)
        self._names: tuple[str, ...] = ()
        self._groups: tuple[int, ...] = ()

    def show_matrix(
        self, names: Sequence[str], values: Float[np.ndarray, "n n"], *, groups: Sequence[int] = ()
    ) -> None:
        """Shows the matrix; a hairline parts lines of different `groups`."""
        self._names, self._groups = tuple(names), tuple(groups)
        known = np.asarray(values, np.float64)
        self.show_cells(known, known)
        self.setAccessibleDescription(f"{len(names)} by {len(names)} cells")
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(640, 560)

    def minimumSizeHint(self) -> QSize:
        return QSize(320, 260)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and cell[0] >= 0:
            self.chosen.emit(*cell)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}
        n = len(self._names)
        if event.key() in moves and n:
            down, right = moves[Qt.Key(event.key())]
            self.point_at((min(n - 1, max(0, self._at[0] + down)), min(n - 1, max(0, self._at[1] + right))))
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._at[0] >= 0:
            self.chosen.emit(*self._at)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._image is None or not self._names:
            return
        painter = QPainter(self)
        room, n = self.room(), len(self._names)
        size = room.width() / n
        painter.drawImage(room, self._image)
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        self._write_names(painter, room, size)
        if size >= 34:
            self._write_values(painter)
        painter.setPen(QPen(theme.color("surface"), 2))
        for place in range(1, n):
            if self._groups and self._groups[place] != self._groups[place - 1]:
                x, y = room.left() + place * size, room.top() + place * size
                painter.drawLine(QPointF(x, room.top()), QPointF(x, room.bottom()))
                painter.drawLine(QPointF(room.left(), y), QPointF(room.right(), y))
        if self._at[0] >= 0:
            painter.setPen(QPen(theme.color("text"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(self.rect_of(*self._at))

    def _write_names(self, painter: QPainter, room: QRectF, size: float) -> None:
        metrics = painter.fontMetrics()
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        if size < metrics.height() - 4:
            return
        for place, name in enumerate(self._names):
            lit = place in self._at
            painter.setPen(theme.color("text" if lit else "secondary"))
            middle = (place + 0.5) * size
            words = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, int(room.left()) - theme.INSIDE)
            at = QRectF(0, room.top() + middle - 10, room.left() - theme.INSIDE, 20)
            painter.drawText(at, int(right), words)
            painter.save()
            painter.translate(room.left() + middle, room.top() - theme.INSIDE)
            painter.rotate(-90)
            words = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, int(room.top()) - theme.INSIDE)
            painter.drawText(QRectF(0, -10, room.top() - theme.INSIDE, 20), int(left), words)
            painter.restore()

    def _write_values(self, painter: QPainter) -> None:
        for (line, column), value in np.ndenumerate(self._cells):
            if not np.isfinite(value):
                continue
            ground = QColor(*shade(np.array([[value]]))[0, 0].tolist())
            write_on(painter, self.rect_of(line, column), value, ground)

    def room(self) -> QRectF:
        metrics = self.fontMetrics()
        longest = max((metrics.horizontalAdvance(name) for name in self._names), default=0) + theme.BETWEEN
        left = min(longest, max(80, self.width() // 3))
        top = min(longest, HEADS_PX, max(60, self.height() // 3))
        n = max(1, len(self._names))
        side = max(n * 4.0, min(self.width() - left, self.height() - top, n * MOST_CELL))
        return QRectF(left, top, side, side)
