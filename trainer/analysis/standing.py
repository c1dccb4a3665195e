"""Where each query's right item stands: its rank, and how clearly it leads, on a scale that runs share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.tiles import exact, row_blocks

Progress = Callable[[float, str], None]
"""Takes the share done, 0 to 1, and a note; raises to cancel."""


@dataclass(frozen=True)
class Standing:
    """How each query finds its right item.

    Attributes:
        rank: Place (1 = best) of the best right item among all wrong ones; as `trainer.analysis.retrieval.ranks`.
        margin: Best right cosine minus best wrong one, in standard deviations of this query's wrong cosines; NaN
            where a query has fewer than two wrong items or these are all equally near.
    """

    rank: Int[np.ndarray, " n"]
    margin: Float[np.ndarray, " n"]


def standing(
    query: Float[np.ndarray, "n d"],
    stored: Float[np.ndarray, "n d"],
    groups: Int[np.ndarray, " n"] | None = None,
    progress: Progress | None = None,
    *,
    rows: Int[np.ndarray, " m"] | None = None,
) -> Standing:
    """Rank and standardised margin of every query's right item, by inner product, in one pass over the tiles.

    The margin is positive exactly where the rank is 1. Dividing by the spread of the wrong cosines makes it the same
    for any run that only stretches or shifts its cosines, which an objective may do at will (DESIGN.md, "Honest
    screens"). Block by block: memory is O(n).

    Args:
        query: Unit embeddings that ask.
        stored: Unit embeddings that are ranked; row i is a right answer to query i.
        groups: Rows of equal number are right answers to each other (equal captions); None: only row i to query i.
        progress: Told after each block.
        rows: The queries that ask, all items answer; None: all.
    """
    stored = exact(stored)
    n = len(stored)
    asked = np.arange(len(query)) if rows is None else rows
    groups = np.arange(n) if groups is None else groups
    members, starts = _members(groups)
    rank, margin = np.empty(len(asked), np.int64), np.empty(len(asked))
    for block in row_blocks(len(asked), n):
        if progress is not None:
            progress(block.start / max(len(asked), 1), "")
        similarity = exact(query[asked[block]]) @ stored.T
        line, cell, first = _right_cells(groups[asked[block]], members, starts)
        best = np.maximum.reduceat(similarity[line, cell], first)
        rights = np.diff(np.append(first, len(line)))
        similarity[line, cell] = -np.inf
        # A best of NaN is below nothing: every wrong item counts, the right ones that are set aside do not.
        ahead = (~(similarity < best[:, None])).sum(1)
        rank[block] = 1 + ahead - np.where(np.isnan(best), rights, 0)
        margin[block] = _margin(similarity, best, line, cell, n - rights)
    return Standing(rank, margin)


def _margin(
    similarity: Float[np.ndarray, "b n"],
    best: Float[np.ndarray, " b"],
    line: Int[np.ndarray, " m"],
    cell: Int[np.ndarray, " m"],
    wrong: Int[np.ndarray, " b"],
) -> Float[np.ndarray, " b"]:
    hardest = similarity.max(1)
    similarity[line, cell] = 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = similarity.sum(1, dtype=np.float64) / wrong
        similarity -= mean[:, None].astype(similarity.dtype)
        similarity[line, cell] = 0.0
        spread = np.sqrt(np.einsum("bn,bn->b", similarity, similarity, dtype=np.float64) / wrong)
        margin = (best.astype(np.float64) - hardest) / spread
    return np.where((wrong >= 2) & (spread > 1e-9), margin, np.nan)


def _members(groups: Int[np.ndarray, " n"]) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " g+1"]]:
    """Rows sorted by group, and where each group begins."""
    count = int(groups.max(initial=-1)) + 1
    return np.argsort(groups, kind="stable"), np.searchsorted(np.sort(groups), np.arange(count + 1))


def _right_cells(
    of: Int[np.ndarray, " b"], members: Int[np.ndarray, " n"], starts: Int[np.ndarray, " g+1"]
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"], Int[np.ndarray, " b"]]:
    """The right cells of a block as (line, column), line by line, and where each line begins."""
    sizes = starts[of + 1] - starts[of]
    first = np.cumsum(sizes) - sizes
    line = np.repeat(np.arange(len(of)), sizes)
    within = np.arange(int(sizes.sum())) - np.repeat(first, sizes)
    return line, members[np.repeat(starts[of], sizes) + within], first
