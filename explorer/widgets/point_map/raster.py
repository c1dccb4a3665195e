"""From points to a picture: what to draw is a frozen request, drawing is a pure function of it.

Few visible points are stamped one by one, crisp at sub-pixel places; many are summed per pixel and toned, so that
the cost is bounded by pixels and no class hides another. Unselected points are laid down first and the others over
them, so a selection is never averaged with what lies around it. The kernels are numba's; until they are loaded
(`load_kernels`, on a thread, after the first paint) numpy draws nearly the same picture.
"""

from __future__ import annotations

import importlib
import threading
from dataclasses import dataclass, field
from types import ModuleType
from typing import Final

import numpy as np
from jaxtyping import Float, Int, UInt8

from explorer.widgets.point_map.stamps import Brush, Marks, lay_over

HIDDEN: Final = 0
DIMMED: Final = 1
PLAIN: Final = 2
"""States of a point: not drawn, drawn grey below the others, drawn in its colour."""

MOST_STAMPS: Final = 120_000
MOST_PLAIN_STAMPS: Final = 20_000
"""Visible points past which marks become density: with the kernels, and with numpy alone."""

_LINEAR: Final = (np.arange(256) / 255).astype(np.float32) ** np.float32(2.2)
_ENCODED: Final = (255 * (np.arange(4096) / 4095) ** (1 / 2.2)).astype(np.float32)


@dataclass(frozen=True)
class Points:
    """Points in the order of their grid's cells.

    Attributes:
        x: Abscissa in the units of the layout.
        y: Ordinate, growing upwards.
        state: HIDDEN, DIMMED or PLAIN.
        colour: Row of `palette`.
        diamond: Whether the mark is a diamond (a text) and not a disc (an image).
        palette: Red, green, blue; the last row is the grey of dimmed points.
    """

    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    state: UInt8[np.ndarray, " n"]
    colour: Int[np.ndarray, " n"]
    diamond: np.ndarray
    palette: UInt8[np.ndarray, "k 3"]


@dataclass(frozen=True)
class Sight:
    """The rectangle of the layout that is looked at, and the picture's size in device pixels."""

    left: float
    bottom: float
    right: float
    top: float
    width: int
    height: int

    @property
    def scale(self) -> tuple[float, float]:
        """Device pixels per unit, across and down."""
        return self.width / (self.right - self.left), self.height / (self.top - self.bottom)


@dataclass(frozen=True)
class Request:
    """All that a picture depends on; nothing in it is changed after it was made."""

    points: Points
    ranges: Int[np.ndarray, "k 2"]
    sight: Sight
    halo: tuple[int, int, int]
    pixel_ratio: float = 1.0
    visible: int = field(default=0)


_loaded: list[ModuleType] = []
_loading = threading.Lock()


def load_kernels() -> ModuleType:
    """The compiled kernels, warm. Takes half a second, several when nothing is cached: never on the GUI thread."""
    with _loading:
        if not _loaded:
            module = importlib.import_module("explorer.widgets.point_map.kernels")
            for count in (1, MOST_STAMPS + 1):
                _draw(module, _tiny_request(count))
            _loaded.append(module)
    return _loaded[0]


def wants_kernels(visible: int) -> bool:
    """Whether so many visible points are better drawn by kernels that are not loaded yet."""
    return visible > MOST_PLAIN_STAMPS and not _loaded


def draw(request: Request) -> UInt8[np.ndarray, "height width 4"]:
    """The picture as premultiplied BGRA bytes; transparent where no point is."""
    return _draw(_loaded[0] if _loaded else None, request)


def radius(visible: int, pixels: int) -> float:
    """Radius of a mark in pixels: small where many points share the picture, never below 1.6 or above 4.2."""
    return float(np.clip(0.32 * np.sqrt(pixels / max(visible, 1)), 1.6, 4.2))


def _draw(module: ModuleType | None, request: Request) -> UInt8[np.ndarray, "height width 4"]:
    sight = request.sight
    picture = np.zeros((sight.height, sight.width, 4), np.uint8)
    stamped = request.visible <= (MOST_STAMPS if module else MOST_PLAIN_STAMPS)
    grey = np.full_like(request.points.colour, len(request.points.palette) - 1)
    for state, colour, opacity in ((DIMMED, grey, 0.45), (PLAIN, request.points.colour, 0.9)):
        if not (request.points.state == state).any():
            continue
        layer = _Layer(request, state, colour, opacity)
        if module and stamped:
            module.stamp(picture, layer.points, request.ranges, layer.view, (state, state), layer.brush)
        elif module:
            sums = np.zeros((sight.height, sight.width, 4), np.float32)
            module.gather(sums, layer.points, request.ranges, layer.view, (state, state), _LINEAR)
            module.spread(picture, sums, layer.low, _peak(sums[:, :, 3]), _ENCODED)
        else:
            _draw_plainly(picture, layer, stamped=stamped)
    return picture


class _Layer:
    """One of the two layers of a picture, in the plain tuples that kernels take."""

    def __init__(self, request: Request, state: int, colour: np.ndarray, opacity: float) -> None:
        points, sight = request.points, request.sight
        self.state = state
        self.ranges = request.ranges
        self.points = (points.x, points.y, points.state, colour, points.diamond, points.palette)
        self.view = (float(sight.left), float(sight.top), *map(float, sight.scale))
        ratio = request.pixel_ratio
        size = radius(request.visible, int(sight.width * sight.height / ratio**2)) * ratio
        halo = 0.9 * ratio if size >= 2.4 * ratio and state == PLAIN else 0.0
        self.brush = (size, opacity, halo, *map(float, request.halo))
        self.low = 0.2 if state == DIMMED else 0.35


def _draw_plainly(picture: np.ndarray, layer: _Layer, *, stamped: bool) -> None:
    """The layer with numpy alone: the same marks, or a density whose points are one pixel each."""
    x, y, state, colour, diamond, palette = layer.points
    left, top, across, down = layer.view
    chosen = np.concatenate([np.arange(a, b) for a, b in layer.ranges] or [np.empty(0, np.int64)])
    chosen = chosen[state[chosen] == layer.state]
    px, py = (x[chosen] - left) * across, (top - y[chosen]) * down
    colours = palette[colour[chosen]][:, ::-1]
    if stamped:
        size, opacity, halo, *halo_colour = layer.brush
        lay_over(picture, Marks(px, py, colours, diamond[chosen]), Brush(size, opacity, halo, tuple(halo_colour[::-1])))
        return
    height, width = picture.shape[:2]
    hit = (px >= 0) & (px < width) & (py >= 0) & (py < height)
    pixel = py[hit].astype(np.int64) * width + px[hit].astype(np.int64)
    linear = _LINEAR[colours[hit]]
    channels = [np.bincount(pixel, linear[:, channel], height * width) for channel in range(3)]
    _lay_density(picture, np.stack([*channels, np.bincount(pixel, minlength=height * width)], axis=1), layer.low)


def _lay_density(picture: np.ndarray, sums: np.ndarray, low: float) -> None:
    count = sums[:, 3]
    drawn = np.flatnonzero(count)
    mean = _ENCODED[(sums[drawn, :3] / count[drawn, None] * 4095).astype(np.int64)]
    alpha = low + (1 - low) * np.minimum(np.log1p(count[drawn]) / np.log1p(_peak(count)), 1)
    pixels = picture.reshape(-1, 4)
    source = np.column_stack([mean, np.full(len(drawn), 255.0)]) * alpha[:, None]
    pixels[drawn] = (pixels[drawn] * (1 - alpha[:, None]) + source + 0.5).astype(np.uint8)


def _peak(count: np.ndarray) -> float:
    """The count that is drawn at full opacity: ten times what a pixel with points holds on average."""
    pixels = np.count_nonzero(count)
    return max(10 * float(count.sum()) / pixels, 4.0) if pixels else 4.0


def _tiny_request(visible: int) -> Request:
    one = np.full(1, 0.5, np.float32)
    state, colour = np.full(1, PLAIN, np.uint8), np.zeros(1, np.int32)
    points = Points(one, one, state, colour, np.zeros(1, bool), np.zeros((2, 3), np.uint8))
    return Request(points, np.array([[0, 1]], np.int64), Sight(0, 0, 1, 1, 8, 8), (255, 255, 255), visible=visible)
