"""Signed distances to the eight shapes: negative inside, so that one array gives edge, rim and shadow.

After Quilez, 2D distance functions, https://iquilezles.org/articles/distfunctions2d/
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Float

Plane = Float[np.ndarray, "h w"]


def distance(shape: str, x: Plane, y: Plane) -> Plane:
    """Return each point's distance to the edge of `shape`; x to the right, y up, within the unit circle."""
    return _DISTANCES[shape](x, y)


def _circle(x: Plane, y: Plane) -> Plane:
    return np.hypot(x, y) - 0.84


def _ring(x: Plane, y: Plane) -> Plane:
    return np.abs(np.hypot(x, y) - 0.68) - 0.21


def _moon(x: Plane, y: Plane) -> Plane:
    outer, inner, apart = 0.92, 0.7, 0.47
    cos, sin = 0.94, 0.342
    x = x - 0.06
    x, y = x * cos + y * sin, np.abs(y * cos - x * sin)
    tip_x = (outer**2 - inner**2 + apart**2) / (2 * apart)
    tip_y = (outer**2 - tip_x**2) ** 0.5
    # Beyond the tips neither circle is nearest; without this the shadow would close the moon to a disc.
    beyond = x * tip_y - y * tip_x > apart * np.maximum(tip_y - y, 0)
    sickle = np.maximum(np.hypot(x, y) - outer, inner - np.hypot(x - apart, y))
    return np.where(beyond, np.hypot(x - tip_x, y - tip_y), sickle)


def _heart(x: Plane, y: Plane) -> Plane:
    size = 1.62
    x, y = np.abs(x) / size, y / size + 0.56
    lobe = np.hypot(x - 0.25, y - 0.75) - np.sqrt(2) / 4
    along = 0.5 * np.maximum(x + y, 0)
    tip = np.minimum(np.hypot(x, y - 1), np.hypot(x - along, y - along)) * np.sign(x - y)
    return np.where(x + y > 1, lobe, tip) * size


def _polygon(corners: Float[np.ndarray, "corners 2"], rounding: float) -> Callable[[Plane, Plane], Plane]:
    """Return the distance to a closed polygon, with corners rounded by growing it."""

    def signed(x: Plane, y: Plane) -> Plane:
        nearest = np.full(x.shape, np.inf, x.dtype)
        inside = np.zeros(x.shape, bool)
        for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            dx, dy = x1 - x0, y1 - y0
            px, py = x - x0, y - y0
            along = px * dx
            along += py * dy
            along /= dx * dx + dy * dy
            # `np.clip` takes longer to be called than to work here.
            np.minimum(np.maximum(along, 0, out=along), 1, out=along)
            if dy:
                inside ^= ((y0 > y) != (y1 > y)) & (px < py * (dx / dy))
            px -= dx * along
            py -= dy * along
            px *= px
            py *= py
            px += py
            np.minimum(nearest, px, out=nearest)
        return np.where(inside, -1, 1) * np.sqrt(nearest) - rounding

    return signed


def _round_about(corners: int, *radii: float) -> Float[np.ndarray, "corners 2"]:
    """Return corners at equal angles from the top, cycling through the radii."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(corners) / corners
    radius = np.resize(np.array(radii, np.float32), corners)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32)


def _plus(arm: float, half: float) -> Float[np.ndarray, "12 2"]:
    quarter = np.array([(half, arm), (half, half), (arm, half)])
    turns = [np.array([[0, 1], [-1, 0]]), np.array([[-1, 0], [0, -1]]), np.array([[0, -1], [1, 0]])]
    return np.concatenate([quarter, *(quarter @ turn.T for turn in turns)]).astype(np.float32)


_DISTANCES: Final[dict[str, Callable[[Plane, Plane], Plane]]] = {
    "circle": _circle,
    "square": _polygon(np.array([(-1, -1), (-1, 1), (1, 1), (1, -1)], np.float32) * 0.64, 0.1),
    "triangle": _polygon(_round_about(3, 0.96) - np.array([0, 0.12], np.float32), 0.1),
    "star": _polygon(_round_about(10, 0.98, 0.42), 0.06),
    "heart": _heart,
    "ring": _ring,
    "cross": _polygon(_plus(0.86, 0.24), 0.07),
    "moon": _moon,
}
