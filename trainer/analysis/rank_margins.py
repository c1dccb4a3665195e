"""The rank and margin of each query's correct item, comparable across runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.distinct import DistinctItems, Matching, one_to_one
from trainer.analysis.progress import Progress
from trainer.analysis.tiles import inner_products, on_grid, ranked, row_blocks

_COUNTED: Final = 16_000_000
"""Cosines of a block that is counted along and down: so many lines that reading the other side anew costs little."""


@dataclass(frozen=True)
class Standing:
    """The rank and margin of each query's correct item.

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
    answers: DistinctItems | None = None,
    progress: Progress | None = None,
    *,
    rows: Int[np.ndarray, " m"] | None = None,
) -> Standing:
    """Return rank and standardized margin of every query's correct item by inner product, in one tiled pass.

    The margin is positive exactly where the rank is 1. Dividing by the spread of the wrong cosines makes it the same
    for any run that only stretches or shifts its cosines, which an objective may do at will. Equal items are one.
    Block by block: memory is O(n).

    Args:
        query: Unit embeddings that ask.
        stored: Unit embeddings that are ranked; row i is a right answer to query i.
        answers: Which items are one, and which are right; None: all differ, row i answers query i alone.
        progress: Told after each block.
        rows: The queries that ask, all items answer; None: all.
    """
    answers = one_to_one(len(stored)) if answers is None else answers
    stored = answers.gallery(stored)
    query, stored = (ranked(side, len(query) * len(stored)) for side in (query, stored))
    queries = np.arange(len(query)) if rows is None else rows
    rank, margin = np.empty(len(queries), np.int64), np.empty(len(queries))
    for block in row_blocks(len(queries), len(stored)):
        if progress is not None:
            progress(block.start / max(len(queries), 1), "")
        similarity = inner_products(query[queries[block]], stored)
        cells = answers.cells(answers.question[queries[block]])
        rank[block], margin[block] = _placed(similarity, *cells)
    return Standing(rank, margin)


def both_standings(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    matching: Matching | None = None,
    progress: Progress | None = None,
) -> tuple[Standing, Int[np.ndarray, " n"]]:
    """Return `standing(image, text)` and the ranks of `standing(text, image)`, from one product instead of two.

    A text's rank is counted down the columns of the images' tiles, so its best right cosine must be known before: it
    is computed by itself, in another order of summing, and of many pairs what ties with it up to that rounding stands
    before it.

    Args:
        image: Unit embeddings.
        text: Unit embeddings; row i belongs to image i.
        matching: Which texts and which images are one, and who answers whom; None: all differ, row i answers row i.
        progress: Told after each block.
    """
    texts, images = (one_to_one(len(text)),) * 2 if matching is None else (matching.texts, matching.images)
    # Distinct images in lines and distinct texts in columns: equal questions have equal answers.
    image, text = images.gallery(image), texts.gallery(text)
    image, text = (ranked(side, len(image) * len(text)) for side in (image, text))
    best_of_text = _best_right(text, image, images)
    rounding = 0.0 if text.dtype == np.float64 else np.finfo(text.dtype).eps * np.sqrt(text.shape[1])
    least = best_of_text - rounding
    rank, margin, ahead_of_text = np.empty(len(image), np.int64), np.empty(len(image)), np.zeros(len(text), np.int64)
    for block in row_blocks(len(image), len(text), cells=_COUNTED):
        if progress is not None:
            progress(block.start / max(len(image), 1), "")
        similarity = inner_products(image[block], text)
        line, cell, first = texts.cells(np.arange(block.start, block.stop))
        answer_cosine = similarity[line, cell]
        similarity[line, cell] = -np.inf
        ahead_of_text += _counted_down(~(similarity < least))
        similarity[line, cell] = answer_cosine
        rank[block], margin[block] = _placed(similarity, line, cell, first)
    text_rank = 1 + ahead_of_text - np.where(np.isnan(best_of_text), np.diff(images.starts), 0)
    return Standing(rank[texts.question], margin[texts.question]), text_rank[images.question]


def _placed(
    similarity: Float[np.ndarray, "b g"],
    line: Int[np.ndarray, " m"],
    cell: Int[np.ndarray, " m"],
    first: Int[np.ndarray, " b"],
) -> tuple[Int[np.ndarray, " b"], Float[np.ndarray, " b"]]:
    """Return rank and margin of each line with its correct cells; overwrites the similarities."""
    best = np.maximum.reduceat(similarity[line, cell], first)
    rights = np.diff(first, append=len(line))
    similarity[line, cell] = -np.inf
    # A best of NaN is below nothing: every wrong item counts, the right ones that are set aside do not.
    ahead = np.count_nonzero(~(similarity < best[:, None]), axis=1)
    rank = 1 + ahead - np.where(np.isnan(best), rights, 0)
    return rank, _margin(similarity, best, line, cell, similarity.shape[1] - rights)


def _counted_down(flags: Bool[np.ndarray, "b n"]) -> Int[np.ndarray, " n"]:
    """Count each column in bytes, 255 lines at a time, which is ten times as fast as in integers."""
    lines = flags.view(np.uint8)
    parts = [lines[start : start + 255].sum(0, dtype=np.uint8) for start in range(0, len(lines), 255)]
    return np.sum(parts, axis=0, dtype=np.int64) if parts else np.zeros(flags.shape[1], np.int64)


def _best_right(
    query: Float[np.ndarray, "q d"], stored: Float[np.ndarray, "g d"], answers: DistinctItems
) -> Float[np.ndarray, " q"]:
    """Return the largest cosine of each distinct query with its correct items; NaN if any is NaN."""
    line, cell, first = answers.cells(np.arange(len(query)))
    cosines = np.empty(len(line), query.dtype)
    for part in row_blocks(len(line), query.shape[1]):
        cosines[part] = on_grid(np.einsum("nd,nd->n", query[line[part]], stored[cell[part]]))
    return np.maximum.reduceat(cosines, first)


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
