"""What the losses of two views of images have in common: a double loop, gradients, and what they refuse."""

import math
from functools import partial

import pytest
import torch

from trainer.losses import byol, margin_triplet, nt_logistic, nt_xent, simsiam


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def xent(partner: float, others: list[float]) -> float:
    return math.log(math.exp(2 * partner) + sum(math.exp(2 * c) for c in others)) - 2 * partner


def logistic(partner: float, others: list[float]) -> float:
    return -log_sigmoid(2 * partner) - sum(log_sigmoid(-2 * c) for c in others)


def margin(partner: float, others: list[float]) -> float:
    return sum(max(c - partner + 2.0, 0.0) for c in others)


def semi_hard(per_anchor, partner: float, others: list[float]) -> float:
    """Compute the loss of one anchor and its semi-hard negative."""
    return per_anchor(partner, [max((c for c in others if c < partner), default=min(others))])


PER_ANCHOR = {nt_xent: xent, nt_logistic: logistic, margin_triplet: margin}
"""Loss -> that of one anchor at 1/tau or margin 2, from the cosine with its partner and those with the other views."""
losses = pytest.mark.parametrize("loss", PER_ANCHOR)


@losses
@pytest.mark.parametrize("n", [2, 6])
def test_equals_double_loop(unit_rows, over_views, loss, n):
    view_a, view_b = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    expected = over_views(view_a, view_b, PER_ANCHOR[loss])
    assert loss(view_a, view_b, 2.0).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("loss", [nt_logistic, margin_triplet])
@pytest.mark.parametrize("n", [2, 6, 40])
def test_semi_hard_equals_double_loop(unit_rows, over_views, loss, n):
    view_a, view_b = unit_rows(n, 5, 0), unit_rows(n, 5, 1)
    expected = over_views(view_a, view_b, partial(semi_hard, PER_ANCHOR[loss]))
    assert loss(view_a, view_b, 2.0, semi_hard=True).item() == pytest.approx(expected, abs=1e-12)
    views = view_a.requires_grad_(), view_b.requires_grad_()
    assert n > 6 or torch.autograd.gradcheck(lambda a, b: loss(a, b, 2.0, semi_hard=True), views)


def test_equal_cosines_count_the_other_views():
    rows = torch.tensor([[1.0, 0.0]], dtype=torch.float64).repeat(5, 1)
    assert nt_xent(rows, rows, 7.0).item() == pytest.approx(math.log(9), abs=1e-12)


def test_orthogonal_views_cost_one_bit_a_question():
    views = torch.eye(6, dtype=torch.float64)
    assert nt_logistic(views[:3], views[3:], 5.0).item() == pytest.approx(5 * math.log(2), abs=1e-12)


def test_matches_that_lead_by_the_margin_cost_nothing():
    rows = torch.eye(3, dtype=torch.float64)
    assert margin_triplet(rows, rows, 1.0).item() == 0
    assert margin_triplet(rows, rows, 1.25).item() == pytest.approx(4 * 0.25, abs=1e-12)


def cosine(a: list[float], b: list[float]) -> float:
    return sum(p * q for p, q in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def test_predictions_equal_a_loop(four):
    p_a, p_b, z_a, z_b = (rows.tolist() for rows in four)
    cosines = sum(cosine(p_a[i], z_b[i]) + cosine(p_b[i], z_a[i]) for i in range(5)) / 5
    assert byol(*four).item() == pytest.approx(4 - 2 * cosines, abs=1e-12)
    assert simsiam(*four).item() == pytest.approx(-cosines / 2, abs=1e-12)


@pytest.mark.parametrize("loss", [byol, simsiam])
def test_the_gradient_of_predictions_stops_at_the_other_side(four, loss):
    rows = [v.requires_grad_() for v in four]
    loss(*rows).backward()
    assert all(row.grad.abs().sum() > 0 for row in rows[:2])
    assert all(row.grad is None for row in rows[2:])
    stopped = [v.detach() for v in rows[2:]]
    assert torch.autograd.gradcheck(lambda a, b: loss(a, b, *stopped), rows[:2])


def test_predictions_lie_between_right_and_opposite_ones_whatever_their_lengths(four):
    _, _, z_a, z_b = four
    right, opposite = (3 * z_b, 0.1 * z_a, z_a, z_b), (-z_b, -z_a, z_a, z_b)
    assert byol(*right).item() == pytest.approx(0, abs=1e-12)
    assert byol(*opposite).item() == pytest.approx(8, abs=1e-12)
    assert simsiam(*right).item() == pytest.approx(-1, abs=1e-12)
