"""The log-sum-exps and retrievals of `trainer.losses.tiles` in fused Triton kernels, for CUDA GPUs.

No table is ever stored, only one number a row, so memory is O((n + m) d), and a cell is computed, masked, reduced and
multiplied without leaving the chip. Dao et al., FlashAttention, 2022, https://arxiv.org/abs/2205.14135
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, Final, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from trainer.losses.precision import operand, rounds_operands
from trainer.losses.right_answers import Answers

Gradients = tuple[Tensor | None, ...]

_chosen: ContextVar[bool] = ContextVar("fused", default=False)


@dataclass(frozen=True)
class FusedBlocks:
    """The size of the blocks in a kernel; powers of 2, at least 16, as the matrix units want.

    Attributes:
        rows: Of the table, by one program.
        columns: Of the table, at a time.
        chunk: Numbers of an embedding that are multiplied at a time.
        width: Numbers of an embedding that one program sums; each program of a row computes its cells again.
    """

    rows: int = 64
    columns: int = 64
    chunk: int = 64
    width: int = 256


BLOCKS: Final = FusedBlocks()


@contextmanager
def fused_losses(on: bool = True) -> Iterator[None]:
    """Compute losses by the fused kernels wherever `usable` says that they can."""
    token = _chosen.set(on)
    try:
        yield
    finally:
        _chosen.reset(token)


def usable(rows: Tensor) -> bool:
    """Return whether the caller chose the kernels, and they can compute these rows: float32, on a GPU, with Triton."""
    return _chosen.get() and rows.dtype == torch.float32 and (rows.is_cuda or interpreted()) and installed()


@cache
def installed() -> bool:
    """Return whether Triton is installed; torch brings it on Linux with CUDA."""
    return find_spec("triton") is not None


def interpreted() -> bool:
    """Return whether Triton runs its kernels by its interpreter, which needs no GPU."""
    if not installed():
        return False
    from triton import knobs

    return bool(knobs.runtime.interpret)


def row_logsumexp(
    rows: Float[Tensor, "n d"],
    columns: Float[Tensor, "m d"],
    scale: Float[Tensor, ""],
    leave_out: bool,
    answers: Answers,
    blocks: FusedBlocks = BLOCKS,
) -> Float[Tensor, " n"]:
    """Return what `tiles.row_logsumexp` does."""
    return _LogSumExp.apply(rows, columns, scale, leave_out, answers, blocks)


def both_logsumexps(
    rows: Float[Tensor, "n d"],
    columns: Float[Tensor, "n d"],
    scale: Float[Tensor, ""],
    factors: tuple[float, float],
    leave_out: bool,
    answers: Answers,
    blocks: FusedBlocks = BLOCKS,
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Return what `tiles.both_logsumexps` does; both sums share one backward pass over the table."""
    return _BothLogSumExps.apply(rows, columns, scale, factors, leave_out, answers, blocks)


def weighted_patterns(
    state: Float[Tensor, "n d"], stored: Float[Tensor, "m d"], beta: Float[Tensor, ""], blocks: FusedBlocks = BLOCKS
) -> Float[Tensor, "n d"]:
    """Return what `tiles.weighted_patterns` does."""
    return _Retrieval.apply(state, stored, beta, blocks)


@dataclass(frozen=True)
class _Table:
    """`scale rows columns^T` with its mask, whose cells exist only inside a kernel."""

    rows: Tensor
    columns: Tensor
    scale: Tensor
    leave_out: bool
    answers: Answers
    blocks: FusedBlocks

    @property
    def transposed(self) -> _Table:
        answers = None if self.answers is None else self.answers.transposed
        return _Table(self.columns, self.rows, self.scale, self.leave_out, answers, self.blocks)

    def logsumexp(self, factor: float = 1.0) -> Float[Tensor, " n"]:
        """Return the log-sum-exp of every row of the table times a factor."""
        from trainer.losses import fused_kernels

        blocks, sums = self.blocks, self.scale.new_empty(len(self.rows))
        grid = (_blocks(len(self.rows), blocks.rows),)
        scale = self.scale if factor == 1 else self.scale * factor
        fused_kernels.row_logsumexp[grid](
            self.rows,
            self.columns,
            scale,
            *self._keys(),
            sums,
            len(self.rows),
            len(self.columns),
            **self._constants(),
        )
        return sums

    def weighted(
        self,
        values: Float[Tensor, "m d"],
        *,
        by_row: _Weights | None = None,
        by_column: _Weights | None = None,
        softmax: _Softmax | None = None,
    ) -> Float[Tensor, "n d"]:
        """Return the sum over columns of `w_ij values_j`; see `fused_kernels.weighted_sum`."""
        from trainer.losses import fused_kernels

        n, m, d = len(self.rows), len(self.columns), self.rows.shape[1]
        out = self.scale.new_empty(n, d)
        row, column = by_row or _Weights(out, out), by_column or _Weights(out, out)
        of = softmax or _Softmax(self.rows, self.columns, out, "row")
        width = min(self.blocks.width, _power(d))
        fused_kernels.weighted_sum[(_blocks(n, self.blocks.rows), _blocks(d, width))](
            self.rows, self.columns, self.scale, *self._keys(), values, out,
            row.sums, row.weight, column.sums, column.weight, row.factor, column.factor,
            of.rows, of.columns, of.together, n, m,
            BY_ROW=by_row is not None, BY_COLUMN=by_column is not None, SOFTMAX=softmax.along if softmax else "",
            WIDTH=width, **self._constants(),
        )  # fmt: skip
        return out

    def _keys(self) -> tuple[Tensor, Tensor, int]:
        """Return the keys of rows and columns, and their number; without any, tensors that the kernels do not read."""
        if self.answers is None:
            return self.scale, self.scale, 0
        return self.answers.rows.contiguous(), self.answers.columns.contiguous(), self.answers.rows.shape[1]

    def _constants(self) -> dict[str, Any]:
        d, blocks = self.rows.shape[1], self.blocks
        sizes = {"ROWS": blocks.rows, "COLUMNS": blocks.columns, "CHUNK": min(blocks.chunk, _power(d))}
        return {
            "D": d,
            "LEAVE_OUT": self.leave_out,
            "WIDEN": interpreted(),
            **sizes,
        }


@dataclass(frozen=True)
class _Weights:
    """Of each row or column: its log-sum-exp and its weight; `weight exp(factor l - sums)`."""

    sums: Tensor
    weight: Tensor
    factor: float = 1.0


@dataclass(frozen=True)
class _Softmax:
    """What the gradient of a softmax multiplies by: `rows_i . columns_j` less `together` of the row or column."""

    rows: Tensor
    columns: Tensor
    together: Tensor
    along: Literal["row", "column"]


class _LogSumExp(Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, columns: Tensor, scale: Tensor, leave_out: bool, answers: Answers, blocks: FusedBlocks
    ) -> Float[Tensor, " n"]:
        rounded = rounds_operands()
        table = _table(rows, columns, scale, leave_out, answers, blocks, rounded)
        sums = table.logsumexp()
        ctx.save_for_backward(rows, columns, scale, sums)
        ctx.rest = leave_out, answers, blocks, rounded
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, towards: Tensor) -> Gradients:
        rows, columns, scale, sums = ctx.saved_tensors
        leave_out, answers, blocks, rounded = ctx.rest
        table = _table(rows, columns, scale, leave_out, answers, blocks, rounded)
        weights = _Weights(sums, towards.contiguous())
        d_rows = table.weighted(table.columns, by_row=weights)
        d_columns = table.transposed.weighted(table.rows, by_column=weights)
        return d_rows * scale, d_columns * scale, (rows * d_rows).sum(), None, None, None


class _BothLogSumExps(Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        columns: Tensor,
        scale: Tensor,
        factors: tuple[float, float],
        leave_out: bool,
        answers: Answers,
        blocks: FusedBlocks,
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        rounded = rounds_operands()
        table = _table(rows, columns, scale, leave_out, answers, blocks, rounded)
        across, down = table.logsumexp(factors[0]), table.transposed.logsumexp(factors[1])
        ctx.save_for_backward(rows, columns, scale, across, down)
        ctx.rest = factors, leave_out, answers, blocks, rounded
        return across, down

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, towards_across: Tensor, towards_down: Tensor) -> Gradients:
        rows, columns, scale, across, down = ctx.saved_tensors
        factors, leave_out, answers, blocks, rounded = ctx.rest
        table = _table(rows, columns, scale, leave_out, answers, blocks, rounded)
        row_weights = _Weights(across, factors[0] * towards_across.contiguous(), factors[0])
        column_weights = _Weights(down, factors[1] * towards_down.contiguous(), factors[1])
        d_rows = table.weighted(table.columns, by_row=row_weights, by_column=column_weights)
        d_columns = table.transposed.weighted(table.rows, by_row=column_weights, by_column=row_weights)
        return d_rows * scale, d_columns * scale, (rows * d_rows).sum(), None, None, None, None


class _Retrieval(Function):
    @staticmethod
    def forward(ctx: Any, state: Tensor, stored: Tensor, beta: Tensor, blocks: FusedBlocks) -> Float[Tensor, "n d"]:
        rounded = rounds_operands()
        table = _table(state, stored, beta, False, None, blocks, rounded)
        sums = table.logsumexp()
        retrieved = table.weighted(table.columns, by_row=_Weights(sums, torch.ones_like(sums)))
        ctx.save_for_backward(state, stored, beta, retrieved, sums)
        ctx.rest = blocks, rounded
        return retrieved

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, towards: Tensor) -> Gradients:
        state, stored, beta, retrieved, sums = ctx.saved_tensors
        blocks, rounded = ctx.rest
        table = _table(state, stored, beta, False, None, blocks, rounded)
        gradient, share = operand(towards, rounded).contiguous(), _Weights(sums, torch.ones_like(sums))
        # A softmax's gradient: what a pattern gives, less what all of them give together.
        together = (towards * retrieved).sum(dim=1)
        by_row = _Softmax(gradient, table.columns, together, "row")
        d_state = table.weighted(table.columns, by_row=share, softmax=by_row)
        as_value = table.transposed.weighted(gradient, by_column=share)
        by_column = _Softmax(table.columns, gradient, together, "column")
        as_key = table.transposed.weighted(table.rows, by_column=share, softmax=by_column)
        return d_state * beta, as_key * beta + as_value, (state * d_state).sum(), None


def _table(
    rows: Tensor, columns: Tensor, scale: Tensor, leave_out: bool, answers: Answers, blocks: FusedBlocks, rounded: bool
) -> _Table:
    left, right = (operand(matrix, rounded).contiguous() for matrix in (rows, columns))
    return _Table(left, right, scale.float(), leave_out, answers, blocks)


def _blocks(count: int, size: int) -> int:
    return -(-count // size)


def _power(count: int) -> int:
    """Return the least power of 2 that is at least the count and 16."""
    return max(16, 1 << (count - 1).bit_length())
