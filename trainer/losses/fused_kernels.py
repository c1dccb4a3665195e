"""Triton kernels over an n x m table of cosines that is never stored: its log-sum-exps and its weighted sums.

Imported only where `trainer.losses.fused` is in use. With `TRITON_INTERPRET=1` in the environment before Triton is
first imported the kernels run on a CPU, slowly, for tests.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def row_logsumexp(
    rows, columns, scale, row_keys, column_keys, keys, sums, n, m,
    D: tl.constexpr, LEAVE_OUT: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """Write to `sums` the logsumexp over j of `scale rows_i . columns_j`, computed online over blocks of columns."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    factor = tl.load(scale)
    peak = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, m, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        table = factor * _cosines(rows, columns, i, j, n, m, D, ROWS, COLUMNS, CHUNK, WIDEN)
        table = tl.where(_kept(row_keys, column_keys, keys, i, j, n, m, LEAVE_OUT), table, -float("inf"))
        higher = tl.maximum(peak, tl.max(table, 1))
        # A row of which nothing is kept so far has the peak -inf, and -inf - -inf is not a number.
        level = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(peak - level) + tl.sum(tl.exp(table - level[:, None]), 1)
        peak = higher
    tl.store(sums + i, peak + tl.log(total), mask=i < n)


@triton.jit
def weighted_sum(
    rows, columns, scale, row_keys, column_keys, keys, values, out,
    row_sums, row_weight, column_sums, column_weight, row_factor, column_factor,
    query_rows, query_columns, together, n, m,
    D: tl.constexpr, LEAVE_OUT: tl.constexpr,
    BY_ROW: tl.constexpr, BY_COLUMN: tl.constexpr, SOFTMAX: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr, WIDTH: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """Write `sum_j w_ij values_j` to `out`, for one block of rows and `WIDTH` of the D numbers.

    With l the table, `w_ij` is `row_weight_i exp(row_factor l_ij - row_found_i)` if `BY_ROW`, plus
    `column_weight_j exp(column_factor l_ij - column_found_j)` if `BY_COLUMN`. `SOFTMAX` "row" and "column" multiply it
    by `asked_rows_i . asked_columns_j` less `together` of that row or column: the gradient of a softmax.
    """
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    e = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    factor = tl.load(scale)
    total = tl.zeros((ROWS, WIDTH), tl.float32)
    for start in range(0, m, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        table = factor * _cosines(rows, columns, i, j, n, m, D, ROWS, COLUMNS, CHUNK, WIDEN)
        weight = tl.zeros((ROWS, COLUMNS), tl.float32)
        if BY_ROW:
            mine = tl.load(row_sums + i, mask=i < n, other=0.0)[:, None]
            weight += tl.load(row_weight + i, mask=i < n, other=0.0)[:, None] * tl.exp(row_factor * table - mine)
        if BY_COLUMN:
            theirs = tl.load(column_sums + j, mask=j < m, other=0.0)[None, :]
            column_weights = tl.load(column_weight + j, mask=j < m, other=0.0)[None, :]
            weight += column_weights * tl.exp(column_factor * table - theirs)
        if SOFTMAX == "row":
            products = _cosines(query_rows, query_columns, i, j, n, m, D, ROWS, COLUMNS, CHUNK, WIDEN)
            weight *= products - tl.load(together + i, mask=i < n, other=0.0)[:, None]
        if SOFTMAX == "column":
            products = _cosines(query_rows, query_columns, i, j, n, m, D, ROWS, COLUMNS, CHUNK, WIDEN)
            weight *= products - tl.load(together + j, mask=j < m, other=0.0)[None, :]
        weight = tl.where(_kept(row_keys, column_keys, keys, i, j, n, m, LEAVE_OUT), weight, 0.0)
        inside = (j[:, None] < m) & (e[None, :] < D)
        given_values = tl.load(values + j[:, None].to(tl.int64) * D + e[None, :], mask=inside, other=0.0)
        weight = _operand(weight.to(given_values.dtype), WIDEN)
        total = tl.dot(weight, _operand(given_values, WIDEN), total, input_precision="ieee")
    target = out + i[:, None].to(tl.int64) * D + e[None, :]
    tl.store(target, total, mask=(i[:, None] < n) & (e[None, :] < D))


@triton.jit
def _cosines(
    a, b, i, j, n, m,
    D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """Return `a_i . b_j`, summed in float32 over chunks of the D numbers; 0 outside of the table."""
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, D, CHUNK):
        k = start + tl.arange(0, CHUNK)
        # Row numbers are widened: n D passes 2^31 at a few million pairs.
        left = tl.load(
            a + i[:, None].to(tl.int64) * D + k[None, :], mask=(i[:, None] < n) & (k[None, :] < D), other=0.0
        )
        right = tl.load(
            b + j[:, None].to(tl.int64) * D + k[None, :], mask=(j[:, None] < m) & (k[None, :] < D), other=0.0
        )
        # "ieee": the default, TF32, rounds float32 operands to 10 bits.
        total = tl.dot(_operand(left, WIDEN), tl.trans(_operand(right, WIDEN)), total, input_precision="ieee")
    return total


@triton.jit
def _operand(block, WIDEN: tl.constexpr):
    """Return what a product takes: the block, or with `WIDEN` its values in float32, whose products are the same.

    The interpreter multiplies the bits of bfloat16: https://github.com/triton-lang/triton/issues/11584
    """
    return block.to(tl.float32) if WIDEN else block


@triton.jit
def _kept(row_keys, column_keys, keys, i, j, n, m, LEAVE_OUT: tl.constexpr):
    """Return which cells count: those in the table, without other right answers, and without i if `LEAVE_OUT`."""
    counted = (i[:, None] < n) & (j[None, :] < m)
    for k in range(0, keys):
        mine = tl.load(row_keys + i.to(tl.int64) * keys + k, mask=i < n, other=-1)
        theirs = tl.load(column_keys + j.to(tl.int64) * keys + k, mask=j < m, other=-1)
        counted = counted & ((mine[:, None] != theirs[None, :]) | (i[:, None] == j[None, :]))
    if LEAVE_OUT:
        counted = counted & (i[:, None] != j[None, :])
    return counted
