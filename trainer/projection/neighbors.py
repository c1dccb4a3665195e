"""Exact nearest neighbors by tiled matrix products, where umap-learn would approximate.

Half of numpy's time went into partitioning each line of cosines; torch's `topk` takes a tenth of that, so that what
remains is the matrix product itself, on all cores or on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float, Int

if TYPE_CHECKING:
    import torch

TILE_CELLS: Final = 32_000_000
"""Cosines held at once (128 MB), so that memory grows with n and not with its square."""
ASKED_AT_ONCE: Final = 1024
"""Most rows of a tile: progress is told, and cancelling heard, after each."""


def nearest(
    vectors: Float[np.ndarray, "m d"],
    k: int,
    progress: Callable[[float], None] | None = None,
    *,
    among: Float[np.ndarray, "n d"] | None = None,
    metric: str = "cosine",
) -> tuple[Int[np.ndarray, "m k"], Float[np.ndarray, "m k"]]:
    """Return each row's `k` nearest rows and their distances, nearest first; exact in float32.

    Args:
        vectors: Rows of unit length.
        k: Neighbors of each row; without `among` the row itself is its first one, at distance 0.
        progress: Called with the share of rows done; what it raises ends the search.
        among: The rows that can be neighbors; None: `vectors` themselves.
        metric: `cosine` or `euclidean`; rows of unit length have the same neighbors by both.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    queries = torch.from_numpy(np.ascontiguousarray(vectors, np.float32)).to(device)
    stored = queries if among is None else torch.from_numpy(np.ascontiguousarray(among, np.float32)).to(device)
    m, k = len(queries), min(k, len(stored))
    indices, distances = np.empty((m, k), np.int32), np.empty((m, k), np.float32)
    height = max(1, min(ASKED_AT_ONCE, TILE_CELLS // max(len(stored), 1)))
    columns = stored.T
    for start in range(0, m, height):
        rows = slice(start, min(start + height, m))
        cosine, index = _best(queries[rows] @ columns, k, first_column=None if among is not None else start)
        indices[rows], distances[rows] = index.cpu().numpy(), (1 - cosine).cpu().numpy()
        if progress:
            progress(rows.stop / m)
    np.maximum(distances, 0.0, out=distances)
    if among is None:
        distances[:, 0] = 0
    return indices, np.sqrt(2 * distances) if metric == "euclidean" else distances


def _best(cosine: torch.Tensor, k: int, *, first_column: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the largest of each line; `first_column` is that of the first line's own row, None of others."""
    if first_column is not None:
        # Twins may tie with the row itself; umap takes the first column to be the point.
        cosine.diagonal(offset=first_column).fill_(2.0)
    # A row that is not a number is nobody's neighbor before all others.
    return cosine.nan_to_num_(nan=-2.0).topk(k, dim=1)
