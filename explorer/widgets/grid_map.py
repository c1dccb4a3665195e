"""A heat map with values under the pointer; a click or a key selects a row or cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.widgets.cell_map import MOVES, NOWHERE, CellMap, number_in, write_on
from explorer.widgets.viridis import picture, shade

LEFT, BOTTOM, RIGHT, TOP = 22, 36, 66, 4
BAR, BESIDE_BAR = 10, 16
"""Width of the bar of colors, and what is left free at its sides and after its numbers."""
MOST_CELL = 44
HEADS_PX = 168
"""Greatest room for the upright names above."""
WRITTEN_CELL = 34
"""Cells of at least this size have their value written on them."""


@dataclass(frozen=True)
class Heat:
    """The data of a heat map; row 0 is at the top.

    Attributes:
        low, high: Ends of the colors; `log`: they move in equal factors.
        centered: The values are differences, and the colors diverge from 0.
        x_ticks: Column and words.
        cursor: Column of a dashed line; NaN for none.
        marked: Row in a frame; -1 for none.
        row_names, column_names: Written at the left and upright above, where cells can be chosen; empty for neither.
        dividers: Rows, and columns, before which a line parts groups.
    """

    values: Float[np.ndarray, "rows columns"]
    low: float
    high: float
    log: bool
    x_label: str = ""
    y_label: str = ""
    x_ticks: tuple[tuple[float, str], ...] = ()
    cursor: float = float("nan")
    marked: int = -1
    row_names: tuple[str, ...] = ()
    column_names: tuple[str, ...] = ()
    dividers: tuple[int, ...] = ()
    centered: bool = False


class GridMap(CellMap):
    """Paints a `Heat`.

    Signals:
        chosen: The row that was clicked, or moved to with the arrow keys.
        cell_chosen: Row and column that were clicked, or Enter was pressed on; where both have names.
    """

    chosen = Signal(int)
    cell_chosen = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.heat: Heat | None = None
        self._right = RIGHT
        self.setMinimumSize(150, 150)

    def show_heat(self, heat: Heat) -> None:
        """Draw this heat map."""
        self.heat, pointed = heat, self._at
        metrics = QFontMetrics(theme.pixel_font(theme.SMALL_PX))
        ends = max(metrics.horizontalAdvance(number_in(end)) for end in (heat.low, heat.high))
        self._right = max(RIGHT, ends + BAR + BESIDE_BAR)
        self.show_cells(heat.values, shares(heat), centered=heat.centered)
        # The next answer while a slider moves: the pointer is where it was.
        self._at = pointed if pointed[0] < len(heat.values) and pointed[1] < heat.values.shape[1] else NOWHERE
        if heat.row_names:
            self.setAccessibleDescription(f"{heat.values.shape[0]} by {heat.values.shape[1]} cells")

    def sizeHint(self) -> QSize:
        return QSize(640, 560) if self.heat is not None and self.heat.row_names else QSize(300, 260)

    def room(self) -> QRectF:
        """Return the rectangle of the cells in widget pixels; square if there are as many rows as columns."""
        if self.heat is not None and self.heat.row_names:
            return self._room_between_names(self.heat)
        wide, high = max(self.width() - LEFT - self._right, 1), max(self.height() - TOP - BOTTOM, 1)
        if self._is_square():
            wide = high = min(wide, high)
        return QRectF(LEFT, TOP, wide, high)

    def height_in(self, wide: int) -> int:
        """Return the height at which square cells use this width; of others the preferred height."""
        square = self._is_square() and self.heat is not None and not self.heat.row_names
        return max(150, wide - LEFT - self._right + TOP + BOTTOM) if square else self.sizeHint().height()

    def _is_square(self) -> bool:
        return self.heat is not None and self.heat.values.shape[0] == self.heat.values.shape[1]

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        row, column = self.cell_at(event.position())
        if self.heat is not None and self.heat.row_names:
            if row >= 0 and event.button() == Qt.MouseButton.LeftButton:
                self.cell_chosen.emit(row, column)
        elif row >= 0:
            self.chosen.emit(row)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.heat is not None and self.heat.row_names:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._at != NOWHERE:
                self.cell_chosen.emit(*self._at)
            elif not self.move_by_key(event):
                super().keyPressEvent(event)
            return
        if self.heat is None or event.key() not in MOVES:
            super().keyPressEvent(event)
            return
        if self._at == NOWHERE:
            self.point_at((max(self.heat.marked, 0), 0))
        self.move_by_key(event)
        if self._at[0] != self.heat.marked:
            self.chosen.emit(self._at[0])

    def words_at(self, row: int, column: int) -> str:
        heat = self.heat
        if heat is None or not heat.row_names:
            return super().words_at(row, column)
        names = f"{heat.row_names[row]}, {heat.column_names[column] if heat.column_names else column + 1}"
        return f"{names}: {number_in(heat.values[row, column])}"

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.heat is None or not self.heat.values.size:
            return
        painter = QPainter(self)
        frame = self.room()
        self.paint_cells(painter)
        if self.heat.row_names:
            self._write_names(painter, frame, self.heat)
            self._paint_lines(painter, frame, self.heat)
        else:
            self._paint_axes(painter, frame, self.heat)
        self._paint_bar(painter, frame, self.heat)
        self._paint_marks(painter, frame, self.heat)

    def _paint_axes(self, painter: QPainter, frame: QRectF, heat: Heat) -> None:
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        painter.setPen(theme.color("secondary"))
        columns = heat.values.shape[1]
        for at, text in heat.x_ticks:
            x = frame.left() + (at + 0.5) / columns * frame.width()
            room = QRectF(x - 30, frame.bottom() + 2, 60, 15)
            painter.drawText(room, int(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop), text)
        below = QRectF(frame.left(), frame.bottom() + (17 if heat.x_ticks else 3), frame.width(), 16)
        painter.drawText(below, int(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop), heat.x_label)
        painter.save()
        painter.translate(2, frame.center().y())
        painter.rotate(-90)
        side = QRectF(-frame.height() / 2, 0, frame.height(), 16)
        painter.drawText(side, int(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop), heat.y_label)
        painter.restore()

    def _paint_bar(self, painter: QPainter, frame: QRectF, heat: Heat) -> None:
        bar = QRectF(frame.right() + 8, frame.top(), BAR, frame.height())
        painter.drawImage(bar, picture(np.linspace(1, 0, 128)[:, None], centered=heat.centered))
        painter.setPen(theme.color("secondary"))
        ends = [(heat.high, Qt.AlignmentFlag.AlignTop), (heat.low, Qt.AlignmentFlag.AlignBottom)]
        for value, side in [*ends, *([(0.0, Qt.AlignmentFlag.AlignVCenter)] if heat.centered else [])]:
            room = QRectF(bar.right() + 4, frame.top(), self._right - BAR - 14, frame.height())
            painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | side), number_in(value))

    def _paint_marks(self, painter: QPainter, frame: QRectF, heat: Heat) -> None:
        rows, columns = heat.values.shape
        high, wide = frame.height() / rows, frame.width() / columns
        if heat.cursor == heat.cursor:
            painter.setPen(QPen(QColor(theme.LIGHT.surface), 1.5, Qt.PenStyle.DashLine))
            x = frame.left() + (heat.cursor + 0.5) * wide
            painter.drawLine(QPointF(x, frame.top()), QPointF(x, frame.bottom()))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if heat.marked >= 0:
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.drawRect(
                QRectF(frame.left() - 1, frame.top() + heat.marked * high - 1, frame.width() + 2, high + 2)
            )
        row, column = self._at
        if row >= 0:
            # White would not be seen on the white that is a difference of 0.
            ground = QColor(theme.LIGHT.text if heat.centered else theme.LIGHT.surface)
            painter.setPen(QPen(theme.color("text"), 2) if heat.row_names else QPen(ground, 1))
            painter.drawRect(self.rect_of(row, column))
        if self.hasFocus():
            painter.setPen(QPen(theme.color("focus"), 1))
            painter.drawRect(frame.adjusted(-1, -1, 1, 1))

    def _room_between_names(self, heat: Heat) -> QRectF:
        metrics = self.fontMetrics()
        longest = [max(map(metrics.horizontalAdvance, names)) for names in (heat.row_names, heat.column_names)]
        left = min(longest[0] + theme.BETWEEN, max(80, self.width() // 3))
        top = min(longest[1] + theme.BETWEEN, HEADS_PX, max(60, self.height() // 3))
        room = self._fitted(heat, left, top)
        # Names that would not be written leave their room to the cells.
        return room if self._writes_names(heat, room) else self._fitted(heat, theme.SPACE, theme.SPACE)

    def _fitted(self, heat: Heat, left: int, top: int) -> QRectF:
        rows, columns = heat.values.shape
        side = min((self.width() - left - self._right) / columns, (self.height() - top - 2) / rows, MOST_CELL)
        return QRectF(left, top, columns * max(side, 4.0), rows * max(side, 4.0))

    def _writes_names(self, heat: Heat, room: QRectF) -> bool:
        return room.left() > theme.SPACE and room.height() / len(heat.values) >= self.fontMetrics().height() - 4

    def _write_names(self, painter: QPainter, room: QRectF, heat: Heat) -> None:
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        metrics, size = painter.fontMetrics(), room.height() / len(heat.values)
        if not self._writes_names(heat, room):
            return
        left, top = int(room.left()) - theme.INSIDE, int(room.top()) - theme.INSIDE
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for index, name in enumerate(heat.row_names):
            painter.setPen(theme.color("text" if index == self._at[0] else "secondary"))
            text = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, left)
            painter.drawText(QRectF(0, room.top() + (index + 0.5) * size - 10, left, 20), int(right), text)
        for index, name in enumerate(heat.column_names):
            painter.setPen(theme.color("text" if index == self._at[1] else "secondary"))
            painter.save()
            painter.translate(room.left() + (index + 0.5) * size, top)
            painter.rotate(-90)
            text = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, top)
            painter.drawText(QRectF(0, -10, top, 20), int(Qt.AlignmentFlag.AlignVCenter), text)
            painter.restore()

    def _paint_lines(self, painter: QPainter, room: QRectF, heat: Heat) -> None:
        size = room.height() / len(heat.values)
        if size >= WRITTEN_CELL:
            grounds = shade(shares(heat), centered=heat.centered)
            for (row, column), value in np.ndenumerate(heat.values):
                if np.isfinite(value):
                    write_on(painter, self.rect_of(row, column), value, QColor(*grounds[row, column].tolist()))
        painter.setPen(QPen(theme.color("surface"), 2))
        for index in heat.dividers:
            x, y = room.left() + index * size, room.top() + index * size
            painter.drawLine(QPointF(x, room.top()), QPointF(x, room.bottom()))
            painter.drawLine(QPointF(room.left(), y), QPointF(room.right(), y))


def shares(heat: Heat) -> Float[np.ndarray, "rows columns"]:
    """Return each cell's relative position on the scale, 0 to 1; NaN stays."""
    values, low, high = heat.values, heat.low, heat.high
    if heat.log:
        values, low, high = np.log(np.maximum(values, low)), np.log(low), np.log(high)
    return np.clip((values - low) / max(high - low, 1e-12), 0, 1)
