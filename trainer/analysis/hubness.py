"""Hubness: items that are neighbors of too many queries, and the CSLS correction."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.embedding_similarity import largest
from trainer.analysis.progress import Progress
from trainer.analysis.tiles import exact, inner_products, ranked, row_blocks


def k_occurrence(
    query: Float[np.ndarray, "n d"], stored: Float[np.ndarray, "m d"], k: int, progress: Progress | None = None
) -> Int[np.ndarray, " m"]:
    """Return how many queries have each item among their `k` nearest; the sum is n k, the mean n k / m.

    Radovanović, Nanopoulos & Ivanović, Hubs in Space, 2010, https://jmlr.org/papers/v11/radovanovic10a.html
    """
    stored = ranked(stored, len(query) * len(stored))
    k = min(k, len(stored))
    counts = np.zeros(len(stored), np.int64)
    for rows in row_blocks(len(query), len(stored)):
        if progress is not None:
            progress(rows.start / len(query), "")
        similarity = inner_products(ranked(query[rows], len(query) * len(stored)), stored)
        np.copyto(similarity, -np.inf, where=np.isnan(similarity))
        counts += np.bincount(largest(similarity, k).ravel(), minlength=len(stored))
    return counts


def skewness(values: Float[np.ndarray, " m"] | Int[np.ndarray, " m"]) -> float:
    """Return the third standardized moment: 0 if symmetric, large with few hubs; NaN if all values are equal."""
    centered = np.asarray(values, np.float64) - np.mean(values, dtype=np.float64) if len(values) else np.zeros(0)
    spread = float(np.sqrt(np.mean(centered**2))) if len(centered) else 0.0
    return float(np.mean(centered**3) / spread**3) if spread > 0 else float("nan")


def mean_of_nearest(
    query: Float[np.ndarray, "n d"], stored: Float[np.ndarray, "m d"], k: int, progress: Progress | None = None
) -> Float[np.ndarray, " n"]:
    """Return each query's mean cosine to its `k` nearest items: the local scale that CSLS subtracts."""
    stored = ranked(stored, len(query) * len(stored))
    k = min(k, len(stored))
    means = np.empty(len(query))
    for rows in row_blocks(len(query), len(stored)):
        if progress is not None:
            progress(rows.start / len(query), "")
        similarity = inner_products(ranked(query[rows], len(query) * len(stored)), stored)
        top = np.partition(similarity, len(stored) - k, axis=1)[:, len(stored) - k :]
        means[rows] = top.mean(1, dtype=np.float64)
    return means


def csls_offsets(
    query: Float[np.ndarray, "n d"], stored: Float[np.ndarray, "m d"], k: int = 10, progress: Progress | None = None
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " m"]]:
    """Return the CSLS offsets of `2 cos(x, y) - r(x) - r(y)`, r the mean cosine to the `k` nearest across modalities.

    Conneau et al., Word Translation Without Parallel Data, 2018, https://arxiv.org/abs/1710.04087, section 2.3.

    Returns:
        r of the queries among the stored, r of the stored among the queries.
    """
    halves = [_half(progress, half) for half in (0, 1)]
    return mean_of_nearest(query, stored, k, halves[0]), mean_of_nearest(stored, query, k, halves[1])


def csls_vectors(stored: Float[np.ndarray, "m d"], offsets: Float[np.ndarray, " m"]) -> Float[np.ndarray, "m d+1"]:
    """Return the stored vectors with `-r/2` appended.

    The inner product with `(x, 1)` is `cos - r(y) / 2`, half of CSLS without the query's own r, which does not change
    the order of one query's hits. So every search over cosines can search by CSLS.
    """
    stored = exact(stored)
    return np.concatenate([stored, (-offsets[:, None] / 2).astype(stored.dtype)], axis=1)


def csls_queries(query: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d+1"]:
    """Return the queries with a 1 appended; see `csls_vectors`."""
    query = exact(query)
    return np.concatenate([query, np.ones((len(query), 1), query.dtype)], axis=1)


def _half(progress: Progress | None, half: int) -> Progress | None:
    if progress is None:
        return None
    return lambda share, note: progress((half + share) / 2, note)
