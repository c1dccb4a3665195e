"""Where each query's right item stands: its rank, and how clearly it leads, on a scale that runs share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.tiles import exact, row_blocks

Progress = Callable[[float, str], None]
"""Takes the share done, 0 to 1, and a note; raises to cancel."""
_COUNTED: Final = 16_000_000
"""Cosines of a block that is counted along and down: so many lines that reading the other side anew costs little."""


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


def both_standings(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    groups: Int[np.ndarray, " n"] | None = None,
    progress: Progress | None = None,
) -> tuple[Standing, Int[np.ndarray, " n"]]:
    """`standing(image, text)` and the ranks of `standing(text, image)`, from one product instead of two.

    A text's rank is counted down the columns of the images' tiles, so its best right cosine must be known before: it
    is computed by itself, in another order of summing, and what ties with it up to that rounding stands before it.

    Args:
        image: Unit embeddings.
        text: Unit embeddings; row i belongs to image i.
        groups: Pairs of equal number are right answers to each other (equal captions); None: only row i to row i.
        progress: Told after each block.
    """
    image, text = exact(image), exact(text)
    n = len(text)
    groups = np.arange(n) if groups is None else groups
    members, starts = _members(groups)
    best_of_text = _best_right(text, image, members, starts)
    least = best_of_text - np.finfo(text.dtype).eps * np.sqrt(text.shape[1])
    rank, margin, ahead_of_text = np.empty(n, np.int64), np.empty(n), np.zeros(n, np.int64)
    for block in row_blocks(n, n, cells=_COUNTED):
        if progress is not None:
            progress(block.start / max(n, 1), "")
        similarity = image[block] @ text.T
        line, cell, first = _right_cells(groups[block], members, starts)
        best = np.maximum.reduceat(similarity[line, cell], first)
        rights = np.diff(np.append(first, len(line)))
        similarity[line, cell] = -np.inf
        ahead_of_text += _counted_down(~(similarity < least))
        ahead = np.count_nonzero(~(similarity < best[:, None]), axis=1)
        rank[block] = 1 + ahead - np.where(np.isnan(best), rights, 0)
        margin[block] = _margin(similarity, best, line, cell, n - rights)
    rights = np.diff(starts)[groups]
    return Standing(rank, margin), 1 + ahead_of_text - np.where(np.isnan(best_of_text), rights, 0)


def _counted_down(there: Bool[np.ndarray, "b n"]) -> Int[np.ndarray, " n"]:
    """How many of each column; in bytes, 255 lines at a time, which is ten times as quick as in whole numbers."""
    lines = there.view(np.uint8)
    parts = [lines[start : start + 255].sum(0, dtype=np.uint8) for start in range(0, len(lines), 255)]
    return np.sum(parts, axis=0, dtype=np.int64) if parts else np.zeros(there.shape[1], np.int64)


def _best_right(
    query: Float[np.ndarray, "n d"],
    stored: Float[np.ndarray, "n d"],
    members: Int[np.ndarray, " n"],
    starts: Int[np.ndarray, " g+1"],
) -> Float[np.ndarray, " n"]:
    """The largest cosine of each query with the stored rows of its own group; NaN where one is not a number."""
    best = np.einsum("nd,nd->n", query, stored)
    for group in np.flatnonzero(np.diff(starts) > 1):
        rows = members[starts[group] : starts[group + 1]]
        for block in row_blocks(len(rows), len(rows)):
            best[rows[block]] = (query[rows[block]] @ stored[rows].T).max(1)
    return best


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
