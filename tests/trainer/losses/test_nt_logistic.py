from __future__ import annotations

import math

import pytest
import torch

from trainer.losses import nt_logistic


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def per_anchor(partner: float, others: list[float]) -> float:
    """Compute the loss of one anchor at 1/tau = 2."""
    return -log_sigmoid(2 * partner) - sum(log_sigmoid(-2 * c) for c in others)


@pytest.mark.parametrize("n", [2, 6])
def test_equals_double_loop(unit_rows, over_views, n):
    view_a, view_b = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    assert nt_logistic(view_a, view_b, 2.0).item() == pytest.approx(over_views(view_a, view_b, per_anchor), abs=1e-12)


def test_gradient_and_symmetry(unit_rows):
    view_a, view_b = unit_rows(4, 3, 0).requires_grad_(), unit_rows(4, 3, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: nt_logistic(a, b, 2.0), (view_a, view_b))
    assert nt_logistic(view_b, view_a, 2.0).item() == pytest.approx(nt_logistic(view_a, view_b, 2.0).item(), abs=1e-12)


def test_a_single_image_is_refused(unit_rows):
    with pytest.raises(ValueError, match="at least 2 pairs"):
        nt_logistic(unit_rows(1, 3, 0), unit_rows(1, 3, 1), 2.0)


def test_orthogonal_views_cost_one_bit_a_question():
    views = torch.eye(6, dtype=torch.float64)
    assert nt_logistic(views[:3], views[3:], 5.0).item() == pytest.approx(5 * math.log(2), abs=1e-12)


def semi_hard_per_anchor(partner: float, others: list[float]) -> float:
    """Compute the loss of one anchor and its semi-hard negative."""
    chosen = max((c for c in others if c < partner), default=min(others))
    return -log_sigmoid(2 * partner) - log_sigmoid(-2 * chosen)


@pytest.mark.parametrize("n", [2, 6, 40])
def test_semi_hard_equals_double_loop(unit_rows, over_views, n):
    view_a, view_b = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    loss = nt_logistic(view_a, view_b, 2.0, semi_hard=True)
    assert loss.item() == pytest.approx(over_views(view_a, view_b, semi_hard_per_anchor), abs=1e-12)
    views = view_a.requires_grad_(), view_b.requires_grad_()
    assert n > 6 or torch.autograd.gradcheck(lambda a, b: nt_logistic(a, b, 2.0, semi_hard=True), views)
