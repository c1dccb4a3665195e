"""Retrieval: at which place of the ranking does the right item stand, and how often among the first k."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.tiles import Progress, exact, row_blocks


def groups_of(captions: Sequence[str]) -> Int[np.ndarray, " n"]:
    """Integers that are equal exactly where the captions are; pairs of one group are right answers to each other."""
    return np.unique(np.asarray(captions, dtype=str), return_inverse=True)[1].astype(np.int64).reshape(-1)


def ranks(
    query: Float[np.ndarray, "n d"],
    stored: Float[np.ndarray, "n d"],
    groups: Int[np.ndarray, " n"] | None = None,
    *,
    progress: Progress | None = None,
) -> Int[np.ndarray, " n"]:
    """Place (1 = best) of each query's best right item among all wrong ones, by inner product.

    A wrong item that ties with the best right one stands before it, so a collapsed model, whose rows are all equal,
    ranks last and not first. Not-a-number embeddings rank last too. Block by block: memory is O(n).

    Args:
        query: Unit embeddings that ask.
        stored: Unit embeddings that are ranked; row i is a right answer to query i.
        groups: Rows of equal number are right answers to each other (equal captions); None: only row i to query i.
        progress: Told the share done; may raise to cancel.
    """
    query, stored = exact(query), exact(stored)
    places = np.empty(len(query), dtype=np.int64)
    for rows in row_blocks(len(query), len(stored)):
        if progress:
            progress(rows.start / len(query), "ranking")
        similarity = query[rows] @ stored.T
        if groups is None:
            best = similarity[np.arange(len(similarity)), np.arange(rows.start, rows.stop)]
            places[rows] = (~(similarity < best[:, None])).sum(1)
        else:
            right = groups[rows, None] == groups[None, :]
            best = np.where(right, similarity, -np.inf).max(1)
            places[rows] = 1 + (~(similarity < best[:, None]) & ~right).sum(1)
    return places


def recall_at(ranks: Int[np.ndarray, " n"], k: int) -> float:
    """Share of the queries, in [0, 1], whose right item is among the first `k`; NaN without queries."""
    return float(np.mean(ranks <= k)) if len(ranks) else float("nan")


def median_rank(ranks: Int[np.ndarray, " n"]) -> float:
    """Middle of the places, 1 is best; NaN without queries."""
    return float(np.median(ranks)) if len(ranks) else float("nan")
