"""The layer of points inside a pyqtgraph view: pictures are made on a thread, the last one is moved meanwhile."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyqtgraph as pg
from jaxtyping import Bool, Float, Int, UInt8
from PySide6.QtCore import QObject, QPointF, QRectF, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QPainter

from explorer.widgets.point_map import raster
from explorer.widgets.point_map.grid import PointGrid
from explorer.widgets.point_map.raster import DIMMED, HIDDEN, PLAIN, Points, Request, Sight

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


class _Courier(QObject):
    """Carries what the layer's thread made to the GUI thread; outlives the layer if it must."""

    arrived = Signal(object, object)


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
        self._worker = _Worker()
        self.destroyed.connect(self._worker.end)
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
        self._on_thread(
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
        self._on_thread(lambda: _frame(request), self._show)

    def _load_kernels(self) -> None:
        """Loads the compiled kernels on a thread of their own, then draws again with them."""
        courier = _Courier()
        courier.arrived.connect(self._deliver)
        work = (_carry, raster.load_kernels, lambda _module: self._redraw(), courier)
        threading.Thread(target=work[0], args=work[1:], name="point-map-kernels", daemon=True).start()

    def _show(self, frame: _Frame) -> None:
        self._busy = False
        self._frame = frame
        self.update()
        if self._stale:
            self._soon.start()
        else:
            self.drawn.emit()

    def _on_thread(self, work: Callable[[], object], done: Callable[[object], object]) -> None:
        courier = _Courier()
        courier.arrived.connect(self._deliver)
        self._worker.do(_carry, work, done, courier)

    def _deliver(self, done: Callable[[object], object], answer: object) -> None:
        if isinstance(answer, BaseException):
            self._busy = False
            raise answer
        done(answer)


class _Worker:
    """One thread that does one thing after the other. A daemon: closing the window never waits for a picture."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[tuple[Any, ...] | None] = queue.SimpleQueue()
        self._started = False

    def do(self, *call: Any) -> None:
        """Calls the first argument with the others, after everything asked before."""
        if not self._started:
            self._started = True
            threading.Thread(target=_work_off, args=(self._work,), name="point-map", daemon=True).start()
        self._work.put(call)

    def end(self, *_: object) -> None:
        """The thread ends when it has done what was asked."""
        self._work.put(None)


def _work_off(work: queue.SimpleQueue[tuple[Any, ...] | None]) -> None:
    while (call := work.get()) is not None:
        call[0](*call[1:])


def _carry(work: Callable[[], object], done: Callable[[object], object], courier: _Courier) -> None:
    try:
        answer = work()
    except BaseException as error:  # raised again on the GUI thread, where the hooks show it
        answer = error
    courier.arrived.emit(done, answer)


def _frame(request: Request) -> _Frame:
    picture = raster.draw(request)
    height, width = picture.shape[:2]
    image = QImage(picture.data, width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied).copy()
    image.setDevicePixelRatio(request.pixel_ratio)
    return _Frame(image, request.sight)
