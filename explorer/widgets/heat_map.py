"""A heat map: colored cells with the value under the pointer; a click or a key chooses a row or a cell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from jaxtyping import Float
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFontMetrics,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer import theme
from explorer.thumbnails import image_of
from explorer.widgets.accessible import announce, present
from explorer.widgets.image_box import paint_square
from explorer.widgets.viridis import picture, shade
from trainer.analysis.palette import DIVERGING, fading
from trainer.charts.marks import HeatMap, grayed

NOWHERE: Final = (-1, -1)
MOVES: Final = {
    Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)
}  # fmt: skip
"""Arrow key -> rows down and columns to the right."""
LEFT, BOTTOM, RIGHT, TOP = 22, 36, 66, 4
UNDER_PICTURE: Final = 52
"""Height of the bar of colors under a picture, with its numbers and words."""
BAR, BESIDE_BAR = 10, 16
"""Width of the bar of colors, and what is left free at its sides and after its numbers."""
MOST_CELL = 44
HEADS_PX = 168
"""Greatest room for the upright names above."""
WRITTEN_CELL = 34
"""Cells of at least this size have their value written on them."""


class HeatMapWidget(QWidget):
    """Paints a `HeatMap`; row 0 is at the top.

    Where its ticks name every row and column, a cell can be chosen, else a row; the row of the first tick is framed.
    """

    pointed = Signal(int, int)  # Row and column under the pointer or the keyboard; -1, -1 for none.
    chosen = Signal(int)  # The row that was clicked, or moved to with the arrow keys.
    cell_chosen = Signal(int, int)  # Row and column that were clicked, or Enter was pressed on; where both have names.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, mouseTracking=True)
        self.heat: HeatMap | None = None
        self._row_names: tuple[str, ...] = ()
        self._column_names: tuple[str, ...] = ()
        self._framed_row = -1
        self._image: QImage | None = None
        self._ground: QPixmap | None = None
        self._lies = False  # Whether the cells are over a picture, and their bar of colors is under it.
        self._scale: tuple[str, ...] = ()
        self._at = NOWHERE
        self._right = RIGHT
        present(self, "Chart")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(150, 150)
        theme.theme().changed.connect(self.update)

    def show_empty(self, ground: QPixmap | None, text: str) -> None:
        """Draw a picture without cells; without a picture, an empty square with this text."""
        self.heat, self._ground, self._lies, self._at = None, ground, True, NOWHERE
        self.setAccessibleName(text)
        self.setAccessibleDescription("The picture alone." if ground else "Nothing is drawn yet.")
        self.update()

    def show_heat(self, heat: HeatMap, colors: Iterable[str] = ()) -> None:
        """Draw this heat map; the pointer stays at its cell where there is one: the next answer as a slider moves.

        Args:
            heat: Its cells.
            colors: Of its tones.
        """
        self.heat = heat
        self._scale = fading(*colors) if heat.tones else DIVERGING if heat.centered else ()
        self._row_names, self._column_names = (
            tuple(text for _, text in ticks) if heat.named else () for ticks in (heat.y_ticks, heat.x_ticks)
        )
        self._framed_row = round(heat.y_ticks[0][0]) if heat.y_ticks and not heat.named else -1
        metrics = QFontMetrics(theme.pixel_font(theme.SMALL_PX))
        ends = max(metrics.horizontalAdvance(number_in(end)) for end in (heat.low, heat.high))
        self._right = max(RIGHT, ends + BAR + BESIDE_BAR)
        self._image = picture(shares(heat), self._scale)
        rows, columns = heat.values.shape
        self._lies = heat.picture is not None
        if heat.picture is not None:
            self._ground = QPixmap(image_of(grayed(heat.picture) if heat.values.size else heat.picture))
        self._at = self._at if self._at[0] < rows and self._at[1] < columns else NOWHERE
        if self._row_names:
            self.setAccessibleDescription(f"{rows} by {columns} cells")
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(640, 560) if self._row_names else QSize(300, 260)

    def room(self) -> QRectF:
        """Return the rectangle of the cells in widget pixels; square if there are as many rows as columns."""
        if self.heat is not None and self._row_names:
            return self._room_between_names(self.heat)
        if self._lies:
            side = max(min(self.width(), self.height() - UNDER_PICTURE), 1)
            return QRectF(0, 0, side, side)
        wide, high = max(self.width() - LEFT - self._right, 1), max(self.height() - TOP - BOTTOM, 1)
        if self._is_square():
            wide = high = min(wide, high)
        return QRectF(LEFT, TOP, wide, high)

    def height_in(self, wide: int) -> int:
        """Return the height at which square cells use this width; of others the preferred height."""
        square = self._is_square() and not self._row_names
        return max(150, wide - LEFT - self._right + TOP + BOTTOM) if square else self.sizeHint().height()

    @property
    def _shape(self) -> tuple[int, int]:
        rows, columns = self.heat.values.shape if self.heat is not None else (0, 0)
        return rows, columns

    def _is_square(self) -> bool:
        return self.heat is not None and self._shape[0] == self._shape[1]

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        row, column = self.cell_at(event.position())
        if self._row_names:
            if row >= 0 and event.button() == Qt.MouseButton.LeftButton:
                self.cell_chosen.emit(row, column)
        elif row >= 0:
            self.chosen.emit(row)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._row_names:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._at != NOWHERE:
                self.cell_chosen.emit(*self._at)
            elif not self._move_by_key(event):
                super().keyPressEvent(event)
            return
        if self.heat is None or event.key() not in MOVES:
            super().keyPressEvent(event)
            return
        if self._at == NOWHERE:
            self.point_at((max(self._framed_row, 0), 0))
        self._move_by_key(event)
        if self._at[0] != self._framed_row:
            self.chosen.emit(self._at[0])

    def words_at(self, row: int, column: int) -> str:
        """Return the text that a screen reader reads for a cell."""
        if self._row_names:
            cell = f"{self._row_names[row]}, {self._column_names[column] if self._column_names else column + 1}"
        else:
            cell = f"row {row + 1}, column {column + 1}"
        return f"{cell}: {'no value' if self.heat is None else number_in(self.heat.values[row, column])}"

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter, frame = QPainter(self), self.room()
        if self._lies and self._ground is None:
            theme.fill_with(painter, theme.color("sunken"))
            painter.drawRoundedRect(frame, theme.RADIUS, theme.RADIUS)
            theme.text_pen(painter, theme.SMALL_PX, "secondary")
            wraps = int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap)
            painter.drawText(frame.adjusted(16, 0, -16, 0), wraps, self.accessibleName())
        elif self._lies:
            paint_square(painter, frame.toRect(), self._ground)
        if self.heat is None or not self.heat.values.size:
            return
        if not np.isfinite(self.heat.values).all():
            # No color of the scale is hatched: these cells have no number.
            painter.fillRect(frame, QBrush(theme.color("disabled"), Qt.BrushStyle.BDiagPattern))
        if self._image is not None:
            painter.drawImage(frame, self._image)
        if self._row_names:
            self._write_names(painter, frame, self.heat)
            self._paint_lines(painter, frame, self.heat)
        else:
            self._paint_axes(painter, frame, self.heat)
        self._paint_bar(painter, frame, self.heat)
        self._paint_marks(painter, frame, self.heat)

    def _paint_axes(self, painter: QPainter, frame: QRectF, heat: HeatMap) -> None:
        theme.text_pen(painter, theme.SMALL_PX, "secondary")
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

    def _paint_bar(self, painter: QPainter, frame: QRectF, heat: HeatMap) -> None:
        if self._lies:
            bar = QRectF(frame.left(), frame.bottom() + 6, frame.width(), BAR)
            painter.drawImage(bar, picture(np.linspace(0, 1, 128)[None], self._scale))
            theme.text_pen(painter, theme.SMALL_PX, "secondary")
            below = QRectF(bar.left(), bar.bottom() + 2, bar.width(), UNDER_PICTURE)
            texts = ("\n".join(lines) for lines in zip(map(number_in, (heat.low, heat.high)), heat.ends))
            for name, text in zip(("Left", "Right", "HCenter"), (*texts, "0")):
                painter.drawText(below, int(getattr(Qt.AlignmentFlag, f"Align{name}")), text)
            return
        bar = QRectF(frame.right() + 8, frame.top(), BAR, frame.height())
        painter.drawImage(bar, picture(np.linspace(1, 0, 128)[:, None], self._scale))
        painter.setPen(theme.color("secondary"))
        ends = [(heat.high, Qt.AlignmentFlag.AlignTop), (heat.low, Qt.AlignmentFlag.AlignBottom)]
        for value, side in [*ends, *([(0.0, Qt.AlignmentFlag.AlignVCenter)] if heat.centered else [])]:
            room = QRectF(bar.right() + 4, frame.top(), self._right - BAR - 14, frame.height())
            painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | side), number_in(value))

    def _paint_marks(self, painter: QPainter, frame: QRectF, heat: HeatMap) -> None:
        rows, columns = heat.values.shape
        high, wide = frame.height() / rows, frame.width() / columns
        if heat.cursor == heat.cursor:
            painter.setPen(QPen(QColor(theme.LIGHT.surface), 1.5, Qt.PenStyle.DashLine))
            x = frame.left() + (heat.cursor + 0.5) * wide
            painter.drawLine(QPointF(x, frame.top()), QPointF(x, frame.bottom()))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self._framed_row >= 0:
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.drawRect(
                QRectF(frame.left() - 1, frame.top() + self._framed_row * high - 1, frame.width() + 2, high + 2)
            )
        row, column = self._at
        if row >= 0:
            # White would not be seen on the white that is a difference of 0.
            ground = QColor(theme.LIGHT.text if heat.centered else theme.LIGHT.surface)
            painter.setPen(QPen(theme.color("text"), 2) if self._row_names else QPen(ground, 1))
            painter.drawRect(self.rect_of(row, column))
        if theme.theme().has_ring(self):
            painter.setPen(QPen(theme.color("focus"), 1))
            painter.drawRect(frame.adjusted(-1, -1, 1, 1))

    def _room_between_names(self, heat: HeatMap) -> QRectF:
        metrics = self.fontMetrics()
        longest = [max(map(metrics.horizontalAdvance, names)) for names in (self._row_names, self._column_names)]
        left = min(longest[0] + theme.BETWEEN, max(80, self.width() // 3))
        top = min(longest[1] + theme.BETWEEN, HEADS_PX, max(60, self.height() // 3))
        room = self._fitted(heat, left, top)
        # Names that would not be written leave their room to the cells.
        return room if self._writes_names(heat, room) else self._fitted(heat, theme.SPACE, theme.SPACE)

    def _fitted(self, heat: HeatMap, left: int, top: int) -> QRectF:
        rows, columns = heat.values.shape
        side = min((self.width() - left - self._right) / columns, (self.height() - top - 2) / rows, MOST_CELL)
        return QRectF(left, top, columns * max(side, 4.0), rows * max(side, 4.0))

    def _writes_names(self, heat: HeatMap, room: QRectF) -> bool:
        return room.left() > theme.SPACE and room.height() / len(heat.values) >= self.fontMetrics().height() - 4

    def _write_names(self, painter: QPainter, room: QRectF, heat: HeatMap) -> None:
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        metrics, size = painter.fontMetrics(), room.height() / len(heat.values)
        if not self._writes_names(heat, room):
            return
        left, top = int(room.left()) - theme.INSIDE, int(room.top()) - theme.INSIDE
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for index, name in enumerate(self._row_names):
            painter.setPen(theme.color("text" if index == self._at[0] else "secondary"))
            text = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, left)
            painter.drawText(QRectF(0, room.top() + (index + 0.5) * size - 10, left, 20), int(right), text)
        for index, name in enumerate(self._column_names):
            painter.setPen(theme.color("text" if index == self._at[1] else "secondary"))
            painter.save()
            painter.translate(room.left() + (index + 0.5) * size, top)
            painter.rotate(-90)
            text = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, top)
            painter.drawText(QRectF(0, -10, top, 20), int(Qt.AlignmentFlag.AlignVCenter), text)
            painter.restore()

    def _paint_lines(self, painter: QPainter, room: QRectF, heat: HeatMap) -> None:
        size = room.height() / len(heat.values)
        if size >= WRITTEN_CELL:
            grounds = shade(shares(heat), self._scale)
            for (row, column), value in np.ndenumerate(heat.values):
                if np.isfinite(value):
                    write_on(painter, self.rect_of(row, column), value, QColor(*grounds[row, column].tolist()))
        painter.setPen(QPen(theme.color("surface"), 2))
        for index in heat.dividers:
            x, y = room.left() + index * size, room.top() + index * size
            painter.drawLine(QPointF(x, room.top()), QPointF(x, room.bottom()))
            painter.drawLine(QPointF(room.left(), y), QPointF(room.right(), y))

    def cell_at(self, position: QPointF) -> tuple[int, int]:
        """Return row and column at a widget position; -1, -1 outside."""
        room, (rows, columns) = self.room(), self._shape
        if not rows * columns or not room.contains(position):
            return NOWHERE
        row = int((position.y() - room.top()) / room.height() * rows)
        return min(row, rows - 1), min(int((position.x() - room.left()) / room.width() * columns), columns - 1)

    def rect_of(self, row: float, column: float) -> QRectF:
        """Return the rectangle of a cell."""
        room, (rows, columns) = self.room(), self._shape
        wide, high = room.width() / max(columns, 1), room.height() / max(rows, 1)
        return QRectF(room.left() + column * wide, room.top() + row * high, wide, high)

    def point_at(self, cell: tuple[int, int]) -> None:
        """Make a cell current (-1, -1: none); the pointer becomes a hand over one."""
        if cell != self._at:
            self._at = cell
            plain = cell == NOWHERE or self._lies
            self.setCursor(Qt.CursorShape.ArrowCursor if plain else Qt.CursorShape.PointingHandCursor)
            self.setToolTip("" if cell == NOWHERE or not self._lies else self.words_at(*cell))
            self.pointed.emit(*cell)
            self.update()

    def _move_by_key(self, event: QKeyEvent) -> bool:
        """Move to the next cell for an arrow key and announce it; False for other keys."""
        rows, columns = self._shape
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


def shares(heat: HeatMap) -> Float[np.ndarray, "rows columns"]:
    """Return each cell's relative position on the scale, 0 to 1; NaN stays."""
    values, low, high = heat.values, heat.low, heat.high
    if heat.log:
        values, low, high = np.log(np.maximum(values, low)), np.log(low), np.log(high)
    return np.clip((values - low) / max(high - low, 1e-12), 0, 1)
