"""Log-sum-exps, retrievals and softplus sums over an n x m table that is never stored whole if it is large.

Small tables are computed whole and differentiated by autograd: the dense form. Of large ones a tile of rows is
computed, reduced and forgotten, and computed again for the gradient (`trainer.losses.streams`), so the memory is
O((n + m) d) plus one tile.
"""

from __future__ import annotations

from typing import Final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from trainer.losses import fused
from trainer.losses.streams import BothLogSumExps, LogSumExp, SoftplusSum, StreamedRetrieval, both_ways, mask

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
    groups: Int[Tensor, " n"] | None = None,
    tile: int | None = None,
) -> Float[Tensor, " n"]:
    """Return logsumexp over j of `scale rows_i . columns_j`, without i if `leave_out_matched`, nor i's group."""
    if fused.usable(rows):
        return fused.row_logsumexp(rows, columns, _scalar(scale, rows), leave_out_matched, groups)
    height = _height(rows, columns, tile)
    if height < len(rows):
        return LogSumExp.apply(rows, columns, _scalar(scale, rows), leave_out_matched, groups, height)
    logits = (scale * rows) @ columns.T
    mask(logits, 0, leave_out_matched, groups)
    return torch.logsumexp(logits, dim=1)


def both_logsumexps(
    rows: Float[Tensor, "n d"],
    columns: Float[Tensor, "n d"],
    scale: float | Float[Tensor, ""],
    *,
    factors: tuple[float, float] = (1.0, 1.0),
    leave_out_matched: bool = False,
    groups: Int[Tensor, " n"] | None = None,
    tile: int | None = None,
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Return `row_logsumexp` at `factors[0] scale`, and that of the columns over the rows at `factors[1] scale`.

    From one table, so for half the operations that the two directions take one after the other.
    """
    if fused.usable(rows):
        return fused.both_logsumexps(rows, columns, _scalar(scale, rows), factors, leave_out_matched, groups)
    height = _height(rows, columns, tile)
    if height < len(rows):
        return BothLogSumExps.apply(rows, columns, _scalar(scale, rows), factors, leave_out_matched, groups, height)
    across, down = both_ways((scale * rows) @ columns.T, factors, 0, leave_out_matched, groups)
    return torch.logsumexp(across, dim=1), torch.logsumexp(down, dim=0)


def weighted_patterns(
    state: Float[Tensor, "n d"],
    stored: Float[Tensor, "m d"],
    beta: float | Float[Tensor, ""],
    *,
    tile: int | None = None,
) -> Float[Tensor, "n d"]:
    """Return `softmax(beta state stored^T) stored`, without normalizing the rows."""
    if fused.usable(state):
        return fused.weighted_patterns(state, stored, _scalar(beta, state))
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
    groups: Int[Tensor, " n"] | None = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """Return the sum over i and j of `ln(1 + exp(scale rows_i . columns_j + bias))`, without others of i's group."""
    height = _height(rows, columns, tile)
    if height < len(rows):
        return SoftplusSum.apply(rows, columns, _scalar(scale, rows), _scalar(bias, rows), groups, height)
    logits = ((scale * rows) @ columns.T).add_(bias)
    mask(logits, 0, False, groups)
    return F.softplus(logits).sum()


def group_sizes(groups: Int[Tensor, " n"] | None, n: int) -> Int[Tensor, " n"]:
    """Return the size of each row's group, including the row itself; all 1 without groups."""
    if groups is None:
        return torch.ones(n, dtype=torch.long)
    _, place, counts = groups.unique(return_inverse=True, return_counts=True)
    return counts[place]


def _height(rows: Tensor, columns: Tensor, tile: int | None) -> int:
    return tile_rows(len(rows), len(columns), tile, rows.device.type)


def _scalar(value: float | Tensor, like: Tensor) -> Float[Tensor, ""]:
    return torch.as_tensor(value, dtype=like.dtype, device=like.device)
