"""The layer of points inside a pyqtgraph view: pictures are made on a thread, the last one is moved meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from jaxtyping import Bool, Float, Int, UInt8
from PySide6.QtCore import QPointF, QRectF, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QPainter

from explorer.widgets.point_map import raster
from explorer.widgets.point_map.grid import PointGrid
from explorer.widgets.point_map.raster import DIMMED, HIDDEN, PLAIN, Points, Request, Sight
from explorer.widgets.point_map.worker import Worker

INDEXED_AT_ONCE = 20_000
"""Points whose index is built where they are set; more are sorted on the layer's thread."""


@dataclass(frozen=True)
class _Frame:
    image: QImage
    sight: Sight


@dataclass(frozen=True)
class _Placed:
    """Places and shapes in the order of the grid's cells."""

    grid: PointGrid
    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    diamond: Bool[np.ndarray, " n"]


def _place(xy: Float[np.ndarray, "n 2"], diamond: Bool[np.ndarray, " n"]) -> _Placed:
    grid = PointGrid(xy)
    x, y = np.ascontiguousarray(grid.xy[grid.order].T, np.float32)
    return _Placed(grid, x, y, diamond[grid.order])


class PointLayer(pg.GraphicsObject):
    """Points drawn as marks or, where they are many, as density.

    Signals:
        drawn: A picture of the present state is shown.
        indexed: The points that were set can be drawn and picked.
    """

    drawn = Signal()
    indexed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._placed = _place(np.empty((0, 2)), np.empty(0, bool))
        self.grid = self._placed.grid
        self._points: Points | None = None
        self._frame: _Frame | None = None
        self._halo = QColor("white")
        self._grey = QColor("grey")
        self._busy = self._stale = self._asked_for_kernels = False
        self._generation = 0
        self._worker, self._loader = Worker(), Worker()
        for worker in (self._worker, self._loader):
            self.destroyed.connect(worker.end)
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self._draw)
        self.set_points(np.empty((0, 2)), diamond=np.empty(0, bool))

    # What is shown ----------------------------------------------------------------------------------------------

    def set_points(self, xy: Float[np.ndarray, "n 2"], *, diamond: Bool[np.ndarray, " n"]) -> None:
        """Shows these points, all in one colour, none dimmed, until colours and states are set."""
        n = len(xy)
        self._diamond = np.ascontiguousarray(diamond, bool)
        self._sorted_state, self._sorted_colour = np.empty(0, np.uint8), np.empty(0, np.int32)
        self._colour = np.zeros(n, np.int32)
        self._palette = np.zeros((1, 3), np.uint8)
        self._state = np.full(n, PLAIN, np.uint8)
        self.move_points(xy)

    def move_points(self, xy: Float[np.ndarray, "n 2"]) -> None:
        """Puts the same points elsewhere; colours and states stay."""
        if len(xy) != len(self._state):
            raise ValueError(f"{len(xy)} places for {len(self._state)} points")
        self._generation += 1
        if len(xy) <= INDEXED_AT_ONCE:
            self._take_grid(_place(xy, self._diamond))
            return
        generation, diamond = self._generation, self._diamond
        self._worker.do(
            lambda: _place(xy, diamond), lambda placed: generation == self._generation and self._take_grid(placed)
        )

    def set_colours(self, colour: Int[np.ndarray, " n"], palette: UInt8[np.ndarray, "k 3"]) -> None:
        """Gives point i the colour `palette[colour[i]]`."""
        self._colour, self._palette = np.ascontiguousarray(colour, np.int32), palette.astype(np.uint8)
        if len(self.grid) == len(self._colour):
            self._sorted_colour = self._colour[self.grid.order]
        self._arrange()

    def set_states(
        self, *, lit: Bool[np.ndarray, " n"] | None = None, shown: Bool[np.ndarray, " n"] | None = None
    ) -> None:
        """Greys out all but the `lit` points (None: all are lit) and leaves out all but the `shown` ones."""
        state = np.full(len(self._state), PLAIN, np.uint8)
        if lit is not None:
            state[~lit] = DIMMED
        if shown is not None:
            state[~shown] = HIDDEN
        self._state = state
        if len(self.grid) == len(state):
            self._sorted_state = state[self.grid.order]
        self._arrange()

    def set_ground(self, *, halo: QColor, grey: QColor) -> None:
        """The colour the points stand on, drawn thinly around each, and the grey of dimmed points."""
        self._halo, self._grey = halo, grey
        self._arrange()

    @property
    def shown(self) -> Bool[np.ndarray, " n"]:
        """Which points are drawn at all; hidden ones can be neither picked nor selected."""
        return self._state != HIDDEN

    def place(self, point: int) -> QPointF:
        """Where a point stands."""
        return QPointF(*self.grid.xy[point])

    # Drawing ----------------------------------------------------------------------------------------------------

    def boundingRect(self) -> QRectF:
        left, bottom, right, top = self.grid.bounds
        width, height = right - left, top - bottom
        return QRectF(left - width, bottom - height, 3 * width, 3 * height)

    def viewTransformChanged(self) -> None:
        super().viewTransformChanged()
        self._redraw()

    def paint(self, painter: QPainter, *_: object) -> None:
        if self._frame is None:
            return
        image, sight = self._frame.image, self._frame.sight
        target = painter.worldTransform().mapRect(
            QRectF(sight.left, sight.bottom, sight.right - sight.left, sight.top - sight.bottom)
        )
        painter.save()
        painter.resetTransform()
        size = image.deviceIndependentSize()
        if abs(target.width() - size.width()) < 0.6 and abs(target.height() - size.height()) < 0.6:
            painter.drawImage(QPointF(round(target.x()), round(target.y())), image)
        else:
            painter.drawImage(target, image)
        painter.restore()

    def _take_grid(self, placed: _Placed) -> None:
        self.prepareGeometryChange()
        self.grid, self._placed = placed.grid, placed
        self._points = None
        if len(self.grid) == len(self._state):
            self._sorted_state = self._state[self.grid.order]
            self._sorted_colour = self._colour[self.grid.order]
        self._arrange()
        self.indexed.emit()

    def _arrange(self) -> None:
        """Gathers what the rasteriser reads, all of it in the order of the grid's cells."""
        if len(self._sorted_state) != len(self._placed.x):
            return
        grey = [[self._grey.red(), self._grey.green(), self._grey.blue()]]
        self._points = Points(
            x=self._placed.x,
            y=self._placed.y,
            state=self._sorted_state,
            colour=self._sorted_colour,
            diamond=self._placed.diamond,
            palette=np.vstack([self._palette, np.array(grey, np.uint8)]),
        )
        self._redraw()

    def _redraw(self) -> None:
        self._stale = True
        self._soon.start()

    def _request(self) -> Request | None:
        box = self.getViewBox()
        if box is None or self._points is None or self.scene() is None or not self.scene().views():
            return None
        view, ratio = box.viewRect(), self.scene().views()[0].devicePixelRatioF()
        width, height = round(box.width() * ratio), round(box.height() * ratio)
        if width < 2 or height < 2 or not view.width() > 0 or not view.height() > 0:
            return None
        # pyqtgraph's views grow upwards: what QRectF calls top is the least ordinate.
        sight = Sight(view.left(), view.top(), view.right(), view.bottom(), width, height)
        ranges = self.grid.ranges(sight.left, sight.bottom, sight.right, sight.top)
        visible = int((ranges[:, 1] - ranges[:, 0]).sum())
        halo = (self._halo.red(), self._halo.green(), self._halo.blue())
        return Request(self._points, ranges, sight, halo, ratio, visible)

    def _draw(self) -> None:
        if self._busy or not self._stale:
            return
        request = self._request()
        if request is None:
            return
        if raster.wants_kernels(request.visible) and not self._asked_for_kernels:
            self._asked_for_kernels = True
            self._load_kernels()
        self._busy, self._stale = True, False
        self._worker.do(lambda: _frame(request), self._show, failed=self._give_up)

    def _load_kernels(self) -> None:
        """Loads the compiled kernels on a thread of their own, then draws again with them."""
        self._loader.do(raster.load_kernels, lambda _module: self._redraw())

    def _give_up(self) -> None:
        self._busy = False

    def _show(self, frame: _Frame) -> None:
        self._busy = False
        self._frame = frame
        self.update()
        if self._stale:
            self._soon.start()
        else:
            self.drawn.emit()


def _frame(request: Request) -> _Frame:
    picture = raster.draw(request)
    height, width = picture.shape[:2]
    image = QImage(picture.data, width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied).copy()
    image.setDevicePixelRatio(request.pixel_ratio)
    return _Frame(image, request.sight)
