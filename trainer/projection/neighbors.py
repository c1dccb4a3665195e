"""Nearest neighbors as the libraries of projections count them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float32, Int

from trainer.analysis import tiled_neighbors
from trainer.analysis.neighbor_cells import FoundNeighbors
from trainer.analysis.progress import Progress, silent


def with_itself(
    near: FoundNeighbors, *, metric: str = "cosine"
) -> tuple[Int[np.ndarray, "m k+1"], Float32[np.ndarray, "m k+1"]]:
    """Return neighbors and distances as umap-learn and openTSNE count them: the row itself is the first."""
    itself = np.arange(len(near.rows))[:, None]
    distances = distances_of(near.cosines, metric)
    return np.hstack([itself, near.rows]).astype(np.int32), np.hstack([np.zeros_like(distances[:, :1]), distances])


def distances_of(cosines: Float[np.ndarray, "m k"], metric: str = "cosine") -> Float32[np.ndarray, "m k"]:
    """Return the distances of unit rows with these cosines; they have the same neighbors by both metrics."""
    distances = np.maximum(1 - cosines, 0)
    return (np.sqrt(2 * distances) if metric == "euclidean" else distances).astype(np.float32)


def nearest_among(
    vectors: Float[np.ndarray, "m d"],
    k: int,
    among: Float[np.ndarray, "n d"],
    progress: Progress = silent,
) -> tuple[Int[np.ndarray, "m k"], Float32[np.ndarray, "m k"]]:
    """Return each row's `k` nearest rows of `among` and the distances (1 - cosine), nearest first; exact."""
    rows, cosines = tiled_neighbors.nearest(vectors, among, k, progress=progress)
    return rows, distances_of(cosines)
