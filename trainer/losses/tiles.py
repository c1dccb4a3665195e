"""Log-sum-exps, retrievals and softplus sums over an n x m table that is never stored whole if it is large.

Small tables are computed whole and differentiated by autograd: the dense form. Of large ones a tile of rows is
computed, reduced and forgotten, and computed again for the gradient (`trainer.losses.streamed`), so the memory is
O((n + m) d) plus one tile.
"""

from __future__ import annotations

from typing import Final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from trainer.losses.right_answers import Answers
from trainer.losses.streamed import BothLogSumExps, LogSumExp, SoftplusSum, StreamedRetrieval, both_ways, mask

DENSE_CELLS: Final = 4096 * 4096
"""Tables up to this many cells are computed whole: below it recomputing costs more than the memory is worth."""
TILE_CELLS: Final = {"cpu": 4 * 2**20, "cuda": 128 * 2**20}
"""Cells of one tile by the kind of device: 16 MiB in float32 stay near a CPU's caches, 512 MiB keep a GPU busy."""


def tile_rows(n: int, m: int, tile: int | None, device: str = "cpu") -> int:
    """Return the rows of a tile: `tile` if given, all if the table is small, else about `TILE_CELLS / m`."""
    if tile is not None:
        return max(1, tile)
    return n if n * m <= DENSE_CELLS else max(16, TILE_CELLS.get(device, TILE_CELLS["cpu"]) // m)


def row_logsumexp(
    rows: Float[Tensor, "n d"],
    columns: Float[Tensor, "m d"],
    scale: float | Float[Tensor, ""],
    *,
    leave_out_matched: bool = False,
    answers: Answers = None,
    tile: int | None = None,
) -> Float[Tensor, " n"]:
    """Return logsumexp over j of `scale rows_i . columns_j`, without other right answers than i.

    Nor i if `leave_out_matched`; then a row that has no negative has minus infinity, and no gradient.
    """
    height = _height(rows, columns, tile)
    if height < len(rows):
        return LogSumExp.apply(rows, columns, _scalar(scale, rows), leave_out_matched, answers, height)
    logits = (scale * rows) @ columns.T
    mask(logits, 0, leave_out_matched, answers)
    return _logsumexp(logits, 1, empty=leave_out_matched and answers is not None)


def both_logsumexps(
    rows: Float[Tensor, "n d"],
    columns: Float[Tensor, "n d"],
    scale: float | Float[Tensor, ""],
    *,
    factors: tuple[float, float] = (1.0, 1.0),
    leave_out_matched: bool = False,
    answers: Answers = None,
    tile: int | None = None,
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Return `row_logsumexp` at `factors[0] scale`, and that of the columns over the rows at `factors[1] scale`.

    From one table, so for half the operations that the two directions take one after the other.
    """
    height = _height(rows, columns, tile)
    if height < len(rows):
        return BothLogSumExps.apply(rows, columns, _scalar(scale, rows), factors, leave_out_matched, answers, height)
    across, down = both_ways((scale * rows) @ columns.T, factors, 0, leave_out_matched, answers)
    empty = leave_out_matched and answers is not None
    return _logsumexp(across, 1, empty=empty), _logsumexp(down, 0, empty=empty)


def weighted_patterns(
    state: Float[Tensor, "n d"],
    stored: Float[Tensor, "m d"],
    beta: float | Float[Tensor, ""],
    *,
    tile: int | None = None,
) -> Float[Tensor, "n d"]:
    """Return `softmax(beta state stored^T) stored`, without normalizing the rows."""
    height = _height(state, stored, tile)
    if height < len(state):
        return StreamedRetrieval.apply(state, stored, _scalar(beta, state), height)
    return torch.softmax((beta * state) @ stored.T, dim=1) @ stored


def softplus_sum(
    rows: Float[Tensor, "n d"],
    columns: Float[Tensor, "m d"],
    scale: float | Float[Tensor, ""],
    bias: float | Float[Tensor, ""],
    *,
    answers: Answers = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """Return the sum over i and j of `ln(1 + exp(scale rows_i . columns_j + bias))`, without other right answers."""
    height = _height(rows, columns, tile)
    if height < len(rows):
        return SoftplusSum.apply(rows, columns, _scalar(scale, rows), _scalar(bias, rows), answers, height)
    logits = ((scale * rows) @ columns.T).add_(bias)
    mask(logits, 0, False, answers)
    return F.softplus(logits).sum()


def above_match(sums: Float[Tensor, " n"], matched: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Return log-sum-exps over negatives less the match; 0, with no gradient, for a row without any negative."""
    return torch.where(sums.isneginf(), matched, sums) - matched


def negatives(answers: Answers, n: int, where: torch.device | None = None) -> Int[Tensor, "2 n"]:
    """Return how many negatives every image has among the texts, and every text among the images."""
    return torch.full((2, n), n - 1, device=where) if answers is None else torch.stack(answers.negatives())


def _logsumexp(table: Float[Tensor, "n m"], dim: int, *, empty: bool) -> Float[Tensor, " n"]:
    """Return the log-sum-exps of a table, of which lines may be `empty`: all minus infinity.

    Such a line has minus infinity and no gradient, where torch's own is not a number.
    """
    if not empty:
        return torch.logsumexp(table, dim)
    nothing = (table.detach() == -torch.inf).all(dim, keepdim=True)
    sums = torch.logsumexp(table.masked_fill(nothing, 0.0), dim)
    return sums.masked_fill(nothing.squeeze(dim), -torch.inf)


def _height(rows: Tensor, columns: Tensor, tile: int | None) -> int:
    return tile_rows(len(rows), len(columns), tile, rows.device.type)


def _scalar(value: float | Tensor, like: Tensor) -> Float[Tensor, ""]:
    return torch.as_tensor(value, dtype=like.dtype, device=like.device)
