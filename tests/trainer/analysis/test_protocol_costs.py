"""Costs of a protocol against loops, McNemar's test of statsmodels' definition, and the spread over drawn data sets."""

import math

import numpy as np
import pytest

from trainer.analysis.protocol_costs import ProtocolAnswers, of_classes, of_rows, paired_cost, unpaired_cost


def test_shares_are_what_loops_count():
    rng = np.random.default_rng(0)
    right, label = rng.random(90) < 0.6, rng.integers(0, 7, 90)
    counted = rng.random(90) < 0.8
    plain = [bool(r) for r, c in zip(right, counted, strict=True) if c]
    assert of_rows(right, counted).share == pytest.approx(sum(plain) / len(plain))
    recalls = []
    for one in range(7):
        rows = [i for i in range(90) if counted[i] and label[i] == one]
        recalls.append(sum(bool(right[i]) for i in rows) / len(rows))
    assert of_classes(right, counted, label).share == pytest.approx(sum(recalls) / 7)


def test_pictures_that_count_once_are_tested_by_mcnemar():
    a, b = np.array([1] * 20 + [0] * 9 + [1] * 2 + [0] * 9, bool), np.array([1] * 20 + [1] * 9 + [0] * 11, bool)
    every = np.ones(40, bool)
    cost = paired_cost(of_rows(a, every), of_rows(b, every), np.arange(40))
    exact = 2 * sum(math.comb(11, k) for k in range(3)) / 2**11
    assert (cost.test, cost.difference, cost.p) == ("McNemar", pytest.approx(7 / 40), pytest.approx(exact))
    same = paired_cost(of_rows(a, every), of_rows(a, every), np.arange(40))
    assert (same.difference, same.p) == (0.0, 1.0)
    assert same.low < 0 < same.high


def _drawn(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return answers, classes and pictures of rows of which a third repeat another's picture."""
    label = rng.choice(4, n, p=(0.5, 0.3, 0.15, 0.05))
    right = rng.random(n) < np.array([0.9, 0.6, 0.4, 0.2])[label]
    picture = np.where(rng.random(n) < 1 / 3, rng.integers(0, n, n), np.arange(n))
    return right[picture], label[picture], picture


def test_the_delta_method_has_the_spread_over_drawn_data_sets():
    rng, gaps, errors = np.random.default_rng(1), [], []
    for _ in range(400):
        right, label, picture = _drawn(rng, 300)
        every, first = np.ones(300, bool), np.zeros(300, bool)
        first[np.unique(picture, return_index=True)[1]] = True
        cost = paired_cost(of_rows(right, every), of_classes(right, first, label), picture)
        assert cost.test == "delta method"
        gaps.append(cost.difference)
        errors.append((cost.high - cost.low) / (2 * 1.96))
    assert np.mean(errors) == pytest.approx(np.std(gaps), rel=0.12)


def test_other_pictures_add_their_variances():
    a, b = (
        ProtocolAnswers(np.arange(100) < 60, np.full(100, 0.01)),
        ProtocolAnswers(np.arange(50) < 20, np.full(50, 0.02)),
    )
    cost = unpaired_cost(a, b, np.arange(100), np.arange(50))
    error = math.sqrt((0.6 * 0.4 / 100 + 0.4 * 0.6 / 50) * 50 / 49)
    assert cost.difference == pytest.approx(-0.2)
    assert (cost.low, cost.high) == (pytest.approx(-0.2 - 1.96 * error, 1e-3), pytest.approx(-0.2 + 1.96 * error, 1e-2))
    assert cost.p == pytest.approx(math.erfc(0.2 / error / math.sqrt(2)))
