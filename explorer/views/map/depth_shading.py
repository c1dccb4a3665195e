"""A cloud of points seen from a side, paler with the distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int, UInt8

from explorer.theme import color
from trainer.analysis.camera_3d import turned

LEVELS: Final = 6
"""Steps of depth that are told apart."""
TURNED_WHOLE: Final = 100_000
"""Points up to which every picture of a cloud that is turned has all."""
MOST_TURNING: Final = 60_000
"""Points that are drawn of a larger one until it rests."""
PALEST: Final = 0.45
"""How far the farthest points are mixed with the ground."""


@dataclass(frozen=True)
class DepthView:
    """A cloud seen from a side: places, and for each point how far back it is, 0 nearest."""

    xy: Float[np.ndarray, "m 2"]
    level: Int[np.ndarray, " m"]


def seen_from(cloud: Float[np.ndarray, "m 3"], azimuth: float, elevation: float) -> DepthView:
    """The cloud from a side, its depth in equal steps from the nearest point to the farthest."""
    xy, near = turned(cloud, azimuth, elevation)
    low, high = (float(near.min()), float(near.max())) if len(near) else (0.0, 1.0)
    share = (high - near) / max(high - low, 1e-12)
    return DepthView(xy, np.minimum((share * LEVELS).astype(np.int32), LEVELS - 1))


def sample_of(points: int, seed: int = 0) -> Int[np.ndarray, " k"]:
    """Which points stand for a cloud of very many while it is turned, ascending; all of a small one."""
    if points <= TURNED_WHOLE:
        return np.arange(points)
    return np.sort(np.random.default_rng(seed).choice(points, MOST_TURNING, replace=False, shuffle=False))


def shaded(
    index: Int[np.ndarray, " m"], palette: UInt8[np.ndarray, "k 3"], level: Int[np.ndarray, " m"]
) -> tuple[Int[np.ndarray, " m"], UInt8[np.ndarray, "j 3"]]:
    """Colors for every step of depth, the farther the more like the ground, and which one each point has."""
    ground = np.array(color("surface").getRgb()[:3], np.float32)
    share = np.linspace(0, PALEST, LEVELS, dtype=np.float32)[None, :, None]
    mixed = palette[:, None, :] * (1 - share) + ground * share
    return index * LEVELS + level, np.rint(mixed).astype(np.uint8).reshape(-1, 3)
