"""Log-sum-exps, retrievals and softplus sums over an n x m table that is never whole in memory.

Each tile of rows is computed, reduced and forgotten; the backward pass computes it again (activation
checkpointing), so the memory is O((n + m) d) plus one tile. Small tables are one tile, computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

DENSE_CELLS: Final = 4096 * 4096
"""Tables up to this many cells are computed whole: below it recomputing costs more than the memory is worth."""
TILE_CELLS: Final = 4 * 1024 * 1024
"""Cells of one tile: 16 MiB in float32, small enough for several temporaries beside large batches."""


def tile_rows(n: int, m: int, tile: int | None) -> int:
    """Rows of a tile: `tile` if given, all where the table is small, else about `TILE_CELLS / m`."""
    if tile is not None:
        return max(1, tile)
    return n if n * m <= DENSE_CELLS else max(16, TILE_CELLS // m)


def row_logsumexp(
    rows: Float[Tensor, "n d"],
    columns: Float[Tensor, "m d"],
    scale: float | Float[Tensor, ""],
    *,
    leave_out_matched: bool = False,
    groups: Int[Tensor, " n"] | None = None,
    tile: int | None = None,
) -> Float[Tensor, " n"]:
    """Log-sum-exp over j of `scale rows_i . columns_j`, without i if `leave_out_matched`, nor others of i's group."""

    def reduce(start: int, part: Tensor, columns: Tensor, scale: Tensor) -> Tensor:
        logits = scale * (part @ columns.T)
        if groups is not None:
            logits = logits.masked_fill(_others_of_group(groups, start, len(part)), -torch.inf)
        if leave_out_matched:
            matched = torch.arange(len(part), device=part.device)
            logits[matched, start + matched] = -torch.inf
        return torch.logsumexp(logits, dim=1)

    return torch.cat(_over_tiles(reduce, rows, columns, scale, tile=tile))


def weighted_patterns(
    state: Float[Tensor, "n d"],
    stored: Float[Tensor, "m d"],
    beta: float | Float[Tensor, ""],
    *,
    tile: int | None = None,
) -> Float[Tensor, "n d"]:
    """`softmax(beta state stored^T) stored`, rows not yet of unit length."""

    def reduce(_start: int, part: Tensor, stored: Tensor, beta: Tensor) -> Tensor:
        return torch.softmax(beta * (part @ stored.T), dim=1) @ stored

    return torch.cat(_over_tiles(reduce, state, stored, beta, tile=tile))


def softplus_sum(
    rows: Float[Tensor, "n d"],
    columns: Float[Tensor, "m d"],
    scale: float | Float[Tensor, ""],
    bias: float | Float[Tensor, ""],
    *,
    groups: Int[Tensor, " n"] | None = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """Sum over all i and j of `ln(1 + exp(scale rows_i . columns_j + bias))`, without others of i's group."""

    def reduce(start: int, part: Tensor, columns: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
        terms = F.softplus(scale * (part @ columns.T) + bias)
        if groups is not None:
            terms = terms.masked_fill(_others_of_group(groups, start, len(part)), 0)
        return terms.sum()

    return torch.stack(_over_tiles(reduce, rows, columns, scale, bias, tile=tile)).sum()


def group_sizes(groups: Int[Tensor, " n"] | None, n: int) -> Int[Tensor, " n"]:
    """How many rows have the group of each row, itself included; all 1 without groups."""
    if groups is None:
        return torch.ones(n, dtype=torch.long)
    _, place, counts = groups.unique(return_inverse=True, return_counts=True)
    return counts[place]


def _others_of_group(groups: Int[Tensor, " n"], start: int, rows: int) -> Bool[Tensor, "rows n"]:
    """Which columns are of a row's group without being its own match; rows counted from `start`."""
    mine = torch.arange(rows, device=groups.device)
    same = groups[start : start + rows, None] == groups[None, :]
    same[mine, start + mine] = False
    return same


def _over_tiles(
    reduce: Callable[..., Tensor], rows: Tensor, columns: Tensor, *scalars: float | Tensor, tile: int | None
) -> list[Tensor]:
    height = tile_rows(len(rows), len(columns), tile)
    if height >= len(rows):
        return [reduce(0, rows, columns, *scalars)]
    return [
        checkpoint(reduce, start, part, columns, *scalars, use_reentrant=False, preserve_rng_state=False)
        for start, part in zip(range(0, len(rows), height), rows.split(height), strict=True)
    ]
