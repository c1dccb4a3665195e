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

HIDDEN: Final = 0
DIMMED: Final = 1
PLAIN: Final = 2
"""States of a point: not drawn, drawn grey below the others, drawn in its colour."""

MOST_STAMPS: Final = 120_000
MOST_PLAIN_STAMPS: Final = 30_000
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


def kernels_loaded() -> bool:
    """Whether pictures are drawn by the compiled kernels already."""
    return bool(_loaded)


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
    """The layer with numpy alone: the colours that overlap are mixed instead of laid over each other."""
    x, y, state, colour, diamond, palette = layer.points
    left, top, across, down = layer.view
    chosen = np.concatenate([np.arange(a, b) for a, b in layer.ranges] or [np.empty(0, np.int64)])
    chosen = chosen[state[chosen] == layer.state]
    px, py = (x[chosen] - left) * across, (top - y[chosen]) * down
    linear = _LINEAR[palette[colour[chosen]]][:, ::-1]
    size = layer.brush[0]
    around = np.arange(-(reach := int(np.ceil(size * 1.2533)) if stamped else 0), reach + 1)
    row = np.floor(py).astype(np.int64)[:, None, None] + around[:, None]
    column = np.floor(px).astype(np.int64)[:, None, None] + around
    dx, dy = column + 0.5 - px[:, None, None], row + 0.5 - py[:, None, None]
    weight = _share(dx, dy, size, diamond[chosen, None, None]) if stamped else np.ones_like(dx + dy)
    height, width = picture.shape[:2]
    hit = (row >= 0) & (row < height) & (column >= 0) & (column < width) & (weight > 0)
    pixel, weight = (row * width + column)[hit], weight[hit]
    which = np.nonzero(hit)[0]
    sums = np.bincount(pixel, weight, height * width)[:, None].repeat(4, axis=1)
    for channel in range(3):
        sums[:, channel] = np.bincount(pixel, weight * linear[which, channel], height * width)
    _lay_over(picture, sums, layer.brush[1] if stamped else None, layer.low)


def _share(dx: np.ndarray, dy: np.ndarray, size: float, diamond: np.ndarray) -> np.ndarray:
    disc = size - np.hypot(dx, dy)
    rhombus = (size * 1.2533 - abs(dx) - abs(dy)) * 0.7071
    return np.clip(np.where(diamond, rhombus, disc) + 0.5, 0, 1)


def _lay_over(picture: np.ndarray, sums: np.ndarray, opacity: float | None, low: float) -> None:
    count = sums[:, 3]
    drawn = np.flatnonzero(count)
    mean = _ENCODED[(sums[drawn, :3] / count[drawn, None] * 4095).astype(np.int64)]
    if opacity is None:
        rise = np.minimum(np.log1p(count[drawn]) / np.log1p(_peak(count)), 1)
        alpha = low + (1 - low) * rise
    else:
        alpha = np.minimum(count[drawn], 1) * opacity
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
