"""Points covered by a round brush stroke."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from explorer.widgets.point_map.grid import PointGrid


def swept(grid: PointGrid, stroke: Float[np.ndarray, "m 2"], radius: float) -> Int[np.ndarray, " k"]:
    """Return the points within `radius` of the line through `stroke`, ascending; `stroke` may be a single position.

    Only the points near each piece of the line are looked at.
    """
    ends = stroke[1:] if len(stroke) > 1 else stroke
    hit = []
    for (x0, y0), (x1, y1) in zip(stroke[: len(ends)], ends, strict=True):
        near = grid.in_rectangle(min(x0, x1) - radius, min(y0, y1) - radius, max(x0, x1) + radius, max(y0, y1) + radius)
        along, offset = np.array([x1 - x0, y1 - y0]), np.asarray(grid.xy[near], np.float64) - (x0, y0)
        length = float(along @ along)
        share = np.clip(offset @ along / length, 0, 1) if length > 0 else np.zeros(len(near))
        distance = ((offset - share[:, None] * along) ** 2).sum(axis=1)
        hit.append(near[distance <= radius**2])
    return np.unique(np.concatenate(hit)) if hit else np.empty(0, np.int64)
