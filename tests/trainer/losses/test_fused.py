"""The fused kernels, run by Triton's interpreter, equal the losses in float64; no table is stored."""

from __future__ import annotations

import contextlib

import pytest
import torch

from tests.nightly import few_plain, nightly_except
from tests.tolerances import rounding
from tests.trainer.losses.all_pairs import LOSSES, value_and_gradients
from tests.trainer.losses.repeated_pairs import answers_of_batch
from trainer.losses import fused, info_nce
from trainer.losses.fused import FusedBlocks, fused_losses
from trainer.losses.precision import bfloat16_operands
from trainer.losses.right_answers import RightAnswers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not fused.installed(), reason="Triton is not installed; torch brings it on Linux with CUDA"),
    # A row of which a block keeps nothing has the logarithm of 0, which the kernel knows.
    pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning"),
]


def assert_close(found, expected, share):
    """Compare lengths of differences to the lengths of what is expected; of a gradient's scalar, to 1 at least."""
    for ours, theirs in zip(found[:3], expected[:3], strict=True):
        assert (ours - theirs).norm() <= share * max(theirs.norm(), 1e-3)
    assert abs(found[3] - expected[3]) <= share * max(abs(expected[3]), 1.0)


def share_of(scalars, length):
    """Return the relative error to allow in float32: scales multiply the error of cosines before an exponential."""
    return rounding(torch.float32, length, 1 + sum(scalars))


SIZES = [(name, n, d) for name in LOSSES for n, d in [(2, 3), (12, 6), (70, 20)]]


LARGE = [("info_nce", 65, 300), ("hopfield_retrieval", 65, 300)]
"""More rows than a block has; interpreted, a kernel takes a second for them."""


@pytest.mark.parametrize(
    ("name", "n", "d"),
    nightly_except(
        [list(one) for one in (*SIZES, *LARGE)],
        *([name, n, d] for name, n, d in SIZES if n == 12 or name == "info_nce"),
    ),
)
def test_float32_equals_float64(unit_rows, name, n, d):
    loss, scalars, options = LOSSES[name]
    rows = unit_rows(n, d, 0), unit_rows(n, d, 1)
    expected = value_and_gradients(loss, rows, scalars, options, torch.float64)
    with fused_losses():
        found = value_and_gradients(loss, rows, scalars, options, torch.float32)
        assert_close(found, expected, share_of(scalars, n * d))


@few_plain(3, "name", [name for name in LOSSES if "retrieval" not in name])
@pytest.mark.parametrize("n", nightly_except([13, 70], 13))
def test_float32_equals_float64_with_duplicates(unit_rows, name, n):
    loss, scalars, options = LOSSES[name]
    rows, options = (unit_rows(n, 6, 0), unit_rows(n, 6, 1)), {**options, "answers": answers_of_batch(n)}
    expected = value_and_gradients(loss, rows, scalars, options, torch.float64)
    with fused_losses():
        found = value_and_gradients(loss, rows, scalars, options, torch.float32)
        assert_close(found, expected, share_of(scalars, n * 6))


@few_plain(3, "name", LOSSES)
def test_rounded_operands_stay_near_float64(unit_rows, name):
    """Operands in bfloat16, sums in float32: of spread rows 2 % of the gradient's length."""
    loss, scalars, options = LOSSES[name]
    rounded = tuple(unit_rows(64, 32, seed).bfloat16().double() for seed in (0, 1))  # what the kernel is given
    expected = value_and_gradients(loss, rounded, scalars, options, torch.float64)
    with fused_losses(), bfloat16_operands():
        assert_close(value_and_gradients(loss, rounded, scalars, options, torch.float32), expected, 2e-2)


@few_plain(1, "blocks", [FusedBlocks(16, 16, 16, 16), FusedBlocks(16, 32, 16, 64), FusedBlocks(64, 16, 64, 32)])
def test_any_blocks_give_the_same(unit_rows, blocks):
    rows, columns = unit_rows(37, 40, 0).float(), unit_rows(53, 40, 1).float()
    table = 8 * rows.double() @ columns.double().T
    scale = torch.tensor(8.0)
    found = fused.row_logsumexp(rows, columns, scale, False, None, blocks)
    assert torch.allclose(found.double(), torch.logsumexp(table, dim=1), rtol=1e-6)
    retrieved = fused.weighted_patterns(rows, columns, scale, blocks)
    assert torch.allclose(retrieved.double(), torch.softmax(table, dim=1) @ columns.double(), atol=1e-6)


def test_rows_without_any_negative_are_minus_infinity(unit_rows):
    """Right answers fill more than the first block: nothing of a row is kept there."""
    rows, keys = unit_rows(40, 6, 0).float(), torch.tensor([0] * 39 + [1])[:, None]
    found = fused.row_logsumexp(
        rows, rows, torch.tensor(8.0), True, RightAnswers(keys, keys), FusedBlocks(16, 16, 16, 16)
    )
    assert torch.allclose(found[:39], 8 * rows[:39] @ rows[39], atol=1e-5)


def test_kernels_are_used_only_by_choice_and_in_float32(unit_rows, monkeypatch):
    calls = []
    monkeypatch.setattr(fused, "both_logsumexps", lambda *a: calls.append(a) or (torch.zeros(4), torch.zeros(4)))
    wide = unit_rows(4, 3, 0)
    for dtype, context, expected in (
        (torch.float32, contextlib.nullcontext, 0),
        (torch.float64, fused_losses, 0),
        (torch.float32, fused_losses, 1),
        (torch.float32, lambda: fused_losses(False), 1),
    ):
        with context():
            info_nce(wide.to(dtype), wide.to(dtype), 14.0)
        assert len(calls) == expected
