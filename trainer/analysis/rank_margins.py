"""The rank and margin of each query's correct item, comparable across runs."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.distinct import DistinctItems, Matching, one_to_one
from trainer.analysis.progress import Progress, silent
from trainer.analysis.projection import mean_and_scatter
from trainer.analysis.retrieval import asking_lines, both_sides, ranks_of
from trainer.analysis.tiled_ranks import AheadCounts, RightCells, count_ahead, right_cells
from trainer.analysis.tiles import exact, inner_products, row_blocks
from trainer.analysis.worker_threads import share_out

_ROUNDED: Final = 1e-12
"""Share of the scatter of all cosines below which that of the wrong ones is none."""
_NO_SPREAD: Final = 1e-9
"""Standard deviation of cosines below which these are equally near."""


class Standing(Struct, frozen=True):
    """The rank and margin of each query's correct item."""

    # Place (1 = best) of the best right item among all wrong ones; as `trainer.analysis.retrieval.ranks`.
    rank: Int[np.ndarray, " n"]
    # Best right cosine minus best wrong one, in standard deviations of this query's wrong cosines; NaN where a
    # query has fewer than two wrong items or these are all equally near.
    margin: Float[np.ndarray, " n"]


def standing(
    query: Float[np.ndarray, "n d"],
    stored: Float[np.ndarray, "n d"],
    answers: DistinctItems | None = None,
    progress: Progress = silent,
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
        rows: The queries that ask, all items answer; None: all.
    """
    answers = one_to_one(len(stored)) if answers is None else answers
    gallery = answers.gallery(stored)
    rows = np.arange(len(query)) if rows is None else rows
    lines, line = asking_lines(query, answers, rows)
    right = right_cells(query[lines], gallery, answers, answers.question[lines])
    counts = count_ahead(query[lines], gallery, right, hardest=True, progress=progress)
    placed = _standing(query[lines], gallery, right, counts)
    return Standing(placed.rank[line], placed.margin[line])


def both_standings(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    matching: Matching | None = None,
    progress: Progress = silent,
) -> tuple[Standing, Int[np.ndarray, " n"]]:
    """Return `standing(image, text)` and the ranks of `standing(text, image)`, from one product instead of two.

    Distinct images are lines and distinct texts columns: equal questions have equal answers.

    Args:
        image: Unit embeddings.
        text: Unit embeddings; row i belongs to image i.
        matching: Which texts and which images are one, and who answers whom; None: all differ, row i answers row i.
    """
    matching = Matching(*(one_to_one(len(text)),) * 2) if matching is None else matching
    image, text, right, back = both_sides(image, text, matching)
    counts = count_ahead(image, text, right, back, hardest=True, progress=progress)
    assert counts.columns is not None
    placed, text_rank = _standing(image, text, right, counts), ranks_of(counts.columns, back)
    asking = matching.texts.question
    return Standing(placed.rank[asking], placed.margin[asking]), text_rank[matching.images.question]


def cosines_with_all(query: Float[np.ndarray, "q d"], stored: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "q n"]:
    """Return the cosines of a few queries with all rows in double precision, from one pass over the rows."""
    asking, cosines = query.astype(np.float64), np.empty((len(query), len(stored)))

    def multiply(rows: slice, _: None) -> None:
        cosines[:, rows] = inner_products(asking, exact(stored[rows]).astype(np.float64))

    share_out([*row_blocks(len(stored), stored.shape[1])], multiply, lambda: None)
    return cosines


def standing_of_one(cosines: Float[np.ndarray, " n"], answers: DistinctItems, row: int) -> tuple[int, float]:
    """Return rank and margin as `standing` has them, of the query `row` by its cosines with all rows."""
    question, gallery = answers.question[row], cosines[answers.rows]
    right = answers.right[answers.starts[question] : answers.starts[question + 1]]
    best, wrong = gallery[right].max(), np.delete(gallery, right)
    spread = wrong.std() if len(wrong) > 1 else 0.0
    margin = (best - wrong.max()) / spread if spread > _NO_SPREAD else np.nan
    return 1 + int(np.count_nonzero(~(wrong < best))), float(margin)


def _standing(
    query: Float[np.ndarray, "n d"], gallery: Float[np.ndarray, "m d"], right: RightCells, counts: AheadCounts
) -> Standing:
    """Return rank and margin of each line.

    The mean and the spread of the wrong cosines need no tile: those of all follow from the mean and the scatter matrix
    of the columns, and the right ones are taken out.
    """
    rank, hardest = ranks_of(counts.lines, right), counts.hardest
    assert hardest is not None
    mean, scatter = mean_and_scatter(gallery)
    every, squares = np.empty(len(query)), np.empty(len(query))
    for rows in row_blocks(len(query), query.shape[1]):
        asking = query[rows].astype(np.float64)
        every[rows] = asking @ mean
        squares[rows] = np.einsum("nd,nd->n", asking @ scatter, asking)
    sizes, first = np.diff(right.starts), right.starts[:-1]
    wrong = len(gallery) - sizes
    off = right.cosine - np.repeat(every, sizes)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = -_sums(off, first) / wrong
        variance = squares - _sums(off**2, first) - wrong * shift**2
        # What rounding has left of nothing is nothing.
        spread = np.sqrt(np.where(variance > _ROUNDED * squares, variance, 0) / wrong)
        margin = (right.best - hardest) / spread
    # The hardest answer is known up to rounding, the rank exactly.
    margin = np.where(rank > 1, np.minimum(margin, 0), margin)
    return Standing(rank, np.where((wrong >= 2) & (spread > _NO_SPREAD), margin, np.nan))


def _sums(values: Float[np.ndarray, " e"], first: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return np.add.reduceat(values, first) if len(first) else values
