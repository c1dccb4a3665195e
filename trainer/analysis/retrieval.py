"""Ranking metrics: the rank of the correct item, recall at k, and average precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.distinct import DistinctItems, Matching, one_to_one
from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiled_ranks import AheadCounts, RightCells, count_ahead, right_cells
from trainer.analysis.tiles import inner_products, ranked, row_blocks

RECALLS: Final = (1, 5, 10)
"""Among how many of the first a recall looks for a right answer."""


def ranks(
    query: Float[np.ndarray, "n d"],
    stored: Float[np.ndarray, "n d"],
    answers: DistinctItems | None = None,
    *,
    rows: Int[np.ndarray, " m"] | None = None,
    progress: Progress = silent,
) -> Int[np.ndarray, " m"]:
    """Return the rank (1 = best) of each query's best correct item among incorrect ones; equal items count once.

    A wrong item that ties with the best right one stands before it, so a collapsed model, whose rows are all equal,
    ranks last and not first; `tiles.on_grid` says what a tie is. Not-a-number embeddings rank last too. Exact for any
    number of rows (`tiled_ranks`); the work is proportional to distinct questions times distinct items, memory O(n).

    Args:
        query: Unit embeddings that ask.
        stored: Unit embeddings that are ranked; row i is a right answer to query i.
        answers: Which rows are one item, and which items are right; None: all differ, row i answers query i alone.
        rows: The queries that ask; None: all.
    """
    answers = one_to_one(len(stored)) if answers is None else answers
    gallery = answers.gallery(stored)
    rows = np.arange(len(query)) if rows is None else rows
    lines, line = asking_lines(query, answers, rows)
    right = right_cells(query[lines], gallery, answers, answers.question[lines])
    return ranks_of(count_ahead(query[lines], gallery, right, progress=progress).lines, right)[line]


def asking_lines(
    query: Float[np.ndarray, "n d"], answers: DistinctItems, rows: Int[np.ndarray, " m"]
) -> tuple[Int[np.ndarray, " l"] | slice, Int[np.ndarray, " m"] | slice]:
    """Return the rows that stand for those that ask the same with the same vector, and the line of each row.

    Both are a slice of everything where no row can be spared, so that nothing is copied.
    """
    question = answers.question[rows]
    _, first, line = np.unique(question, return_index=True, return_inverse=True)
    if len(first) == len(rows):
        everything = len(rows) == len(query) and np.array_equal(rows, np.arange(len(query)))
        return (slice(None) if everything else rows), slice(None)
    leader = rows[first[line]]
    # Of one picture that was embedded in two batches the vectors differ by rounding: each asks for itself.
    other = np.zeros(len(rows), bool)
    for part in row_blocks(len(rows), query.shape[1]):
        other[part] = (query[rows[part]] != query[leader[part]]).any(axis=1)
    line[other] = len(first) + np.arange(np.count_nonzero(other))
    return np.concatenate([rows[first], rows[other]]), line


def ranks_of(ahead: Int[np.ndarray, " n"], right: RightCells) -> Int[np.ndarray, " n"]:
    """Return the ranks from what `count_ahead` counts; without a best cosine the right answers are set aside."""
    return 1 + ahead - np.where(np.isnan(right.best), np.diff(right.starts), 0)


def question_ranks(
    query: Float[np.ndarray, "n d"], stored: Float[np.ndarray, "n d"], answers: DistinctItems
) -> Int[np.ndarray, " q"]:
    """Return `ranks` of each distinct question, in order of first occurrence: what recalls are means of.

    A picture with five captions asks once, and any of its captions is right; a caption of five pictures asks once. That
    is how recall on COCO and Flickr30k is counted (Karpathy and Fei-Fei, 2015, section 4.1).
    """
    return ranks(query, stored, answers, rows=answers.asking())


def right_answers(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], matching: Matching
) -> dict[str, Bool[np.ndarray, " q"]]:
    """Return direction of retrieval -> whether each distinct question finds a right answer first, in order.

    Of two models the answers to the same pairs are paired by question; their means are R@1.
    """
    both = both_question_ranks(image, text, matching)
    return {name: placed == 1 for name, placed in zip(("image_to_text", "text_to_image"), both, strict=True)}


def both_question_ranks(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    matching: Matching,
    *,
    progress: Progress = silent,
    counts: AheadCounts | None = None,
    seen: Callable[[AheadCounts, Int[np.ndarray, " s"]], None] | None = None,
) -> tuple[Int[np.ndarray, " i"], Int[np.ndarray, " t"]]:
    """Return `question_ranks` of images among texts and of texts among images, from one product.

    Args:
        image: Unit embeddings.
        text: Unit embeddings; row i belongs to image i.
        matching: Which texts and which images are one, and who answers whom.
        counts: What was counted before; None: nothing.
        seen: Shown what is counted on the way, and the ranks of the images that have asked: a random sample of all.
    """
    image, text, right, back = both_sides(image, text, matching)

    def show(counted: AheadCounts) -> None:
        if seen is not None:
            seen(counted, ranks_of(counted.lines, right)[counted.done])

    counts = count_ahead(image, text, right, back, progress=progress, counts=counts, seen=show)
    assert counts.columns is not None
    return ranks_of(counts.lines, right), ranks_of(counts.columns, back)


def both_sides(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], matching: Matching
) -> tuple[Float[np.ndarray, "i d"], Float[np.ndarray, "t d"], RightCells, RightCells]:
    """Return the distinct images as lines and the distinct texts as columns, and who is right for whom."""
    image, text = matching.images.gallery(image), matching.texts.gallery(text)
    right = right_cells(image, text, matching.texts, np.arange(len(image)))
    return image, text, right, right_cells(text, image, matching.images, np.arange(len(text)))


def average_precision(
    query: Float[np.ndarray, "n d"],
    stored: Float[np.ndarray, "n d"],
    answers: DistinctItems | None = None,
    *,
    rows: Int[np.ndarray, " m"] | None = None,
) -> Float[np.ndarray, " m"]:
    """Return each query's mean precision over its correct items; ties count as ranked higher.

    Manning, Raghavan, Schütze, Introduction to Information Retrieval, 2008, section 8.4; its mean is the mAP. Equal
    items are one. Among ties wrong items stand before right ones, so with one right item it is 1 / `ranks`.

    Args:
        query: Unit embeddings that ask.
        stored: Unit embeddings that are ranked.
        answers: As `ranks` takes them.
        rows: The queries that ask; None: all.
    """
    answers = one_to_one(len(stored)) if answers is None else answers
    stored = answers.gallery(stored)
    query, stored = (ranked(side, len(query) * len(stored)) for side in (query, stored))
    queries = np.arange(len(query)) if rows is None else rows
    precision = np.empty(len(queries))
    for block in row_blocks(len(queries), len(stored)):
        similarity = inner_products(query[queries[block]], stored)
        line, right, first = answers.cells(answers.question[queries[block]])
        answer_cosine = similarity[line, right]
        similarity[line, right] = -np.inf
        for row, (start, end) in enumerate(zip(first, np.append(first[1:], len(line)), strict=True)):
            precision[block.start + row] = _precision(-np.sort(-answer_cosine[start:end]), similarity[row])
    return precision


def _precision(rights: Float[np.ndarray, " r"], others: Float[np.ndarray, " g"]) -> float:
    """Return the average precision of correct scores, descending with NaN last, among others masked with -inf."""
    if len(rights) == 1:
        ahead = np.count_nonzero(~(others < rights[0])) - np.isnan(rights)
    else:
        # NaN stands last in what is sorted, above everything, as a wrong item that is not a number has to.
        ahead = len(others) - np.searchsorted(np.sort(others), rights, side="left")
        ahead = np.where(np.isnan(rights), len(others) - len(rights), ahead)
    seen = np.arange(1, len(rights) + 1)
    return float(np.mean(seen / (seen + ahead)))


def recall_at(ranks: Int[np.ndarray, " n"], k: int) -> float:
    """Return the share of queries, in [0, 1], whose correct item is among the first `k`; NaN without queries."""
    return float(np.mean(ranks <= k)) if len(ranks) else float("nan")


def median_rank(ranks: Int[np.ndarray, " n"]) -> float:
    """Return the median rank, 1 is best; NaN without queries."""
    return float(np.median(ranks)) if len(ranks) else float("nan")


def retrieval_numbers(direction: str, ranks: Int[np.ndarray, " n"]) -> dict[str, float]:
    """Return recalls and the median rank of a direction, by the names under which they are logged without a prefix."""
    recalls = {f"{direction}_R@{k}": recall_at(ranks, k) for k in RECALLS}
    return recalls | {f"{direction}_median_rank": median_rank(ranks)}
