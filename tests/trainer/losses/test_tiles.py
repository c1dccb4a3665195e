"""The tiled form of every loss equals the dense one, in value and gradient, without an n x n table."""

import contextlib

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from tests.tolerances import rounding
from tests.trainer.losses.all_pairs import LOSSES as ALL_PAIRS
from tests.trainer.losses.all_pairs import value_and_gradients
from tests.trainer.losses.repeated_pairs import answers_of_batch
from trainer.losses import (
    cloob,
    dhn_nce,
    hopfield_retrieval,
    siglip,
)
from trainer.losses.precision import bfloat16_operands
from trainer.losses.tiles import DENSE_CELLS, tile_rows

LOSSES = ALL_PAIRS | {
    "siglip": (siglip, (10.0, -3.0), {}),
    "dhn_nce detached": (dhn_nce, (2.0, 0.15, 0.4), {"detach_weights": True}),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("n", "tile"), [(12, 5), (12, 1), (9, 9), (33, 8)])
def test_tiled_equals_dense(unit_rows, name, n, tile):
    loss, scalars, options = LOSSES[name]
    rows = unit_rows(n, 6, 0), unit_rows(n, 6, 1)
    dense = value_and_gradients(loss, rows, scalars, options)
    tiled = value_and_gradients(loss, rows, scalars, {**options, "tile": tile})
    for ours, theirs in zip(tiled, dense, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in LOSSES if "retrieval" not in name])
def test_tiled_equals_dense_with_duplicates(unit_rows, name):
    loss, scalars, options = LOSSES[name]
    rows, answers = (unit_rows(13, 6, 0), unit_rows(13, 6, 1)), answers_of_batch(13)
    dense = value_and_gradients(loss, rows, scalars, {**options, "answers": answers})
    tiled = value_and_gradients(loss, rows, scalars, {**options, "answers": answers, "tile": 4})
    for ours, theirs in zip(tiled, dense, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_tiled_gradients_are_right_for_every_scalar(unit_rows):
    """Compare to finite differences, including bias and temperature."""
    image, text = unit_rows(5, 3, 0), unit_rows(5, 3, 1)
    scalars = [torch.tensor(v, dtype=torch.float64) for v in (4.0, -2.0)]
    arguments = [a.requires_grad_() for a in (image, text, *scalars)]
    assert torch.autograd.gradcheck(lambda *a: siglip(*a, tile=2), arguments)
    assert torch.autograd.gradcheck(lambda *a: cloob(*a, 8.0, tile=2), arguments[:3])
    assert torch.autograd.gradcheck(lambda *a: hopfield_retrieval(*a, tile=2), arguments[:3])
    assert torch.autograd.gradcheck(lambda *a: dhn_nce(*a, 0.15, 0.4, tile=2), arguments[:3])


@pytest.mark.parametrize("name", ["info_nce", "cloob", "siglip", "dhn_nce", "info_loob"])
def test_rounded_operands_cost_little(unit_rows, name):
    """For spread-out rows, rounding operands to bfloat16, with float32 sums, changes the gradient by 1 %."""
    loss, scalars, options = LOSSES[name]
    image = unit_rows(64, 32, 0)
    rows = image.float(), F.normalize(image + unit_rows(64, 32, 1), dim=1).float()
    found = []
    for context in (contextlib.nullcontext, bfloat16_operands):
        image, text = (r.clone().requires_grad_() for r in rows)
        with context():
            value = loss(image, text, *scalars, **options, tile=16)
        value.backward()  # outside: a loss remembers how it was computed
        found.append((value.detach(), torch.cat([image.grad, text.grad])))
    (exact, gradient), (rounded, moved) = found
    assert rounded.dtype == moved.dtype == torch.float32
    assert not torch.equal(gradient, moved)
    assert rounded.item() == pytest.approx(exact.item(), abs=0.01)
    assert (moved - gradient).norm() < 2 * rounding(torch.bfloat16, 1) * gradient.norm()  # of two operands


class LargestTensor(TorchDispatchMode):
    """Records the largest number of elements in the result of any operation."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else (result,):
            if isinstance(value, torch.Tensor):
                self.elements = max(self.elements, value.numel())
        return result


@pytest.mark.parametrize("name", LOSSES)
def test_no_table_of_all_pairs_in_either_pass(unit_rows, name):
    loss, scalars, options = LOSSES[name]
    rows = unit_rows(256, 4, 0), unit_rows(256, 4, 1)
    for tile, bound in ((16, 256 * 16), (None, 256 * 256)):
        with LargestTensor() as watched:
            value_and_gradients(loss, rows, scalars, {**options, "tile": tile})
        assert watched.elements == bound


def test_large_tables_are_tiled_by_themselves():
    assert tile_rows(4096, 4096, None) == 4096
    assert tile_rows(4097, 4096, None) * 4096 <= DENSE_CELLS / 4
    assert tile_rows(32_768, 32_768, None) == 128
    assert tile_rows(32_768, 32_768, None, "cuda") == 4096
    assert tile_rows(10, 10, 3) == 3
