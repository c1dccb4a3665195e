"""A matrix that zooms from very many cells to one, with images on its axes when zoomed in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from jaxtyping import Float
from msgspec import Struct
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap, QWheelEvent
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.widgets.accessible import present
from explorer.widgets.heat_map import MOVES, NOWHERE, write_on
from explorer.widgets.viridis import picture

MARGIN: Final = 52
"""Left and below: room for pictures, or for the numbers of the places."""
NEAR_PX: Final = 22
"""From this size of a cell on, pictures stand on the axes; from twice that on, the value in the cell."""
STEP: Final = 1.25


class Area(Struct, frozen=True):
    """The visible part, in cells; rows run from `top` to `bottom`, columns from `left` to `right`."""

    top: float
    bottom: float
    left: float
    right: float

    @property
    def whole(self) -> tuple[int, int, int, int]:
        """The smallest range of whole cells that contains the area: top, bottom, left, right."""
        return math.floor(self.top), math.ceil(self.bottom), math.floor(self.left), math.ceil(self.right)


class MatrixMap(QWidget):
    """Cells of a square matrix; its user supplies the image of the visible part.

    The wheel with Ctrl zooms about the pointer, dragging moves, a double click shows all; plus, minus and Home do the
    same, and arrow keys with Ctrl. Arrow keys alone point at the next cell, Enter clicks it.
    """

    area_changed = Signal()  # Another part is looked at.
    pointed = Signal(int, int)  # Row and column under the pointer, -1 for none.
    clicked = Signal(int, int)  # Row and column that were clicked.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, mouseTracking=True)
        self.size_cells = 0
        self.area = Area(0, 1, 0, 1)
        self.picture_of: Callable[[int], QPixmap | None] = lambda _place: None
        self._image: QImage | None = None
        self._image_area = Area(0, 1, 0, 1)
        self._values: Float[np.ndarray, "r c"] = np.zeros((0, 0))
        self._marked: tuple[int, int] = (-1, -1)
        self._at: tuple[int, int] = NOWHERE
        self._selected: frozenset[int] = frozenset()
        self._grip: QPointF | None = None
        self._moved = False
        present(self, "Chart")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(180, 180)
        theme.theme().changed.connect(self.update)

    # What is shown ----------------------------------------------------------------------------------------------

    def set_size(self, cells: int) -> None:
        """Set the matrix to `cells` x `cells`, and show all of it if the size changed."""
        if cells != self.size_cells:
            self.size_cells = cells
            self._image = None
            self.show_all()

    def show_values(
        self, values: Float[np.ndarray, "r c"], area: tuple[int, int, int, int], low: float, high: float
    ) -> None:
        """Fill `area` (top, bottom, left, right) evenly with `values`, colored from `low` to `high`."""
        self._values = np.asarray(values)
        self._image = picture((self._values - low) / max(high - low, 1e-9))
        self._image_area = Area(*map(float, area))
        self.update()

    def set_selected(self, indices: Sequence[int]) -> None:
        """Mark these rows and columns on the axes."""
        self._selected = frozenset(int(p) for p in indices)
        self.update()

    def mark(self, row: int, column: int) -> None:
        """Ring a cell; -1 for none."""
        self._marked = (row, column)
        self.update()

    def show_all(self) -> None:
        """Show the whole matrix."""
        self.look_at(Area(0, self.size_cells, 0, self.size_cells))

    def look_at(self, area: Area) -> None:
        """Show a part, kept inside the matrix and at least one cell large."""
        n = float(max(self.size_cells, 1))
        height = min(max(area.bottom - area.top, 1.0), n)
        width = min(max(area.right - area.left, 1.0), n)
        top = min(max(area.top, 0.0), n - height)
        left = min(max(area.left, 0.0), n - width)
        new = Area(top, top + height, left, left + width)
        if new != self.area:
            self.area = new
            self.area_changed.emit()
        self.update()

    def zoom(self, factor: float, about: QPointF | None = None) -> None:
        """Zoom in (`factor` > 1) about a widget position, by default its center."""
        room, area = self.room, self.area
        about = room.center() if about is None else about
        across, down = (about.x() - room.left()) / room.width(), (about.y() - room.top()) / room.height()
        height, width = (area.bottom - area.top) / factor, (area.right - area.left) / factor
        row, column = area.top + down * (area.bottom - area.top), area.left + across * (area.right - area.left)
        top, left = row - down * height, column - across * width
        self.look_at(Area(top, top + height, left, left + width))

    @property
    def room(self) -> QRectF:
        """The square in which cells are drawn."""
        side = max(16.0, min(self.width() - MARGIN - 4.0, self.height() - MARGIN - 4.0))
        return QRectF(MARGIN, 2, side, side)

    @property
    def cell_px(self) -> float:
        return self.room.height() / max(self.area.bottom - self.area.top, 1e-9)

    def cell_at(self, position: QPointF) -> tuple[int, int]:
        """Return row and column at a widget position, (-1, -1) outside."""
        room, area = self.room, self.area
        if not room.contains(position) or not self.size_cells:
            return -1, -1
        row = area.top + (position.y() - room.top()) / room.height() * (area.bottom - area.top)
        column = area.left + (position.x() - room.left()) / room.width() * (area.right - area.left)
        return min(int(row), self.size_cells - 1), min(int(column), self.size_cells - 1)

    def place_of(self, row: float, column: float) -> QPointF:
        """Return the position of a cell's upper left corner."""
        room, area = self.room, self.area
        x = room.left() + (column - area.left) / (area.right - area.left) * room.width()
        y = room.top() + (row - area.top) / (area.bottom - area.top) * room.height()
        return QPointF(x, y)

    # Events -----------------------------------------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        if not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()
            return
        self.zoom(STEP ** (event.angleDelta().y() / 120), event.position())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._grip, self._moved = event.position(), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is None:
            self.pointed.emit(*self.cell_at(event.position()))
            return
        offset = event.position() - self._grip
        if self._moved or offset.manhattanLength() > 4:
            self._moved, self._grip = True, event.position()
            room, area = self.room, self.area
            down = offset.y() / room.height() * (area.bottom - area.top)
            across = offset.x() / room.width() * (area.right - area.left)
            self.look_at(Area(area.top - down, area.bottom - down, area.left - across, area.right - across))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._grip is not None and not self._moved:
            cell = self.cell_at(event.position())
            if cell != (-1, -1):
                self.clicked.emit(*cell)
        self._grip = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.show_all()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._at = NOWHERE
        self.pointed.emit(-1, -1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        area, key = self.area, event.key()
        down, across = (area.bottom - area.top) / 8, (area.right - area.left) / 8
        moves = {
            Qt.Key.Key_Up: (-down, 0.0),
            Qt.Key.Key_Down: (down, 0.0),
            Qt.Key.Key_Left: (0.0, -across),
            Qt.Key.Key_Right: (0.0, across),
        }
        if key in MOVES and not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._point_by_key(*MOVES[Qt.Key(key)])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._at != NOWHERE:
            self.clicked.emit(*self._at)
        elif key in moves:
            dy, dx = moves[key]
            self.look_at(Area(area.top + dy, area.bottom + dy, area.left + dx, area.right + dx))
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom(STEP)
        elif key == Qt.Key.Key_Minus:
            self.zoom(1 / STEP)
        elif key == Qt.Key.Key_Home:
            self.show_all()
        else:
            super().keyPressEvent(event)

    def _point_by_key(self, down: int, right: int) -> None:
        """Make the next cell current and scroll to it."""
        if not self.size_cells:
            return
        area = self.area
        before = self._at if self._at != NOWHERE else (int(area.top) - down, int(area.left) - right)
        row, column = (min(max(index, 0), self.size_cells - 1) for index in (before[0] + down, before[1] + right))
        self._at = (row, column)
        height, width = area.bottom - area.top, area.right - area.left
        top = min(max(area.top, row + 1 - height), row)
        left = min(max(area.left, column + 1 - width), column)
        self.look_at(Area(top, top + height, left, left + width))
        self.pointed.emit(row, column)
        self.update()

    # Painting ---------------------------------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = theme.smooth_painter(self)
        room = self.room
        painter.fillRect(room, theme.color("sunken"))
        if self._image is not None:
            painter.save()
            painter.setClipRect(room)
            area = self._image_area
            target = QRectF(self.place_of(area.top, area.left), self.place_of(area.bottom, area.right))
            painter.drawImage(target, self._image)
            if self.cell_px >= 2 * NEAR_PX:
                self._paint_numbers(painter)
            self._paint_mark(painter)
            painter.restore()
        self._paint_axes(painter)
        if theme.theme().has_ring(self):
            painter.setClipping(False)
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(room)

    def _paint_numbers(self, painter: QPainter) -> None:
        area = self._image_area
        height, width = self._values.shape
        if (height, width) != (area.bottom - area.top, area.right - area.left):
            return
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        for i in range(height):
            for j in range(width):
                corners = (self.place_of(area.top + i + down, area.left + j + down) for down in (0, 1))
                write_on(painter, QRectF(*corners), self._values[i, j], self._image.pixelColor(j, i))

    def _paint_mark(self, painter: QPainter) -> None:
        for row, column in {self._marked, self._at} - {NOWHERE}:
            self._ring(painter, row, column)

    def _ring(self, painter: QPainter, row: int, column: int) -> None:
        cell = QRectF(self.place_of(row, column), self.place_of(row + 1, column + 1))
        if cell.width() < 8:
            cell = QRectF(cell.center().x() - 4, cell.center().y() - 4, 8, 8)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for ink, grow in ((theme.LIGHT.text, 1.5), (theme.LIGHT.surface, 0.0)):
            painter.setPen(QColor(ink))
            painter.drawRect(cell.adjusted(-grow, -grow, grow, grow))

    def _paint_axes(self, painter: QPainter) -> None:
        if not self.size_cells:
            return
        if self.cell_px >= NEAR_PX:
            self._paint_pictures(painter)
        else:
            self._paint_places(painter)
        theme.fill_with(painter, theme.color("accent"))
        top, bottom, left, right = self.area.whole
        room = self.room
        painter.setClipRect(QRectF(0, room.top(), room.right(), self.height()))
        thick = max(2.0, self.cell_px - 2)
        for index in self._selected:
            if top <= index < bottom:
                painter.drawRect(QRectF(room.left() - 4, self.place_of(index, 0).y(), 3, thick))
            if left <= index < right:
                painter.drawRect(QRectF(self.place_of(0, index).x(), room.bottom() + 1, thick, 3))

    def _paint_pictures(self, painter: QPainter) -> None:
        room, edge = self.room, min(self.cell_px - 2, MARGIN - 10.0)
        top, bottom, left, right = self.area.whole
        painter.save()
        painter.setClipRect(QRectF(0, room.top(), self.width(), self.height()))
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        for index in range(max(top, 0), min(bottom, self.size_cells)):
            middle = self.place_of(index + 0.5, 0).y()
            if room.top() <= middle <= room.bottom():
                self._paint_picture(painter, index, QRectF(room.left() - 6 - edge, middle - edge / 2, edge, edge))
        for index in range(max(left, 0), min(right, self.size_cells)):
            middle = self.place_of(0, index + 0.5).x()
            if room.left() <= middle <= room.right():
                self._paint_picture(painter, index, QRectF(middle - edge / 2, room.bottom() + 6, edge, edge))
        painter.restore()

    def _paint_picture(self, painter: QPainter, index: int, room: QRectF) -> None:
        picture = self.picture_of(index)
        if picture is None:
            painter.fillRect(room, theme.color("sunken"))
            return
        scale = min(room.width() / max(picture.width(), 1), room.height() / max(picture.height(), 1))
        width, height = picture.width() * scale, picture.height() * scale
        target = QRectF(room.center().x() - width / 2, room.center().y() - height / 2, width, height)
        painter.drawPixmap(target, picture, QRectF(picture.rect()))

    def _paint_places(self, painter: QPainter) -> None:
        room, area = self.room, self.area
        theme.text_pen(painter, theme.SMALL_PX, "secondary")
        right, center = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignCenter
        for index in ticks(area.top, area.bottom):
            y = min(max(self.place_of(index, 0).y(), room.top() + 8), room.bottom() - 8)
            painter.drawText(QRectF(12, y - 8, MARGIN - 18, 16), right, f"{index:,}")
        for index in ticks(area.left, area.right):
            x = min(max(self.place_of(0, index).x(), room.left() + 8), room.right() - 14)
            painter.drawText(QRectF(x - 30, room.bottom() + 6, 60, 16), center, f"{index:,}")
        painter.drawText(QRectF(room.left(), room.bottom() + 24, room.width(), 18), center, "texts, in order")
        painter.save()
        painter.translate(8, room.center().y())
        painter.rotate(-90)
        painter.drawText(QRectF(-100, -8, 200, 16), center, "images, in order")
        painter.restore()


class ColorScale(QWidget):
    """A color scale: a thin bar with the values at its ends."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.low, self.high, self.words = 0.0, 1.0, "cosine"
        self.setFixedHeight(18)
        theme.theme().changed.connect(self.update)

    def show_range(self, low: float, high: float, label: str) -> None:
        """Set the values of the lowest and the highest color."""
        self.low, self.high, self.words = low, high, label
        self.setAccessibleName(f"{label} from {low:.2f} to {high:.2f}")
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        theme.text_pen(painter, theme.SMALL_PX, "secondary")
        middle = Qt.AlignmentFlag.AlignVCenter
        low, high = (f"{v:.2f}".replace("-", "−") for v in (self.low, self.high))
        painter.drawText(QRectF(0, 0, 96, 18), middle, self.words)
        painter.drawText(QRectF(96, 0, 36, 18), Qt.AlignmentFlag.AlignRight | middle, low)
        bar = QRectF(138, 5, min(max(self.width() - 188, 24), 220), 8)
        painter.drawImage(bar, picture(np.linspace(0, 1, 256)[None, :]))
        painter.drawText(QRectF(bar.right() + 6, 0, 44, 18), middle, high)


def ticks(first: float, last: float) -> list[int]:
    """Return round integers between the ends, at most 6 of them."""
    rough = max(last - first, 1e-9) / 5
    decade = 10 ** math.floor(math.log10(max(rough, 1)))
    step = max(1, int(next(m * decade for m in (1, 2, 5, 10) if m * decade >= rough)))
    return list(range(math.ceil(first / step) * step, math.floor(last) + 1, step))
