"""The two losses without negatives: their values, and that no gradient reaches the stopped side."""

from __future__ import annotations

import math

import pytest
import torch

from trainer.losses import byol, simsiam


def cosine(a, b) -> float:
    return sum(p * q for p, q in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def vectors(seed):
    return torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def four():
    return [vectors(seed) for seed in range(4)]


def test_simsiam_equals_loop(four):
    p_a, p_b, z_a, z_b = (v.tolist() for v in four)
    expected = -sum(cosine(p_a[i], z_b[i]) + cosine(p_b[i], z_a[i]) for i in range(5)) / 10
    assert simsiam(*four).item() == pytest.approx(expected, abs=1e-12)


def test_byol_equals_loop(four):
    p_a, p_b, z_a, z_b = (v.tolist() for v in four)
    expected = sum(4 - 2 * cosine(p_a[i], z_b[i]) - 2 * cosine(p_b[i], z_a[i]) for i in range(5)) / 5
    assert byol(*four).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("loss", [simsiam, byol], ids=lambda f: f.__name__)
def test_gradient_stops_at_the_other_side(loss, four):
    rows = [v.requires_grad_() for v in four]
    loss(*rows).backward()
    assert rows[0].grad.abs().sum() > 0
    assert rows[1].grad.abs().sum() > 0
    assert rows[2].grad is None
    assert rows[3].grad is None
    stopped = [v.detach() for v in rows[2:]]
    assert torch.autograd.gradcheck(lambda a, b: loss(a, b, *stopped), rows[:2])
