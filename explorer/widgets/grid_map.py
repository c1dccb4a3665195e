"""A heat map in a fixed frame: colors by value, words under the pointer, a row chosen by a click or the arrow keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.widgets.cell_map import NOWHERE, CellMap
from explorer.widgets.viridis import picture

LEFT, BOTTOM, RIGHT, TOP = 22, 36, 66, 4
BAR = 10


@dataclass(frozen=True)
class Heat:
    """What is drawn; row 0 is on top.

    Attributes:
        low, high: Ends of the colors; `log`: they move in equal factors.
        x_ticks: Column and words.
        cursor: Column of a dashed line; NaN for none.
        marked: Row in a frame; -1 for none.
    """

    values: Float[np.ndarray, "rows columns"]
    low: float
    high: float
    log: bool
    x_label: str
    y_label: str
    x_ticks: tuple[tuple[float, str], ...] = ()
    cursor: float = float("nan")
    marked: int = -1


class GridMap(CellMap):
    """Paints a `Heat`.

    Signals:
        chosen: The row that was clicked, or moved to with the arrow keys.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.heat: Heat | None = None
        self.setMinimumSize(150, 150)

    def show_heat(self, heat: Heat) -> None:
        """Draws this."""
        self.heat, pointed = heat, self._at
        self.show_cells(heat.values, shares(heat))
        # The next answer while a slider moves: the pointer is where it was.
        self._at = pointed if pointed[0] < len(heat.values) and pointed[1] < heat.values.shape[1] else NOWHERE

    def sizeHint(self) -> QSize:
        return QSize(300, 260)

    def room(self) -> QRectF:
        """Where the cells are, in pixels of the widget; square where there are as many rows as columns."""
        wide, high = max(self.width() - LEFT - RIGHT, 1), max(self.height() - TOP - BOTTOM, 1)
        if self.heat is not None and self.heat.values.shape[0] == self.heat.values.shape[1]:
            wide = high = min(wide, high)
        return QRectF(LEFT, TOP, wide, high)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        row, _ = self.cell_at(event.position())
        if row >= 0:
            self.chosen.emit(row)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        if self.heat is None or event.key() not in steps:
            super().keyPressEvent(event)
            return
        row = min(max(self.heat.marked + steps[Qt.Key(event.key())], 0), len(self.heat.values) - 1)
        self.chosen.emit(row)

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.heat is None:
            return
        painter = QPainter(self)
        frame = self.room()
        painter.drawImage(frame, self._image)
        self._paint_axes(painter, frame, self.heat)
        self._paint_bar(painter, frame, self.heat)
        self._paint_marks(painter, frame, self.heat)

    def _paint_axes(self, painter: QPainter, frame: QRectF, heat: Heat) -> None:
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        painter.setPen(theme.color("secondary"))
        columns = heat.values.shape[1]
        for at, words in heat.x_ticks:
            x = frame.left() + (at + 0.5) / columns * frame.width()
            room = QRectF(x - 30, frame.bottom() + 2, 60, 15)
            painter.drawText(room, int(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop), words)
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
        painter.drawImage(bar, picture(np.linspace(1, 0, 128)[:, None]))
        painter.setPen(theme.color("secondary"))
        for value, side in ((heat.high, Qt.AlignmentFlag.AlignTop), (heat.low, Qt.AlignmentFlag.AlignBottom)):
            room = QRectF(bar.right() + 4, frame.top(), RIGHT - BAR - 14, frame.height())
            painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | side), written(value))

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
            painter.setPen(QPen(QColor(theme.LIGHT.surface), 1))
            painter.drawRect(self.rect_of(row, column))
        if self.hasFocus():
            painter.setPen(QPen(theme.color("focus"), 1))
            painter.drawRect(frame.adjusted(-1, -1, 1, 1))


def written(value: float) -> str:
    """An end of the scale in few letters: `1,024`, `16.9`, `0.0001`."""
    return (f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}").replace("-", "−")


def shares(heat: Heat) -> Float[np.ndarray, "rows columns"]:
    """Where each cell stands between both ends of the scale, 0 to 1; NaN stays."""
    values, low, high = heat.values, heat.low, heat.high
    if heat.log:
        values, low, high = np.log(np.maximum(values, low)), np.log(low), np.log(high)
    return np.clip((values - low) / max(high - low, 1e-12), 0, 1)
