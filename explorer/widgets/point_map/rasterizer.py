"""Render points to an image with a pure function of a frozen request.

Few visible points are stamped one by one, crisp at sub-pixel places; many are summed per pixel and toned, so that
the cost is bounded by pixels and no class hides another. Past a budget of points the first levels of the grid's
pyramid stand for all: every cell keeps its true number of points, only their colors are a sample. Unselected points
are laid down first and the others over them, so a selection is never averaged with what lies around it; a small
selection is drawn whole whatever the budget. Until the compiled kernels are there numpy draws nearly the same.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, Int, UInt8, UInt16
from msgspec import Struct

from explorer.widgets.point_map.cell_sums import CellSums, fitting
from explorer.widgets.point_map.grid import PointGrid, in_parallel, parts_of
from explorer.widgets.point_map.loaded import loaded_kernels
from explorer.widgets.point_map.stamps import Brush, StampList, lay_over

__all__ = [
    "GridPoints",
    "PointStyle",
    "RasterImage",
    "RasterRequest",
    "States",
    "Viewport",
    "arrange",
    "draw",
    "radius",
]

HIDDEN: Final = 0
DIMMED: Final = 1
PLAIN: Final = 2
"""States of a point: not drawn, drawn gray below the others, drawn in its color."""

MOST_COLORS: Final = 8191
MOST_STAMPS: Final = 120_000
MOST_PLAIN_STAMPS: Final = 20_000
"""Visible points past which marks become density: with the kernels, and with numpy alone."""
MOST_SINGLED_OUT: Final = 300_000
"""Selected points up to which each is drawn even where others are sampled; up to 20,000 of them are marks then."""

_COLOR_BITS: Final = 0x1FFF
_DIAMOND_BIT: Final = 0x2000
_STATE_SHIFT: Final = 14
_SIDE_WEIGHT: Final = 0.55
_LINEAR: Final = (np.arange(256) / 255).astype(np.float32) ** np.float32(2.2)
_ENCODED: Final = (255 * (np.arange(4096) / 4095) ** (1 / 2.2)).astype(np.float32)
_STEPS: Final = np.linspace(0, 1, 2048) ** 2


class PointStyle(Struct, frozen=True):
    """Colors and shapes of points, in their original order."""

    color: UInt16[np.ndarray, " n"]  # Row of `palette`.
    diamond: Bool[np.ndarray, " n"]  # Whether the mark is a diamond (a text) and not a disc (an image).
    palette: UInt8[np.ndarray, "k 3"]  # Red, green, blue.


class States(Struct, frozen=True):
    """The points in color (`lit`) and the points drawn (`shown`); None: all."""

    lit: Bool[np.ndarray, " n"] | None = None
    shown: Bool[np.ndarray, " n"] | None = None


@dataclass(frozen=True)
class GridPoints:
    """Points in the order of their grid's cells.

    Attributes:
        ink: Color (13 bits), shape (1) and state (2) of each.
        palette: Red, green, blue.
        linear: The same, not gamma-encoded, as blue, green, red.
        some: Places in the order of the points in color where others are dimmed and these are few.
        dimmed, plain: Whether any point is so.
    """

    ink: UInt16[np.ndarray, " n"]
    palette: UInt8[np.ndarray, "k 3"]
    linear: Float32[np.ndarray, "k 3"]
    some: Int[np.ndarray, " s"] | None
    dimmed: bool
    plain: bool


class Viewport(Struct, frozen=True):
    """The visible rectangle of the layout, and the image's size in device pixels."""

    left: float
    bottom: float
    right: float
    top: float
    width: int
    height: int

    @property
    def scale(self) -> tuple[float, float]:
        """Device pixels per unit, horizontally and vertically."""
        return self.width / (self.right - self.left), self.height / (self.top - self.bottom)


@dataclass(frozen=True)
class RasterRequest:
    """All inputs of an image; nothing in it is modified after creation."""

    grid: PointGrid
    points: GridPoints
    sight: Viewport
    halo: tuple[int, int, int] = (255, 255, 255)  # Red, green, blue of the rim around marks.
    gray: tuple[int, int, int] = (128, 128, 128)  # Red, green, blue of dimmed points.
    # What is drawn on, as red, green, blue; None: nothing, the picture is transparent.
    ground: tuple[int, int, int] | None = None
    pixel_ratio: float = 1.0  # Device pixels of the picture per logical pixel.
    # Points of a density after which their sums in fine cells are drawn, or a sample stands for all where there
    # are none; None: every point is drawn.
    budget: int | None = None
    sums: tuple[CellSums, ...] = ()  # These sums, coarsest first.
    most_stamps: int = MOST_STAMPS  # Visible points up to which each is a mark.
    wants_density: bool = False  # Whether the points per pixel are wanted besides the picture.


@dataclass(frozen=True)
class RasterImage:
    """The rendered image."""

    pixels: UInt8[np.ndarray, "height width 4"]  # Premultiplied blue, green, red, alpha.
    visible: int  # Points of the cells in sight, estimated where the grid holds a sample.
    drawn: int  # How many of them were read; the others are stood for by those.
    marks: bool  # Whether points are marks, not density.
    # Points in color per pixel before they were spread, if that was wanted.
    density: Float32[np.ndarray, "height width"] | None = None
    # Whether sums of fine cells were drawn: every point, at most a third of a pixel from its place.
    summed: bool = False


def arrange(grid: PointGrid, look: PointStyle, states: States, kernels: ModuleType | None) -> GridPoints:
    """Put styles and states in the order of the grid's cells; positions stay."""
    nothing = np.empty(0, bool)
    lit = nothing if states.lit is None else states.lit
    visible = nothing if states.shown is None else states.shown
    looks, order = [look.color, look.diamond, lit, visible], grid.order
    if grid.share < 1:
        looks, order = [each[order] if len(each) else each for each in looks], np.arange(len(order), dtype=np.int32)
    ink, count = _packed_in_parallel(kernels, looks, order) if kernels else _pack(looks, order)
    some = None
    if count[DIMMED] and 0 < count[PLAIN] <= MOST_SINGLED_OUT:
        some = np.flatnonzero(ink >> _STATE_SHIFT == PLAIN).astype(np.int32)
    linear = np.ascontiguousarray(_LINEAR[look.palette[:, ::-1]])
    return GridPoints(ink, look.palette, linear, some, bool(count[DIMMED]), bool(count[PLAIN]))


def _packed_in_parallel(
    kernels: ModuleType, looks: Sequence[np.ndarray], order: Int[np.ndarray, " n"]
) -> tuple[UInt16[np.ndarray, " n"], Int[np.ndarray, " states"]]:
    """Return the ink of each point in cell order, and how many have each state."""
    packed, ink = np.empty(len(looks[0]), np.uint16), np.empty(len(order), np.uint16)
    count = np.zeros((parts_of(len(order)), 4), np.int64)
    in_parallel(len(packed), parts_of(len(packed)), lambda _, first, last: kernels.pack(*looks, first, last, packed))
    in_parallel(
        *(len(order), len(count)),
        lambda part, first, last: kernels.take_packed(packed, order, first, last, ink, count[part]),
    )
    return ink, count.sum(axis=0)


def draw(request: RasterRequest) -> RasterImage:
    """Render a request, with the compiled kernels if they are loaded."""
    return render(request, loaded_kernels())


LARGEST: Final = (4.2, 7.0)
"""Radius of the marks of few points on a map of `USUAL_PIXELS` or less, and on the largest."""
USUAL_PIXELS: Final = 300_000


def radius(visible: int, pixels: int) -> float:
    """Return the radius of a mark in pixels: small if many points are visible, larger on a large map."""
    largest = np.clip(LARGEST[0] * np.sqrt(pixels / USUAL_PIXELS), *LARGEST)
    return float(np.clip(0.32 * np.sqrt(pixels / max(visible, 1)), 1.6, largest))


def render(request: RasterRequest, kernels: ModuleType | None) -> RasterImage:
    """Render a request with these kernels, or with numpy if None."""
    sight, grid = request.sight, request.grid
    pixels = np.zeros((sight.height, sight.width, 4), np.uint8)
    if request.ground is not None:
        pixels.view(np.uint32)[:] = np.array([*request.ground[::-1], 255], np.uint8).view(np.uint32)
    window = grid.window(sight.left, sight.bottom, sight.right, sight.top)
    per_level = grid.per_level(window)
    visible = round(per_level.sum() / grid.share)
    marks = visible <= (request.most_stamps if kernels else min(request.most_stamps, MOST_PLAIN_STAMPS))
    depth = grid.levels if marks else _depth(per_level, request.budget)
    is_over = request.budget is not None and visible > request.budget
    sums = fitting(request.sums, grid, sight.scale) if is_over and kernels else None
    task = _Task(request, window, visible, depth, sums)
    density = None
    if kernels and marks:
        _stamp(pixels, task, kernels)
        density = _density(task, kernels) if request.wants_density else None
    elif kernels:
        density = _spread(pixels, task, kernels)
    else:
        density = _draw_plainly(pixels, task, marks=marks)
    drawn = visible if sums else int(per_level[:depth].sum())
    return RasterImage(pixels, visible, drawn, marks, density, sums is not None)


class _Task:
    """A request as the plain tuples that kernels take."""

    def __init__(
        self,
        request: RasterRequest,
        window: tuple[int, int, int, int],
        visible: int,
        depth: int,
        sums: CellSums | None,
    ) -> None:
        grid, sight = request.grid, request.sight
        self.request, self.window, self.visible, self.depth, self.sums = request, window, visible, depth, sums
        self.points = (grid.x, grid.y, request.points.ink)
        self.cells = (grid.start, grid.side, grid.levels)
        self.view = (float(sight.left - grid.low[0]), float(sight.top - grid.low[1]), *map(float, sight.scale))

    @property
    def layers(self) -> list[int]:
        """The existing states, back to front."""
        points = self.request.points
        return [state for state, present in ((DIMMED, points.dimmed), (PLAIN, points.plain)) if present]

    @property
    def marked(self) -> bool:
        """Whether the points in color are few enough for marks although the dimmed ones are a density."""
        some = self.request.points.some
        return some is not None and len(some) <= MOST_PLAIN_STAMPS

    @property
    def brush_of_few(self) -> tuple[float, ...]:
        """The brush for these: sized for few points and with a rim, so that they stand out."""
        request, ratio, some = self.request, self.request.pixel_ratio, self.request.points.some
        assert some is not None
        pixels = int(request.sight.width * request.sight.height / ratio**2)
        size = min(radius(len(some), pixels), 3.0)
        return (size * ratio, 0.9, 0.9 * ratio, *map(float, request.halo))

    def brush(self, state: int) -> tuple[float, ...]:
        request, sight = self.request, self.request.sight
        ratio = request.pixel_ratio
        size = radius(self.visible, int(sight.width * sight.height / ratio**2)) * ratio
        halo = 0.9 * ratio if size >= 2.4 * ratio and state == PLAIN else 0.0
        return (size, 0.45 if state == DIMMED else 0.9, halo, *map(float, request.halo))


def _depth(per_level: Int[np.ndarray, " levels"], budget: int | None) -> int:
    """Return how many levels are read: all, or as many as the budget allows, at least one."""
    if budget is None:
        return len(per_level)
    return max(1, int(np.searchsorted(per_level.cumsum(), budget, side="right")))


def _stamp(pixels: np.ndarray, task: _Task, kernels: ModuleType) -> None:
    palette = _with_gray(task)
    for state in task.layers:
        kernels.stamp(pixels, task.points, task.cells, task.window, task.view, state, task.brush(state), palette)


def _with_gray(task: _Task) -> UInt8[np.ndarray, "k 3"]:
    """Return the palette with the gray of dimmed points as its last row."""
    return np.vstack([task.request.points.palette, np.array([task.request.gray], np.uint8)])


_OWN: Final = threading.local()


def _sums(height: int, width: int, *, faint: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return this thread's empty sums: of colors, of dimmed points, and three rows. `tone` clears them."""
    buffers = getattr(_OWN, "sums", {})
    _OWN.sums = {}
    bright, gray = buffers.get((height, width)), buffers.get((height, width, "faint"))
    if bright is None:
        bright = np.zeros((height, width + 2, 4), np.float32)
    if gray is None:
        gray = np.zeros((height, width + 2) if faint else (1, 1), np.float32)
    return bright, gray, np.zeros((3, 4 * (width + 2)), np.float32)


def _gather(task: _Task, kernels: ModuleType) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    points, sight = task.request.points, task.request.sight
    bright, faint, rows = _sums(sight.height, sight.width, faint=points.dimmed)
    report = np.zeros(4)
    sampled = task.depth < task.request.grid.levels
    single = points.some is not None and (sampled or task.marked)
    states = (points.dimmed << DIMMED) | ((points.plain and not single) << PLAIN)
    grid, linear = task.request.grid, points.linear
    if (sums := task.sums) is not None:
        fine_cell = (float(grid.cell[0] / sums.factor), float(grid.cell[1] / sums.factor))
        kernels.gather_cells(bright, faint, sums.arrays, fine_cell, task.view, _LINEAR, states, report)
    else:
        cells = (*task.cells, grid.counts)
        kernels.gather(bright, faint, task.points, cells, task.window, task.view, linear, task.depth, states, report)
    if single and (not task.marked or task.request.wants_density):
        kernels.gather_some(bright, faint, task.points, points.some, task.view, linear, report)
    if grid.share < 1:
        for array in (bright, faint, report[::2]):
            array /= grid.share
    return bright, faint, rows, report


def _spread(pixels: np.ndarray, task: _Task, kernels: ModuleType) -> np.ndarray | None:
    bright, faint, rows, report = _gather(task, kernels)
    density = bright[:, 1:-1, 3].copy() if task.request.wants_density else None
    points = task.request.points
    if points.dimmed:
        peak = _peak(report[2], report[3])
        gray = tuple(float(part) for part in task.request.gray[::-1])
        kernels.tone_gray(pixels, faint, 0.2, peak, _curve(peak), gray)
    if task.marked:
        if task.request.wants_density:
            bright[:] = 0
        kernels.stamp_some(pixels, task.points, points.some, task.view, task.brush_of_few, points.palette)
    elif points.plain:
        peak = _peak(report[0], report[1])
        kernels.tone(pixels, bright, rows, 0.35, peak, _curve(peak), _ENCODED)
    _keep(task, bright, faint)
    return density


def _density(task: _Task, kernels: ModuleType) -> np.ndarray:
    bright, _faint, _rows, _told = _gather(task, kernels)
    return bright[:, 1:-1, 3].copy()


def _keep(task: _Task, bright: np.ndarray, faint: np.ndarray) -> None:
    """Keep cleared sums for the next image of this size and drop other sizes."""
    size = (task.request.sight.height, task.request.sight.width)
    _OWN.sums = {size: bright}
    if task.request.points.dimmed:
        _OWN.sums[(*size, "faint")] = faint


def _curve(peak: float) -> Float32[np.ndarray, " steps"]:
    """Return opacities, logarithmic in the count, indexed by the root of the count's share of the peak."""
    return (np.log1p(_STEPS * peak) / np.log1p(peak)).astype(np.float32)


def _peak(total: float, pixels: float) -> float:
    """Return the count drawn at full opacity: ten times the mean of pixels with points."""
    return max(10 * total / pixels, 4.0) if pixels else 4.0


# With numpy alone -----------------------------------------------------------------------------------------------


def _pack(
    looks: Sequence[np.ndarray], order: Int[np.ndarray, " n"]
) -> tuple[UInt16[np.ndarray, " n"], Int[np.ndarray, " states"]]:
    color, diamond, lit, visible = looks
    state = np.full(len(color), PLAIN, np.uint16)
    if len(lit):
        state[~lit] = DIMMED
    if len(visible):
        state[~visible] = HIDDEN
    ink = ((state << _STATE_SHIFT) | np.where(diamond, _DIAMOND_BIT, 0).astype(np.uint16) | color)[order]
    return ink, np.bincount(ink >> _STATE_SHIFT, minlength=4)


def _draw_plainly(pixels: np.ndarray, task: _Task, *, marks: bool) -> np.ndarray | None:
    """Draw the same marks without compiled code, or a density spread like the kernels do."""
    grid, points, (height, width) = task.request.grid, task.request.points, pixels.shape[:2]
    chosen = np.concatenate(
        [np.arange(a, b) for a, b in grid.ranges(task.window, levels=task.depth)] or [np.empty(0, np.int64)]
    )
    weight = task.visible / max(len(chosen), 1)
    ink, (left, top, across, down) = points.ink[chosen], task.view
    px, py = (grid.x[chosen] - left) * across, (top - grid.y[chosen]) * down
    density, palette = None, _with_gray(task)
    for state in task.layers:
        of_state = ink >> _STATE_SHIFT == state
        colors = palette[ink[of_state] & _COLOR_BITS if state == PLAIN else np.full(of_state.sum(), -1)]
        x, y = px[of_state], py[of_state]
        few = state == PLAIN and task.marked and not marks
        if marks or few:
            size, opacity, halo, *halo_color = task.brush_of_few if few else task.brush(state)
            diamond = ink[of_state] & _DIAMOND_BIT != 0
            brush = Brush(size, opacity, halo, tuple(halo_color[::-1]))
            lay_over(pixels, StampList(x, y, colors[:, ::-1], diamond), brush)
            if not task.request.wants_density:
                continue
        hit = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        pixel = y[hit].astype(np.int64) * width + x[hit].astype(np.int64)
        linear = _LINEAR[colors[hit][:, ::-1]]
        parts = [np.bincount(pixel, linear[:, channel], height * width) for channel in range(3)]
        sums = weight * np.stack([*parts, np.bincount(pixel, minlength=height * width)], axis=1)
        if state == PLAIN and task.request.wants_density:
            density = sums[:, 3].reshape(height, width).astype(np.float32)
        if not marks and not few:
            _lay_density(pixels, sums.reshape(height, width, 4), 0.2 if state == DIMMED else 0.35)
    return density


def _lay_density(pixels: np.ndarray, sums: np.ndarray, low: float) -> None:
    peak = _peak(float(sums[..., 3].sum()), float(np.count_nonzero(sums[..., 3])))
    for turned in (sums, sums.swapaxes(0, 1)):
        before = turned.copy()
        turned[1:] += _SIDE_WEIGHT * before[:-1]
        turned[:-1] += _SIDE_WEIGHT * before[1:]
    drawn = sums[..., 3] > 0
    part = sums[drawn]
    count = part[:, 3]
    mean = _ENCODED[np.minimum(part[:, :3] / count[:, None] * 4095, 4095).astype(np.int64)]
    alpha = np.minimum(count, 1) * (low + (1 - low) * np.minimum(np.log1p(count) / np.log1p(peak), 1))
    source = np.column_stack([mean, np.full(len(part), 255.0)]) * alpha[:, None]
    pixels[drawn] = (pixels[drawn] * (1 - alpha[:, None]) + source + 0.5).astype(np.uint8)
