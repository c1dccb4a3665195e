from __future__ import annotations

import math

import pytest
import torch

from trainer.losses import byol


def cosine(a: list[float], b: list[float]) -> float:
    return sum(p * q for p, q in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def test_equals_loop(four):
    p_a, p_b, z_a, z_b = (rows.tolist() for rows in four)
    expected = sum(4 - 2 * cosine(p_a[i], z_b[i]) - 2 * cosine(p_b[i], z_a[i]) for i in range(5)) / 5
    assert byol(*four).item() == pytest.approx(expected, abs=1e-12)


def test_gradient_stops_at_the_other_side(four):
    rows = [v.requires_grad_() for v in four]
    byol(*rows).backward()
    assert rows[0].grad.abs().sum() > 0
    assert rows[1].grad.abs().sum() > 0
    assert rows[2].grad is None
    assert rows[3].grad is None
    stopped = [v.detach() for v in rows[2:]]
    assert torch.autograd.gradcheck(lambda a, b: byol(a, b, *stopped), rows[:2])


def test_lies_between_right_and_opposite_predictions(four):
    _, _, z_a, z_b = four
    assert byol(3 * z_b, 0.1 * z_a, z_a, z_b).item() == pytest.approx(0, abs=1e-12)
    assert byol(-z_b, -z_a, z_a, z_b).item() == pytest.approx(8, abs=1e-12)
