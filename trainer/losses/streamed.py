"""The sums of `trainer.losses.tiles` over a table computed a few rows at a time, with explicit gradients.

Forward keeps one number a row; backward computes each tile once more and uses it for every gradient. That makes
8 n^2 d operations for a log-sum-exp (of one direction or of both) or a softplus sum and 14 for a retrieval, so 72 for
CLOOB; going through the graph again would cost 80 and more temporaries. Dao et al., FlashAttention, 2022,
https://arxiv.org/abs/2205.14135, recompute attention in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from trainer.losses.precision import add_product, operand, product, rounds_operands
from trainer.losses.right_answers import Answers

Gradients = tuple[Tensor | None, ...]


class LogSumExp(Function):
    """Log-sum-exp over the rows of `scale rows columns^T`; see `tiles.row_logsumexp`."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, columns: Tensor, scale: Tensor, leave_out: bool, answers: Answers, tile: int
    ) -> Float[Tensor, " n"]:
        """Return the sum of every row."""
        rounded = rounds_operands()
        sums, stored = rows.new_empty(len(rows)), operand(columns, rounded)
        for part in _parts(rows, tile):
            logits = product(operand(rows[part] * scale, rounded), stored.T)
            mask(logits, part.start, leave_out, answers)
            sums[part] = torch.logsumexp(logits, dim=1)
        ctx.save_for_backward(rows, columns, scale, sums)
        ctx.rest = leave_out, answers, tile, rounded
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, towards: Tensor) -> Gradients:
        """Return the gradients by rows, columns and scale."""
        rows, columns, scale, sums = ctx.saved_tensors
        leave_out, answers, tile, rounded = ctx.rest
        sums = _finite(sums)
        stored, d_rows, d_columns = operand(columns, rounded), torch.empty_like(rows), torch.zeros_like(columns)
        for part in _parts(rows, tile):
            scaled = operand(rows[part] * scale, rounded)
            share = product(scaled, stored.T)
            mask(share, part.start, leave_out, answers)
            share = operand(share.sub_(sums[part, None]).exp_().mul_(towards[part, None]), rounded)
            d_rows[part] = product(share, stored)
            add_product(d_columns, share.T, scaled)
        return d_rows * scale, d_columns, (rows * d_rows).sum(), None, None, None


class BothLogSumExps(Function):
    """Log-sum-exps over the rows and columns of one table, each times a factor; see `tiles.both_logsumexps`."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        columns: Tensor,
        scale: Tensor,
        factors: tuple[float, float],
        leave_out: bool,
        answers: Answers,
        tile: int,
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Return the sums of the rows, and those of the columns."""
        rounded = rounds_operands()
        across, down = rows.new_empty(len(rows)), rows.new_full((len(columns),), -torch.inf)
        stored = operand(columns, rounded)
        for part in _parts(rows, tile):
            logits = product(operand(rows[part] * scale, rounded), stored.T)
            by_row, by_column = both_ways(logits, factors, part.start, leave_out, answers)
            across[part] = torch.logsumexp(by_row, dim=1)
            down = torch.logaddexp(down, torch.logsumexp(by_column, dim=0))
        ctx.save_for_backward(rows, columns, scale, across, down)
        ctx.rest = factors, leave_out, answers, tile, rounded
        return across, down

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, towards_across: Tensor, towards_down: Tensor) -> Gradients:
        """Return the gradients by rows, columns and scale."""
        rows, columns, scale, across, down = ctx.saved_tensors
        factors, leave_out, answers, tile, rounded = ctx.rest
        across, down = _finite(across), _finite(down)
        stored, d_rows, d_columns = operand(columns, rounded), torch.empty_like(rows), torch.zeros_like(columns)
        for part in _parts(rows, tile):
            scaled = operand(rows[part] * scale, rounded)
            by_row, by_column = both_ways(product(scaled, stored.T), factors, part.start, leave_out, answers)
            share = (by_row - across[part, None]).exp_().mul_(factors[0] * towards_across[part, None])
            share = operand(share.add_(by_column.sub_(down).exp_().mul_(factors[1] * towards_down)), rounded)
            d_rows[part] = product(share, stored)
            add_product(d_columns, share.T, scaled)
        return d_rows * scale, d_columns, (rows * d_rows).sum(), None, None, None, None


class StreamedRetrieval(Function):
    """`softmax(beta state stored^T) stored`; see `tiles.weighted_patterns`."""

    @staticmethod
    def forward(ctx: Any, state: Tensor, stored: Tensor, beta: Tensor, tile: int) -> Float[Tensor, "n d"]:
        """Return what every state retrieves, not yet normalized."""
        rounded = rounds_operands()
        retrieved, sums, patterns = torch.empty_like(state), state.new_empty(len(state)), operand(stored, rounded)
        for part in _parts(state, tile):
            share = product(operand(state[part] * beta, rounded), patterns.T)
            sums[part] = torch.logsumexp(share, dim=1)
            retrieved[part] = product(operand(share.sub_(sums[part, None]).exp_(), rounded), patterns)
        ctx.save_for_backward(state, stored, beta, retrieved, sums)
        ctx.rest = tile, rounded
        return retrieved

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, towards: Tensor) -> Gradients:
        """Return the gradients by states, stored patterns (as keys and as values) and beta."""
        state, stored, beta, retrieved, sums = ctx.saved_tensors
        tile, rounded = ctx.rest
        patterns, d_state, d_stored = operand(stored, rounded), torch.empty_like(state), torch.zeros_like(stored)
        # A softmax's gradient: what a pattern gives, less what all of them give together.
        together = (towards * retrieved).sum(dim=1, keepdim=True)
        for part in _parts(state, tile):
            gradient, scaled = operand(towards[part], rounded), operand(state[part] * beta, rounded)
            share = product(scaled, patterns.T).sub_(sums[part, None]).exp_()
            add_product(d_stored, operand(share, rounded).T, gradient)
            share = operand(share.mul_(product(gradient, patterns.T).sub_(together[part])), rounded)
            d_state[part] = product(share, patterns)
            add_product(d_stored, share.T, scaled)
        return d_state * beta, d_stored, (state * d_state).sum(), None


class SoftplusSum(Function):
    """The softplus sum of `scale rows columns^T + bias`; see `tiles.softplus_sum`."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, columns: Tensor, scale: Tensor, bias: Tensor, answers: Answers, tile: int
    ) -> Float[Tensor, ""]:
        """Return a single number for the whole table."""
        rounded = rounds_operands()
        total, stored = rows.new_zeros(()), operand(columns, rounded)
        for part in _parts(rows, tile):
            logits = product(operand(rows[part] * scale, rounded), stored.T).add_(bias)
            mask(logits, part.start, False, answers)
            total += torch.nn.functional.softplus(logits).sum()
        ctx.save_for_backward(rows, columns, scale, bias)
        ctx.rest = answers, tile, rounded
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, towards: Tensor) -> Gradients:
        """Return the gradients by rows, columns, scale and bias."""
        rows, columns, scale, bias = ctx.saved_tensors
        answers, tile, rounded = ctx.rest
        stored, d_rows, d_columns = operand(columns, rounded), torch.empty_like(rows), torch.zeros_like(columns)
        d_bias = torch.zeros_like(bias)
        for part in _parts(rows, tile):
            scaled = operand(rows[part] * scale, rounded)
            share = product(scaled, stored.T).add_(bias)
            mask(share, part.start, False, answers)
            share = share.sigmoid_().mul_(towards)
            d_bias += share.sum()
            share = operand(share, rounded)
            d_rows[part] = product(share, stored)
            add_product(d_columns, share.T, scaled)
        return d_rows * scale, d_columns, (rows * d_rows).sum(), d_bias, None, None


def both_ways(
    logits: Float[Tensor, "rows n"], factors: tuple[float, float], start: int, leave_out: bool, answers: Answers
) -> tuple[Float[Tensor, "rows n"], Float[Tensor, "rows n"]]:
    """Return the table times each factor, masked, overwriting the logits; one tensor twice if the factors are equal."""
    second = None if factors[0] == factors[1] else logits * factors[1]
    first = logits if factors[0] == 1 else logits.mul_(factors[0])
    mask(first, start, leave_out, answers)
    if second is None:
        return first, first
    mask(second, start, leave_out, answers)
    return first, second


def mask(table: Float[Tensor, "rows n"], start: int, leave_out: bool, answers: Answers) -> None:
    """Set right answers other than the match, and optionally the match, to minus infinity in place.

    Args:
        table: Rows from `start` on against all columns.
        start: Number of the first row.
        leave_out: Whether the match is left out, too.
        answers: Of all rows.
    """
    # Not assigned to cells by their indices: a card was waited for there, forward and backward (H200, torch 2.11).
    if answers is None:
        if leave_out:
            table.diagonal(start).fill_(-torch.inf)
        return
    right = answers.part(slice(start, start + len(table))).cells()
    right.diagonal(start).fill_(leave_out)
    table.masked_fill_(right, -torch.inf)


def _finite(sums: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Return the log-sum-exps, 0 for those of nothing: less it, a cell that is left out stays minus infinity."""
    return sums.masked_fill(sums.isneginf(), 0.0)


def _parts(rows: Tensor, tile: int) -> Iterator[slice]:
    return (slice(start, min(start + tile, len(rows))) for start in range(0, len(rows), tile))
