from __future__ import annotations

import math

import pytest
import torch

from trainer.losses import nt_xent


def per_anchor(partner: float, others: list[float]) -> float:
    """Compute the loss of one anchor at 1/tau = 2."""
    return math.log(math.exp(2 * partner) + sum(math.exp(2 * c) for c in others)) - 2 * partner


@pytest.mark.parametrize("n", [2, 6])
def test_equals_double_loop(unit_rows, over_views, n):
    view_a, view_b = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    assert nt_xent(view_a, view_b, 2.0).item() == pytest.approx(over_views(view_a, view_b, per_anchor), abs=1e-12)


def test_gradient_and_symmetry(unit_rows):
    view_a, view_b = unit_rows(4, 3, 0).requires_grad_(), unit_rows(4, 3, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: nt_xent(a, b, 2.0), (view_a, view_b))
    assert nt_xent(view_b, view_a, 2.0).item() == pytest.approx(nt_xent(view_a, view_b, 2.0).item(), abs=1e-12)


def test_a_single_image_is_refused(unit_rows):
    with pytest.raises(ValueError, match="at least 2 pairs"):
        nt_xent(unit_rows(1, 3, 0), unit_rows(1, 3, 1), 2.0)


def test_equal_cosines_count_the_other_views():
    rows = torch.tensor([[1.0, 0.0]], dtype=torch.float64).repeat(5, 1)
    assert nt_xent(rows, rows, 7.0).item() == pytest.approx(math.log(9), abs=1e-12)
