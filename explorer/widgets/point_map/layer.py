"""The point layer of a pyqtgraph view: images are rendered on a thread, the last one is moved meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from jaxtyping import Bool, Float, Float32, Int, UInt8
from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QPainter

from explorer.widgets.point_map import rasterizer
from explorer.widgets.point_map.cell_sums import CellSums, cell_sums
from explorer.widgets.point_map.grid import PointGrid, writable
from explorer.widgets.point_map.loaded import loaded_kernels
from explorer.widgets.point_map.loading import are_cached, are_wanted, load_kernels
from explorer.widgets.point_map.rasterizer import GridPoints, PointStyle, RasterRequest, States, Viewport
from explorer.widgets.point_map.scene import MapScene
from explorer.widgets.point_map.worker import Newest, Worker

INDEXED_AT_ONCE: Final = 20_000
"""Points whose index is built where they are set; more are sorted on the layer's thread."""
LOADED_FIRST: Final = 500_000
"""Points past which sorting waits for the kernels rather than doing it slowly."""
MOVING_POINTS: Final = 1_500_000
"""Points read one by one for a picture while the map moves; of more, sums are drawn until it rests, or a sample."""
MOVING_PIXELS: Final = 2_600_000
"""Device pixels drawn while the map moves; larger maps are drawn at half the resolution until it rests."""
REST_MS: Final = 90
SAMPLED_FIRST: Final = 4_000_000
"""Points past which a sample of them is drawn until all are sorted."""
SAMPLE: Final = 500_000

Overlay = Callable[[QPainter, MapScene], None]


@dataclass(frozen=True)
class ShownFrame:
    """An image that is shown."""

    sight: Viewport  # What it shows, and its size in device pixels.
    image: QImage  # The picture, on the ground's color.
    drawn: int  # Points that were read for it.
    visible: int  # Points that it stands for: those in sight, and some at its edge.
    exact: bool  # Every point was read, at full resolution.
    marks: bool  # Points are marks, not density.
    # Points in color per pixel before spreading, of exact frames if `keep_density` was asked.
    density: Float32[np.ndarray, "height width"] | None
    pixels: UInt8[np.ndarray, "height width 4"] = field(repr=False)


class _Drawn(Struct, frozen=True):
    epoch: int
    picture: rasterizer.RasterImage
    sight: Viewport
    ratio: float
    exact: bool


class PointLayer(pg.GraphicsObject):
    """Points drawn as marks or, if there are many, as a density.

    Attributes:
        sums: Points in the order of the grid, and their sums in fine cells; none until they are summed.
    """

    drawn = Signal()  # An exact picture of the present state is shown.
    framed = Signal()  # Another picture is shown, perhaps one made while the map moves.
    sampled = Signal()  # A sample of the points that were set can be drawn.
    indexed = Signal()  # The points that were set can be drawn and picked.
    sorting = Signal(float)  # How far the index of new points is, 0 to 1.

    def __init__(self) -> None:
        super().__init__()
        self.grid = PointGrid(np.empty((0, 2)))
        self._look = PointStyle(np.empty(0, np.uint16), np.empty(0, bool), np.zeros((1, 3), np.uint8))
        self.states = States()
        self._count, self._is_former = 0, False
        self.arranged: tuple[PointGrid, GridPoints] | None = None
        self.frame: ShownFrame | None = None
        self._halo, self._gray, self._ground = QColor("white"), QColor("gray"), QColor("white")
        self._stale = self._asked_for_kernels = self._wants_density = False
        self._sight: Viewport | None = None
        self._overlays: list[Overlay] = []
        self._epoch = self._asked = 0
        self._places, self._arrangements, self._requests = Newest(), Newest(), Newest()
        self._samples, self._previews, self._summations = Newest(), Newest(), Newest()
        self.sums: tuple[GridPoints | None, tuple[CellSums, ...]] = (None, ())
        self.is_preview = False
        self._worker, self._sorter, self._loader = Worker(self), Worker(self), Worker(self)
        self._soon = QTimer(self, singleShot=True, interval=0, timeout=self._draw)
        self._rest = QTimer(self, singleShot=True, interval=REST_MS, timeout=self._settle)
        # Not for points that move on with each picture, as in a film of the training.
        self._summing = QTimer(self, singleShot=True, interval=REST_MS, timeout=self._ask_for_sums)
        self.set_points(np.empty((0, 2)), diamond=np.empty(0, bool))

    # What is shown ----------------------------------------------------------------------------------------------

    def set_points(
        self, xy: Float[np.ndarray, "n 2"], *, diamond: Bool[np.ndarray, " n"], instead: bool = False
    ) -> None:
        """Show these points in one color, none dimmed, until colors and states are set.

        `instead`: the picture of those that are shown is not taken away before there is one of these.
        """
        if not instead:
            self._epoch += 1
            self.is_preview = False
            slots = (self._places, self._samples, self._arrangements, self._requests, self._previews, self._summations)
            for slot in slots:
                slot.take()
            self.arranged = self.frame = None
            self.sums = (None, ())
        self._count, self._is_former = len(xy), True
        color = np.zeros(len(xy), np.uint16)
        self._look = PointStyle(color, writable(diamond, bool), np.zeros((1, 3), np.uint8))
        self.states = States()
        if len(xy) > SAMPLED_FIRST and self._samples.put((self._epoch, xy)):
            self._ask(self._samples.work_with(_sampled), self._take_sample)
        self.move_points(xy)

    def move_points(self, xy: Float[np.ndarray, "n 2"]) -> None:
        """Move the points; colors and states stay."""
        if len(xy) != self._count:
            raise ValueError(f"{len(xy)} places for {self._count} points")
        if len(xy) <= INDEXED_AT_ONCE:
            self._places.take()
            self._take_grid(PointGrid(xy))
            return
        self._ask_for_kernels()
        if self._places.put((self._epoch, xy)):
            self._ask(self._places.work_with(_sorted), self._take_sorted, by=self._sorter, report=self.sorting.emit)

    def set_colors(self, color: Int[np.ndarray, " n"], palette: UInt8[np.ndarray, "k 3"]) -> None:
        """Give point i the color `palette[color[i]]`.

        Raises:
            ValueError: More colors than points can have.
        """
        if len(palette) > rasterizer.MOST_COLORS:
            raise ValueError(f"{len(palette)} colors; a map has at most {rasterizer.MOST_COLORS}")
        colors = writable(color, np.uint16)
        self._look = PointStyle(colors, self._look.diamond, writable(palette, np.uint8))
        self._arrange()

    def preview(
        self,
        xy: Float[np.ndarray, "k 2"],
        of: Int[np.ndarray, " k"],
        color: Int[np.ndarray, " k"],
        palette: UInt8[np.ndarray, "c 3"],
    ) -> None:
        """Draw only the points `of`, moved, until the next image: for rotating a large cloud."""
        request = self._request()
        if request is None or len(xy) == 0:
            return
        look = PointStyle(writable(color, np.uint16), self._look.diamond[of], writable(palette, np.uint8))
        states = States(*(None if mask is None else mask[of] for mask in (self.states.lit, self.states.shown)))
        if self._previews.put((self._epoch, request, np.asarray(xy), look, states, self._count)):
            self._ask(self._previews.work_with(_previewed), self._show_preview)

    def set_states(
        self, *, lit: Bool[np.ndarray, " n"] | None = None, visible: Bool[np.ndarray, " n"] | None = None
    ) -> None:
        """Gray out all but the `lit` points (None: all are lit) and hide all but the `visible` ones."""
        self.states = States(*(None if mask is None else writable(mask, bool) for mask in (lit, visible)))
        self._arrange()

    def set_ground(self, *, halo: QColor, gray: QColor) -> None:
        """Set the background color, drawn thinly around each point, and the gray of dimmed points."""
        self._ground = self._halo = halo
        self._gray = gray
        self._redraw()

    @property
    def shown(self) -> Bool[np.ndarray, " n"]:
        """A mask of the points that are drawn; hidden ones can be neither picked nor selected."""
        return np.ones(self._count, bool) if self.states.shown is None else self.states.shown

    @property
    def allowed(self) -> Bool[np.ndarray, " n"] | None:
        """`shown`, or None if all are."""
        return self.states.shown

    def place(self, point: int) -> QPointF:
        return QPointF(*map(float, self.grid.xy[point]))

    # What others draw and ask -----------------------------------------------------------------------------------

    def keep_density(self, on: bool) -> None:
        """Set whether exact frames include the number of points per pixel."""
        self._wants_density = on
        self._redraw()

    def add_overlay(self, paint: Overlay) -> None:
        """Call `paint` after the points at every paint, with a painter in logical widget pixels."""
        self._overlays.append(paint)
        self.update()

    def points_in(
        self, left: float, bottom: float, right: float, top: float, most: int | None = None
    ) -> Int[np.ndarray, " k"]:
        """Return the shown points of a rectangle: all, ascending, or at most `most`, spread over the cells."""
        if most is not None:
            return self.grid.sample(left, bottom, right, top, most=most, allowed=self.allowed)
        points = self.grid.in_rectangle(left, bottom, right, top)
        return points if self.allowed is None else points[self.allowed[points]]

    def visible_count(self) -> int:
        """Estimate how many points are visible, never too low; includes hidden ones."""
        box = self.getViewBox()
        if box is None or not len(self.grid.order):
            return 0
        view = box.viewRect()
        window = self.grid.window(view.left(), view.top(), view.right(), view.bottom())
        return round(self.grid.per_level(window).sum() / self.grid.share)

    @property
    def is_coarse(self) -> bool:
        """Whether the image is below screen resolution because a large map is moving."""
        return self.frame is not None and self._sight is not None and self.frame.sight.width < self._sight.width

    @property
    def still(self) -> bool:
        """Whether all requests are complete: nothing is being sorted, arranged or drawn."""
        return self._asked == 0 and not self._stale and not self.moving and self.frame is not None and self.frame.exact

    @property
    def is_sorted(self) -> bool:
        """Whether `grid` contains all points set last."""
        return not self._is_former and self.grid.share == 1

    @property
    def is_sample(self) -> bool:
        """Whether a sample of the points is drawn until all are sorted."""
        return self.arranged is not None and self.arranged[0].share < 1

    @property
    def moving(self) -> bool:
        """Whether the view has just changed."""
        return self._rest.isActive()

    # Drawing ----------------------------------------------------------------------------------------------------

    def boundingRect(self) -> QRectF:
        left, bottom, right, top = self.grid.bounds
        width, height = right - left, top - bottom
        return QRectF(left - width, bottom - height, 3 * width, 3 * height)

    def viewTransformChanged(self) -> None:
        super().viewTransformChanged()
        self._redraw()

    def paint(self, painter: QPainter, *_: object) -> None:
        painter.save()
        transform = painter.worldTransform()
        painter.resetTransform()
        if self.frame is not None:
            self._paint_frame(painter, self.frame, transform)
        # Without points yet, labels and contours would be of nothing.
        if self._overlays and self.frame is not None and (scene := self._scene()) is not None:
            for overlay in self._overlays if not self.is_preview else self._overlays[:1]:
                overlay(painter, scene)
        painter.restore()

    def _paint_frame(self, painter: QPainter, frame: ShownFrame, transform: object) -> None:
        image, sight = frame.image, frame.sight
        target = transform.mapRect(QRectF(sight.left, sight.bottom, sight.right - sight.left, sight.top - sight.bottom))
        size = image.deviceIndependentSize()
        if abs(target.width() - size.width()) < 0.6 and abs(target.height() - size.height()) < 0.6:
            painter.drawImage(QPointF(round(target.x()), round(target.y())), image)
        else:
            painter.drawImage(target, image)

    def _scene(self) -> MapScene | None:
        sight = self._sight_now()
        if sight is None:
            return None
        box = self.getViewBox()
        corner = box.mapToScene(QPointF(0, 0))
        return MapScene(sight, (corner.x(), corner.y()), box.width(), box.height(), self._ratio(), self.moving)

    def _take_sorted(self, made: tuple[int, PointGrid] | None) -> None:
        if (grid := self._new_grid(made)) is not None:
            self._take_grid(grid)

    def _take_sample(self, made: tuple[int, PointGrid] | None) -> None:
        if (grid := self._new_grid(made)) is not None and self._is_former:
            self._place_grid(grid)
            self.sampled.emit()

    def _new_grid(self, made: tuple[int, PointGrid] | None) -> PointGrid | None:
        """Return the index that was made unless it is of points set earlier."""
        return made[1] if made is not None and made[0] == self._epoch and len(made[1]) == self._count else None

    def _take_grid(self, grid: PointGrid) -> None:
        self._place_grid(grid)
        self.indexed.emit()

    def _place_grid(self, grid: PointGrid) -> None:
        self.prepareGeometryChange()
        self.grid, self._is_former = grid, False
        self._arrange()

    def _arrange(self) -> None:
        """Put styles and states in the order of the grid's cells: immediately, or on the thread if there are many."""
        if self._is_former or len(self._look.color) != self._count:
            return
        task = (self.grid, self._look, self.states)
        if self._count <= INDEXED_AT_ONCE:
            self._take_points(_arranged(task))
        elif self._arrangements.put(task):
            self._ask(self._arrangements.work_with(_arranged), self._take_points)

    def _take_points(self, made: tuple[PointGrid, GridPoints] | None) -> None:
        if made is not None and made[0] is self.grid:
            self.arranged = made
            self._redraw()

    def _redraw(self) -> None:
        self._stale = True
        self._soon.start()

    def _settle(self) -> None:
        if self.frame is None or not self.frame.exact or self._stale:
            self._redraw()
        elif self._overlays:
            self.update()

    def _ratio(self) -> float:
        return self.scene().views()[0].devicePixelRatioF()

    def _sight_now(self) -> Viewport | None:
        box = self.getViewBox()
        if box is None or self.scene() is None or not self.scene().views():
            return None
        view, ratio = box.viewRect(), self._ratio()
        width, height = round(box.width() * ratio), round(box.height() * ratio)
        if width < 2 or height < 2 or not view.width() > 0 or not view.height() > 0:
            return None
        # pyqtgraph's views grow upwards: what QRectF calls top is the least ordinate.
        return Viewport(view.left(), view.top(), view.right(), view.bottom(), width, height)

    def _request(self) -> RasterRequest | None:
        sight = self._sight_now()
        if sight is None or self.arranged is None:
            return None
        if sight != self._sight:
            self._sight = sight
            # Whatever is small is drawn whole while it moves, so that nothing need follow.
            self._rest.start()
        ratio, moving = self._ratio(), self.moving
        if moving and sight.width * sight.height > MOVING_PIXELS:
            ratio /= 2
            half = (max(sight.width // 2, 1), max(sight.height // 2, 1))
            sight = Viewport(sight.left, sight.bottom, sight.right, sight.top, *half)
        return RasterRequest(
            *self.arranged,
            sight,
            halo=self._halo.getRgb()[:3],
            gray=self._gray.getRgb()[:3],
            ground=self._ground.getRgb()[:3],
            pixel_ratio=ratio,
            budget=MOVING_POINTS if moving else None,
            sums=self.sums[1] if self.sums[0] is self.arranged[1] else (),
            wants_density=self._wants_density and not moving and not self.is_sample,
        )

    def _draw(self) -> None:
        if not self._stale:
            return
        request = self._request()
        if request is None:
            return
        self._stale = False
        full = request.sight == self._sight and request.wants_density == self._wants_density
        # The thread takes the newest request when it is ready for one, so it never waits for this one.
        if self._requests.put((self._epoch, request, full)):
            self._ask(self._requests.work_with(_drawn), self._show)

    def _ask(
        self,
        work: Callable[..., object],
        done: Callable[[Any], object],
        *,
        by: Worker | None = None,
        report: Callable[[float], object] | None = None,
    ) -> None:
        def answered(answer: Any) -> None:
            self._asked -= 1
            done(answer)

        self._asked += 1
        (by or self._worker).do(work, answered, report=report)

    def _ask_for_kernels(self) -> None:
        """Load the compiled kernels on a separate thread, then redraw with them."""
        if not self._asked_for_kernels and are_wanted():
            self._asked_for_kernels = True
            self._loader.do(load_kernels, lambda _module: self._redraw())

    def _ask_for_sums(self) -> None:
        """Have the points of fine cells summed on the other thread; the sums are drawn while the map moves."""
        points = None if self.arranged is None else self.arranged[1]
        if self._count > MOVING_POINTS and self.sums[0] is not points and not self.is_sample:
            self.sums = (points, ())
            if self._summations.put(self.arranged):
                self._loader.do(self._summations.work_with(_summed), self._take_sums)

    def _take_sums(self, made: tuple[GridPoints, tuple[CellSums, ...]] | None) -> None:
        if made is not None and made[0] is self.sums[0]:
            self.sums = made

    def _show_preview(self, made: _Drawn | None) -> None:
        if made is not None and made.epoch == self._epoch and not self._previews.full:
            self.is_preview = True
            self._put_up(made)

    def _show(self, made: _Drawn | None) -> None:
        if made is None or made.epoch != self._epoch:
            return
        self.is_preview = False
        self._put_up(made)
        self._summing.start()
        if self._stale or self._requests.full:
            return
        if made.exact:
            self.drawn.emit()
        elif not self.moving and not self.is_sample:
            self._redraw()

    def _put_up(self, made: _Drawn) -> None:
        height, width = made.picture.pixels.shape[:2]
        image = QImage(made.picture.pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(made.ratio)
        picture = made.picture
        self.frame = ShownFrame(
            made.sight,
            image,
            picture.drawn,
            picture.visible,
            made.exact,
            picture.marks,
            picture.density,
            picture.pixels,
        )
        self.update()
        self.framed.emit()


def _previewed(task: tuple[int, RasterRequest, np.ndarray, PointStyle, States, int]) -> _Drawn:
    epoch, request, xy, look, states, of = task
    grid = PointGrid(xy, kernels=loaded_kernels())
    points = rasterizer.arrange(grid, look, states, loaded_kernels())
    picture = rasterizer.draw(replace(request, grid=grid, points=points, budget=None, wants_density=False))
    return _Drawn(epoch, replace(picture, visible=of, drawn=len(xy)), request.sight, request.pixel_ratio, False)


def _sampled(task: tuple[int, np.ndarray]) -> tuple[int, PointGrid]:
    epoch, xy = task
    return epoch, PointGrid.of_sample(xy, SAMPLE, kernels=_kernels_for(xy))


def _sorted(task: tuple[int, np.ndarray], show_message: Callable[[float], object]) -> tuple[int, PointGrid]:
    epoch, xy = task
    return epoch, PointGrid(xy, kernels=_kernels_for(xy), progress=show_message)


def _kernels_for(xy: np.ndarray) -> ModuleType | None:
    """Return the compiled kernels if they are loaded, or for many points load in less than a second."""
    return load_kernels() if len(xy) > LOADED_FIRST and are_cached() else loaded_kernels()


def _arranged(task: tuple[PointGrid, PointStyle, States]) -> tuple[PointGrid, GridPoints]:
    return task[0], rasterizer.arrange(*task, loaded_kernels())


def _summed(arranged: tuple[PointGrid, GridPoints]) -> tuple[GridPoints, tuple[CellSums, ...]]:
    grid, points = arranged
    kernels = loaded_kernels()
    return points, cell_sums(grid, points.ink, points.linear, kernels) if kernels else ()


def _drawn(task: tuple[int, RasterRequest, bool]) -> _Drawn:
    epoch, request, full = task
    picture = rasterizer.draw(request)
    exact = full and picture.drawn == picture.visible and not picture.summed
    return _Drawn(epoch, picture, request.sight, request.pixel_ratio, exact)
