from __future__ import annotations

import pytest
import torch

from trainer.losses import margin_triplet


def per_anchor(partner: float, others: list[float]) -> float:
    """Compute the loss of one anchor at margin 2."""
    return sum(max(c - partner + 2.0, 0.0) for c in others)


@pytest.mark.parametrize("n", [2, 6])
def test_equals_double_loop(unit_rows, over_views, n):
    view_a, view_b = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    assert margin_triplet(view_a, view_b, 2.0).item() == pytest.approx(
        over_views(view_a, view_b, per_anchor), abs=1e-12
    )


def test_gradient_and_symmetry(unit_rows):
    view_a, view_b = unit_rows(4, 3, 0).requires_grad_(), unit_rows(4, 3, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: margin_triplet(a, b, 2.0), (view_a, view_b))
    assert margin_triplet(view_b, view_a, 2.0).item() == pytest.approx(
        margin_triplet(view_a, view_b, 2.0).item(), abs=1e-12
    )


def test_a_single_image_is_refused(unit_rows):
    with pytest.raises(ValueError, match="at least 2 pairs"):
        margin_triplet(unit_rows(1, 3, 0), unit_rows(1, 3, 1), 2.0)


def test_matches_that_lead_by_the_margin_cost_nothing():
    rows = torch.eye(3, dtype=torch.float64)
    assert margin_triplet(rows, rows, 1.0).item() == 0
    assert margin_triplet(rows, rows, 1.25).item() == pytest.approx(4 * 0.25, abs=1e-12)


def semi_hard_per_anchor(partner: float, others: list[float]) -> float:
    """Compute the loss of one anchor and its semi-hard negative."""
    chosen = max((c for c in others if c < partner), default=min(others))
    return max(chosen - partner + 2.0, 0.0)


@pytest.mark.parametrize("n", [2, 6, 40])
def test_semi_hard_equals_double_loop(unit_rows, over_views, n):
    view_a, view_b = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    loss = margin_triplet(view_a, view_b, 2.0, semi_hard=True)
    assert loss.item() == pytest.approx(over_views(view_a, view_b, semi_hard_per_anchor), abs=1e-12)
    views = view_a.requires_grad_(), view_b.requires_grad_()
    assert n > 6 or torch.autograd.gradcheck(lambda a, b: margin_triplet(a, b, 2.0, semi_hard=True), views)
