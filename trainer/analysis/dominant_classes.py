"""Where on a map a class stands nearly alone, so that its name can be written there."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int

NEAR_SHARE: Final = 0.07
"""Of the width of a map: how far around a point its neighbors are looked for, 34 of some 500 pixels."""
LEAST_SHARE: Final = 0.8
"""Of the points around a point: how many are of its class where this dominates."""
LEAST_POINTS: Final = 5
LEAST_PART: Final = 0.1
"""Of a class: how much of it stands around the point; never less than `LEAST_POINTS`."""
MOST_POINTS: Final = 1_500
"""Of more points, as many are looked at, at equal distances in their order."""


def dominant_points(classes: Int[np.ndarray, " n"], xy: Float[np.ndarray, "n 2"]) -> dict[int, tuple[float, float]]:
    """Return, by class, the point around which the class is densest, of those around which it dominates.

    The class with the most points around its own comes first; one that dominates nowhere is absent, and points that are
    not finite count for nothing.
    """
    rows = np.linspace(0, len(xy) - 1, min(len(xy), MOST_POINTS)).astype(np.int64)
    rows = rows[np.isfinite(xy[rows]).all(axis=1)]
    if not len(rows):
        return {}
    points, group = np.asarray(xy[rows], np.float64), classes[rows]
    x, y = points.T
    near = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2 <= (NEAR_SHARE * np.ptp(points, axis=0).max()) ** 2
    same = group[:, None] == group
    inside = np.count_nonzero(near & same, axis=1)
    least = np.maximum(LEAST_POINTS, LEAST_PART * np.count_nonzero(same, axis=1))
    dominates = (inside >= LEAST_SHARE * np.count_nonzero(near, axis=1)) & (inside >= least)
    point_of: dict[int, tuple[float, float]] = {}
    for index in np.argsort(-inside, kind="stable"):
        if dominates[index]:
            point_of.setdefault(int(group[index]), (float(x[index]), float(y[index])))
    return point_of
