"""Hubness: items that are neighbors of too many queries, and the CSLS correction."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiled_neighbors import nearest
from trainer.analysis.tiles import exact


def k_occurrence(
    query: Float[np.ndarray, "n d"], stored: Float[np.ndarray, "m d"], k: int, progress: Progress = silent
) -> Int[np.ndarray, " m"]:
    """Return how many queries have each item among their `k` nearest; the sum is n k, the mean n k / m.

    Radovanović, Nanopoulos & Ivanović, Hubs in Space, 2010, https://jmlr.org/papers/v11/radovanovic10a.html
    """
    rows, _ = nearest(query, stored, k, progress=progress)
    return np.bincount(rows.ravel(), minlength=len(stored))


def skewness(values: Float[np.ndarray, " m"] | Int[np.ndarray, " m"]) -> float:
    """Return the third standardized moment: 0 if symmetric, large with few hubs; NaN if all values are equal."""
    centered = np.asarray(values, np.float64) - np.mean(values, dtype=np.float64) if len(values) else np.zeros(0)
    spread = float(np.sqrt(np.mean(centered**2))) if len(centered) else 0.0
    return float(np.mean(centered**3) / spread**3) if spread > 0 else float("nan")


def mean_of_nearest(
    query: Float[np.ndarray, "n d"], stored: Float[np.ndarray, "m d"], k: int, progress: Progress = silent
) -> Float[np.ndarray, " n"]:
    """Return each query's mean cosine to its `k` nearest items: the local scale r of CSLS, `2 cos(x, y) - r(x) - r(y)`.

    Conneau et al., Word Translation Without Parallel Data, 2018, https://arxiv.org/abs/1710.04087, section 2.3.
    """
    return nearest(query, stored, k, progress=progress)[1].mean(1)


class CslsVectors:
    """The stored vectors with `-r/2` appended, made when rows are read: of a million, a copy takes 2 GB.

    The inner product with `(x, 1)` is `cos - r(y) / 2`, half of CSLS without the query's own r, which does not change
    the order of one query's hits. So every search over cosines can search by CSLS.
    """

    def __init__(self, stored: Float[np.ndarray, "m d"], offsets: Float[np.ndarray, " m"]) -> None:
        self._stored, self.dtype = stored, np.result_type(stored.dtype, np.float32)
        self._last = (-offsets / 2).astype(self.dtype)
        self.shape = len(stored), stored.shape[1] + 1

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, rows: slice | Int[np.ndarray, " *shape"]) -> Float[np.ndarray, "*shape d+1"]:
        return np.concatenate([exact(self._stored[rows]), self._last[rows][..., None]], axis=-1)


def csls_queries(query: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d+1"]:
    """Return the queries with a 1 appended; see `CslsVectors`."""
    query = exact(query)
    return np.concatenate([query, np.ones((len(query), 1), query.dtype)], axis=1)
