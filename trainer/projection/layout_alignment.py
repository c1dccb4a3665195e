"""Align two layouts: the same pairs at other steps, or in another run.

UMAP has no orientation of its own. The layout begins at the other one's places (points that are not in both: among
their nearest common ones), learns slowly, and is turned onto it in the end. Measured on the Scenes demo (CLIP, 5 steps
of 2,048 points; distances in units of the picture's radius, share of 15 neighbors kept in the picture): independent
layouts turned onto each other move the median point by 1.27 a step (kept .543), these by .42 (kept .544), AlignedUMAP
by .25 (kept .520) in ten times the time. The low rate made the difference: with UMAP's own it was .76.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.out_of_sample_placement import place
from trainer.analysis.procrustes import procrustes
from trainer.projection.neighbors import nearest_among
from trainer.store.snapshot_files import Snapshot

FEWEST_COMMON: Final = 10
"""With fewer points in common two layouts are not turned onto each other: chance would decide the turn."""
_PLACED_BY: Final = 5


@dataclass(frozen=True)
class Common:
    """Rows of points that represent the same image or text in two layouts."""

    here: Int[np.ndarray, " c"]
    there: Int[np.ndarray, " c"]


def common_points(snapshot: Snapshot, other: Snapshot) -> Common:
    """Return the points (images first, then texts) of two snapshots that are of the same items."""
    _, rows, other_rows = np.intersect1d(
        np.asarray(snapshot.items.id).astype(str),
        np.asarray(other.items.id).astype(str),
        assume_unique=False,
        return_indices=True,
    )
    rows_here, rows_there = [], []
    starts = [0, 0]
    for part in ("image", "text"):
        mine, theirs = getattr(snapshot, part), getattr(other, part)
        if mine is not None and theirs is not None:
            rows_here.append(starts[0] + rows)
            rows_there.append(starts[1] + other_rows)
        starts = [starts[0] + (0 if mine is None else len(mine)), starts[1] + (0 if theirs is None else len(theirs))]
    empty = [np.empty(0, np.int64)]
    return Common(np.concatenate(rows_here or empty), np.concatenate(rows_there or empty))


def start_at(
    vectors: Float[np.ndarray, "m d"], xy: Float[np.ndarray, "n 2"], common: Common
) -> Float[np.ndarray, "m 2"]:
    """Return initial positions: common points from `xy`, others near their nearest common ones."""
    start = np.empty((len(vectors), 2), np.float32)
    start[common.here] = xy[common.there]
    others = np.setdiff1d(np.arange(len(vectors)), common.here)
    if len(others):
        neighbors, distances = nearest_among(vectors[others], _PLACED_BY, vectors[common.here])
        start[others] = place(neighbors, distances, xy[common.there])
    return start


def turned_onto(
    points: Float[np.ndarray, "m 2"], xy: Float[np.ndarray, "n 2"], common: Common
) -> Float[np.ndarray, "m 2"]:
    """Return the points rotated, reflected and moved to fit the common ones to `xy`, without scaling."""
    return procrustes(points[common.here], xy[common.there]).apply(points).astype(np.float32)
