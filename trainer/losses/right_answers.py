"""Which cells of a table of all pairs are right answers, and so no negatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

COUNTED_CELLS: Final = 2**24
"""Cells that are counted at a time."""


@dataclass(frozen=True)
class RightAnswers:
    """The right answers of a table: cell (i, j) is one where `rows[i, k] == columns[j, k]` for any k.

    The match of a row is one, too, and each loss says by itself whether it takes part. Keys of a batch are those of
    `trainer.analysis.answer_keys`.
    """

    rows: Int[Tensor, "n k"]  # Keys of what asks.
    columns: Int[Tensor, "m k"]  # Keys of what answers.

    @property
    def transposed(self) -> RightAnswers:
        """The right answers where the columns ask: of captions looking for their pictures."""
        return RightAnswers(self.columns, self.rows)

    def rolled(self, shift: int) -> RightAnswers:
        """Return the right answers of a table whose rows and columns are rolled by `shift`."""
        return RightAnswers(self.rows.roll(shift, 0), self.columns.roll(shift, 0))

    def part(self, rows: slice) -> RightAnswers:
        """Return those of some rows."""
        return RightAnswers(self.rows[rows], self.columns)

    def cells(self) -> Bool[Tensor, "n m"]:
        """Return whether each cell is a right answer."""
        right = self.rows.new_zeros((len(self.rows), len(self.columns)), dtype=torch.bool)
        for row, column in zip(self.rows.unbind(1), self.columns.unbind(1), strict=True):
            right |= row[:, None] == column[None, :]
        return right

    def negatives(self) -> tuple[Int[Tensor, " n"], Int[Tensor, " m"]]:
        """Return how many negatives each row has, and each column."""
        across = torch.zeros_like(self.rows[:, 0])
        down = torch.full_like(self.columns[:, 0], len(self.rows))
        for rows in self._tiles():
            right = self.part(rows).cells()
            across[rows] = len(self.columns) - right.sum(1)
            down -= right.sum(0)
        return across, down

    def _tiles(self) -> Iterator[slice]:
        height = max(1, COUNTED_CELLS // max(len(self.columns), 1))
        return (slice(start, start + height) for start in range(0, len(self.rows), height))


Answers = RightAnswers | None
"""None: the match of a row is its only right answer."""
