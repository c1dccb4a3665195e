"""The rank of each image's caption, also among a sample, and the agreement of two runs on it."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.distinct import DistinctItems, one_to_one
from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiles import DOUBLE_CELLS, inner_products, on_grid, ranked, row_blocks

AGREEMENTS: Final = ("both right", "only A right", "only B right", "neither right")
"""What two runs may say about one pair; `agreement` returns places in it."""

RANK_STARTS: Final = (1, 2, 6, 11, 101)
"""First rank of each group of ranks that is told apart; the last group is open."""


def ranks_among(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    sample: Int[np.ndarray, " m"],
    answers: DistinctItems | None = None,
    *,
    progress: Progress = silent,
) -> Int[np.ndarray, " n"]:
    """Return the rank (1 = best) of each image's best correct caption among the sampled ones and its own.

    What ties with the best right one (of many pairs up to the rounding of float32) stands before it, as in
    `retrieval.ranks`, which this equals where `sample` is all captions. Not-a-number embeddings rank last. Memory is
    O(n + m d).

    Args:
        image: Unit embeddings that ask.
        text: Unit embeddings; row i belongs to image i.
        sample: Rows of the texts that every image is compared with.
        answers: Which texts are one, and which are right; None: all differ, and only row i is.
        progress: Called with the share done and a note; what it raises ends the computation.
    """
    answers = one_to_one(len(text)) if answers is None else answers
    gallery = np.unique(answers.place[sample])
    column = np.full(len(answers), -1)
    column[gallery] = np.arange(len(gallery))
    cells = len(image) * len(gallery)
    stored = ranked(text[answers.rows[gallery]], cells)
    ranks = np.empty(len(image), dtype=np.int64)
    # The right captions' cosines are summed in another order than the others'; a collapsed model must still rank last.
    tie = 0.0 if cells <= DOUBLE_CELLS else np.finfo(np.float32).eps * np.sqrt(image.shape[1])
    for rows in row_blocks(len(image), max(len(gallery), image.shape[1])):
        asking = ranked(image[rows], cells)
        similarity = inner_products(asking, stored)
        line, answer, first = answers.cells(answers.question[rows])
        cosine = np.concatenate(
            [
                np.einsum("nd,nd->n", asking[line[part]], ranked(text[answers.rows[answer[part]]], cells))
                for part in row_blocks(len(line), image.shape[1])
            ]
        )
        best = np.maximum.reduceat(on_grid(cosine), first)
        sampled = column[answer] >= 0
        right = np.zeros(similarity.shape, bool)
        right[line[sampled], column[answer[sampled]]] = True
        ranks[rows] = 1 + (~(similarity < best[:, None] - tie) & ~right).sum(1)
        progress(rows.stop / len(image), f"ranks of {rows.stop:,} of {len(image):,} images")
    return ranks


def agreement(rank_a: Int[np.ndarray, " n"], rank_b: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Return each pair's index in `AGREEMENTS`; correct means that the caption has rank 1."""
    return 2 * (rank_a != 1) + (rank_b != 1)


def rank_groups(rank: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Return the index in `RANK_STARTS` of each rank's group."""
    return np.searchsorted(np.array(RANK_STARTS), rank, side="right") - 1


def rank_names() -> tuple[str, ...]:
    """Return the names of the rank groups: `1`, `2-5` and so on, with an en dash."""
    ends = [start - 1 for start in RANK_STARTS[1:]]
    closed = [f"{a}" if a == b else f"{a}\u2013{b}" for a, b in zip(RANK_STARTS, ends, strict=False)]
    return (*closed, f"over {ends[-1]:,}")
