"""How well a map keeps neighborhoods, measured on some points against all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.neighbor_cells import MOST_EXACT
from trainer.analysis.sampling import at_most
from trainer.analysis.tiled_ranks import EDGE
from trainer.analysis.tiles import exact, row_blocks
from trainer.analysis.worker_threads import share_out

ASKED: Final = 1_000
"""Points that are asked; the work grows with n."""
ASKED_OF_MANY: Final = 300
"""The same of more than `MOST_EXACT`."""
_ROUNDED: Final = 1e-6
"""What a product in single precision may be off by: a neighbor is not ahead of itself."""


@dataclass(frozen=True)
class MapQuality:
    """Two shares of 1."""

    # Of the `k` nearest rows of a point, how many are among its `k` nearest on the map; rows that are equally
    # near, to a millionth, are one as good as the other.
    kept: float
    # 1 where none is near on the map that is far among the rows (Venna & Kaski, Neighborhood preservation in
    # nonlinear projection methods, 2001); NaN for too few points.
    trustworthiness: float
    asked: int  # Points that were measured.
    k: int  # Neighbors.

    @property
    def words(self) -> str:
        """Both in words, with what a difference means."""
        return (
            f"{self.kept:.2f} of the {self.k} nearest are near on the map, trustworthiness {self.trustworthiness:.3f} "
            f"({self.asked:,} points; another seed changes both by some thousandths)"
        )


def quality_in_short(note: str) -> str:
    """Return the trustworthiness, and the share of true neighbors where cells found them, that a map's note says."""
    trust = re.search(r"trustworthiness \d\.\d+", note)
    near = re.search(r"(\d\.\d+) of the true ones", note)  # as `FoundNeighbors.words` says it
    return " · ".join([trust[0] if trust else "", f"{near[1]} of true neighbors" if near else ""]).strip(" ·")


def map_quality(vectors: Float[np.ndarray, "n d"], points: Float[np.ndarray, "n 2"], *, k: int = 15) -> MapQuality:
    """Return the quality of a map of unit rows; neighbors by the cosine and by the distance on the map."""
    from scipy.spatial import cKDTree

    n = len(vectors)
    k = max(1, min(k, n - 1))
    questions = at_most(n, ASKED if n <= MOST_EXACT else ASKED_OF_MANY)
    near = cKDTree(points).query(points[questions], min(k + 1, n))[1].reshape(len(questions), -1)
    # Of many equal points the own one may not be among the nearest: then the last one is left out.
    itself = near == questions[:, None]
    itself[~itself.any(axis=1), -1] = True
    on_map = near[~itself].reshape(len(questions), -1)
    asking = exact(vectors[questions])
    limit = np.einsum("qd,qkd->qk", asking, exact(vectors[on_map])) + _ROUNDED

    def count(columns: slice, ahead: Int[np.ndarray, "q k"]) -> None:
        tile = asking @ exact(vectors[columns]).T
        in_tile = np.flatnonzero((questions >= columns.start) & (questions < columns.stop))
        tile[in_tile, questions[in_tile] - columns.start] = -np.inf
        for neighbor in range(ahead.shape[1]):
            ahead[:, neighbor] += np.count_nonzero(tile > limit[:, neighbor, None], axis=1)

    parts = share_out([*row_blocks(n, 1, cells=EDGE)], count, lambda: np.zeros(on_map.shape, np.int64))
    # A point before which fewer than k are nearer is one of the nearest: nobody needs to look for those.
    beyond = np.maximum(1 + sum(parts) - k, 0)
    scale = len(questions) * k * (2 * n - 3 * k - 1)
    trust = 1 - 2 * int(beyond.sum()) / scale if scale > 0 else float("nan")
    return MapQuality(np.count_nonzero(beyond == 0) / max(len(questions) * k, 1), trust, len(questions), k)
