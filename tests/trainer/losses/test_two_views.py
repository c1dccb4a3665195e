"""SimCLR's table 2: the three objectives share their pairs, so they share their oracle."""

from __future__ import annotations

import math

import pytest
import torch

from trainer.losses import margin_triplet, nt_logistic, nt_xent


def naive(view_a, view_b, per_anchor) -> float:
    """Mean over the 2n views of `per_anchor(cosine with the partner, cosines with all views of other images)`."""
    views = view_a.tolist() + view_b.tolist()
    n, total = len(view_a), 0.0
    for i, u in enumerate(views):
        cosines = [sum(p * q for p, q in zip(u, v, strict=True)) for v in views]
        partner = (i + n) % (2 * n)
        total += per_anchor(cosines[partner], [c for k, c in enumerate(cosines) if k not in (i, partner)])
    return total / (2 * n)


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


ORACLES = {
    nt_xent: lambda p, others: math.log(math.exp(p / 0.5) + sum(math.exp(c / 0.5) for c in others)) - p / 0.5,
    nt_logistic: lambda p, others: -log_sigmoid(p / 0.5) - sum(log_sigmoid(-c / 0.5) for c in others),
    margin_triplet: lambda p, others: sum(max(c - p + 2.0, 0.0) for c in others),
}


@pytest.mark.parametrize("loss", ORACLES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [2, 6])
def test_equals_double_loop(unit_rows, loss, n):
    view_a, view_b = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    assert loss(view_a, view_b, 2.0).item() == pytest.approx(naive(view_a, view_b, ORACLES[loss]), abs=1e-12)


@pytest.mark.parametrize("loss", ORACLES, ids=lambda f: f.__name__)
def test_gradient_and_symmetry(unit_rows, loss):
    view_a, view_b = unit_rows(4, 3, 0).requires_grad_(), unit_rows(4, 3, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: loss(a, b, 2.0), (view_a, view_b))
    assert loss(view_b, view_a, 2.0).item() == pytest.approx(loss(view_a, view_b, 2.0).item(), abs=1e-12)


@pytest.mark.parametrize("loss", ORACLES, ids=lambda f: f.__name__)
def test_a_single_image_is_refused(unit_rows, loss):
    with pytest.raises(ValueError, match="at least 2 pairs"):
        loss(unit_rows(1, 3, 0), unit_rows(1, 3, 1), 2.0)


def test_nt_xent_of_equal_cosines_counts_the_other_views():
    rows = torch.tensor([[1.0, 0.0]], dtype=torch.float64).repeat(5, 1)
    assert nt_xent(rows, rows, 7.0).item() == pytest.approx(math.log(9), abs=1e-12)
