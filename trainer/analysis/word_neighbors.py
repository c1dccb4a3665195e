"""Nearest neighbors of a few hundred vectors, such as those of words, and how well a map keeps them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.unit_rows import normalized


def nearest_rows(rows: Float[np.ndarray, "n d"], count: int) -> tuple[Int[np.ndarray, "n k"], Float[np.ndarray, "n k"]]:
    """Return each row's nearest others by cosine, the nearest first, and the cosines."""
    directions = normalized(np.asarray(rows, np.float64))
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, -np.inf)
    near = np.argsort(-cosines, axis=1, kind="stable")[:, : min(count, len(rows) - 1)]
    return near, np.take_along_axis(cosines, near, axis=1)


def neighbors_kept(near: Int[np.ndarray, "n k"], points: Float[np.ndarray, "n 2"]) -> float:
    """Return the share of these neighbors that are among as many nearest places in the map."""
    distance = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    drawn = np.argsort(distance, axis=1, kind="stable")[:, : near.shape[1]]
    return float(np.mean([len(np.intersect1d(a, b)) / len(a) for a, b in zip(near, drawn, strict=True)]))
