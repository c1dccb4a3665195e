"""How well a map keeps neighborhoods, measured on some points against all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.sampling import at_most
from trainer.analysis.tiled_neighbors import largest
from trainer.analysis.tiles import exact, row_blocks

ASKED: Final = 1_000
"""Points that are asked; the work grows with n."""


@dataclass(frozen=True)
class MapQuality:
    """Two shares of 1.

    Attributes:
        kept: Of the `k` nearest rows of a point, how many are among its `k` nearest on the map.
        trustworthiness: 1 where none is near on the map that is far among the rows (Venna & Kaski, Neighborhood
            preservation in nonlinear projection methods, 2001); NaN for too few points.
        asked: Points that were measured.
        k: Neighbors.
    """

    kept: float
    trustworthiness: float
    asked: int
    k: int

    @property
    def words(self) -> str:
        """Both in words, with what a difference means."""
        return (
            f"{self.kept:.2f} of the {self.k} nearest are near on the map, trustworthiness {self.trustworthiness:.3f} "
            f"({self.asked:,} points; another seed changes both by some thousandths)"
        )


def map_quality(vectors: Float[np.ndarray, "n d"], points: Float[np.ndarray, "n 2"], *, k: int = 15) -> MapQuality:
    """Return the quality of a map of unit rows; neighbors by the cosine and by the distance on the map."""
    from scipy.spatial import cKDTree

    n = len(vectors)
    k = max(1, min(k, n - 1))
    questions = at_most(n, ASKED)
    near = cKDTree(points).query(points[questions], min(k + 1, n))[1].reshape(len(questions), -1)
    shared, beyond = 0, 0
    for block in row_blocks(len(questions), n):
        rows = questions[block]
        similarity = exact(vectors[rows]) @ exact(vectors).T
        similarity[np.arange(len(rows)), rows] = -np.inf
        # Of many equal points the own one may not be among the nearest: then the last one is left out.
        itself = near[block] == rows[:, None]
        itself[~itself.any(axis=1), -1] = True
        on_map = near[block][~itself].reshape(len(rows), -1)
        cosine = np.take_along_axis(similarity, on_map, axis=1)
        true = largest(np.nan_to_num(similarity, nan=-np.inf), k)
        shared += int((true[:, :, None] == on_map[:, None]).sum())
        for neighbor in range(on_map.shape[1]):
            rank = 1 + np.count_nonzero(similarity > cosine[:, neighbor, None], axis=1)
            beyond += int(np.maximum(rank - k, 0).sum())
    scale = len(questions) * k * (2 * n - 3 * k - 1)
    trust = 1 - 2 * beyond / scale if scale > 0 else float("nan")
    return MapQuality(shared / max(len(questions) * k, 1), trust, len(questions), k)
