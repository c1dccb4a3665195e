"""A rotated 3-D point cloud, with points fading with distance."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int, UInt8
from msgspec import Struct

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


class DepthProjection(Struct, frozen=True):
    """A projected cloud: positions, and each point's depth level, 0 nearest."""

    xy: Float[np.ndarray, "m 2"]
    level: Int[np.ndarray, " m"]


def seen_from(cloud: Float[np.ndarray, "m 3"], azimuth: float, elevation: float) -> DepthProjection:
    """Project the cloud from a direction, with depth in equal levels from nearest to farthest."""
    xy, near = turned(cloud, azimuth, elevation)
    low, high = (float(near.min()), float(near.max())) if len(near) else (0.0, 1.0)
    share = (high - near) / max(high - low, 1e-12)
    return DepthProjection(xy, np.minimum((share * LEVELS).astype(np.int32), LEVELS - 1))


def sample_of(points: int) -> Int[np.ndarray, " k"]:
    """Return the sample of points drawn while a large cloud is rotated, ascending; all of a small one."""
    if points <= TURNED_WHOLE:
        return np.arange(points)
    return np.sort(np.random.default_rng(0).choice(points, MOST_TURNING, replace=False, shuffle=False))


def shaded(
    index: Int[np.ndarray, " m"], palette: UInt8[np.ndarray, "k 3"], level: Int[np.ndarray, " m"]
) -> tuple[Int[np.ndarray, " m"], UInt8[np.ndarray, "j 3"]]:
    """Return colors for every depth level, fading into the background, and each point's color index."""
    ground = np.array(color("surface").getRgb()[:3], np.float32)
    share = np.linspace(0, PALEST, LEVELS, dtype=np.float32)[None, :, None]
    mixed = palette[:, None, :] * (1 - share) + ground * share
    return index * LEVELS + level, np.rint(mixed).astype(np.uint8).reshape(-1, 3)
