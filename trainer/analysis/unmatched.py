"""All cosines of many images with all distinct texts, one block at a time, and each block's largest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.distinct import DistinctItems
from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiles import exact, row_blocks

CELLS: Final = 16_000_000
"""Cosines of a block, 64 MiB: of so many rows that reading all texts for each block costs little beside multiplying."""
FEWEST: Final = 128
"""Rows of a block where 64 MiB hold fewer: of a million texts each block makes single from half precision again."""
FEW: Final = 2_048
"""Up to so many columns a partition of whole rows is as quick as looking at parts of them first."""


class UnmatchedBlock(Struct, frozen=True):
    """Cosines of some images with all distinct texts."""

    rows: slice  # Places among the images that ask.
    cosines: Float[np.ndarray, "b g"]  # Theirs with every distinct text; may be written to.
    # Rows and columns of the cells whose text is a caption of the image's own picture, row by row.
    own: tuple[Int[np.ndarray, " o"], Int[np.ndarray, " o"]]
    first: Int[np.ndarray, " b"]  # Where the cells of each row begin in `own`.


def cosine_blocks(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    answers: DistinctItems,
    rows: Int[np.ndarray, " m"],
    *,
    note: str,
    progress: Progress = silent,
) -> Iterator[UnmatchedBlock]:
    """Yield the cosines of the images `rows` with all distinct texts, which `answers` defines with the correct ones."""
    text, width = answers.gallery(text), text.shape[1]
    for block in row_blocks(len(rows), len(text), cells=max(CELLS, FEWEST * len(text))):
        progress(block.start / max(len(rows), 1), note)
        line, cell, first = answers.cells(answers.question[rows[block]])
        asking = exact(image[rows[block]])
        cosines = np.empty((len(asking), len(text)), asking.dtype)
        # By parts: a copy of a million texts in single precision would take 2 GB.
        for part in row_blocks(len(text), width, cells=CELLS):
            cosines[:, part] = asking @ exact(text[part]).T
        yield UnmatchedBlock(block, cosines, (line, cell), first)


def largest(cosines: Float[np.ndarray, "b n"], k: int) -> Int[np.ndarray, "b k"]:
    """Return the columns of each row's `k` largest values, unordered; `k` is at most n.

    Wide rows are cut into parts. The largest values can only lie in the `k` parts with the largest maxima, so only
    these are partitioned: ten times as quick as partitioning rows of 100,000.
    """
    rows, n = cosines.shape
    if n <= FEW or k * 64 > n:
        return np.argpartition(cosines, n - k, axis=1)[:, n - k :]
    height = int((n / k) ** 0.5)
    parts = n // height
    # Part j holds the columns j, j + parts, j + 2 parts ...: so the maxima are of whole vectors of neighbors.
    maxima = cosines[:, : parts * height].reshape(rows, height, parts).max(1)
    best = np.argpartition(maxima, parts - k, axis=1)[:, parts - k :]
    within = (best[:, :, None] + parts * np.arange(height)).reshape(rows, -1)
    rest = np.broadcast_to(np.arange(parts * height, n), (rows, n - parts * height))
    candidates = np.concatenate([within, rest], axis=1)
    values = np.take_along_axis(cosines, candidates, axis=1)
    top = np.argpartition(values, values.shape[1] - k, axis=1)[:, values.shape[1] - k :]
    return np.take_along_axis(candidates, top, axis=1)


class HardestUnmatched:
    """The largest unmatched cosines of each image, and their texts; filled block by block.

    Attributes:
        cosines: Largest first; NaN where an image has fewer.
        places: The texts, each the first row that has its caption; -1 where an image has fewer.
        right: Each image's largest cosine with a right text; NaN where one is not a number.
    """

    def __init__(self, rows: int, k: int, dtype: np.dtype, answers: DistinctItems) -> None:
        self._texts = answers.rows
        self.right: Float[np.ndarray, " m"] = np.full(rows, np.nan, dtype)
        self.cosines: Float[np.ndarray, "m k"] = np.full((rows, k), np.nan, dtype)
        self.places: Int[np.ndarray, "m k"] = np.full((rows, k), -1, np.int64)

    def take(self, block: UnmatchedBlock) -> None:
        """Add a block; the cells of own texts become minus infinity."""
        self.right[block.rows] = np.maximum.reduceat(block.cosines[block.own], block.first)
        block.cosines[block.own] = -np.inf
        count = min(self.cosines.shape[1], block.cosines.shape[1])
        top = largest(block.cosines, count)
        values = np.take_along_axis(block.cosines, top, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        values, top = (np.take_along_axis(array, order, axis=1) for array in (values, top))
        none = np.isneginf(values)
        self.cosines[block.rows, :count] = np.where(none, np.nan, values)
        self.places[block.rows, :count] = np.where(none, -1, self._texts[top])
