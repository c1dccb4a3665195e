"""Anytime-valid tests against numeric integrals, their definition, and simulated experiments."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.nightly import nightly_except
from trainer.analysis import repeated_intervals
from trainer.analysis.anytime_valid import (
    EFFECT,
    Interval,
    critical_t,
    decide,
    log_e_values,
    p_value,
)


def interval(x: np.ndarray, alpha: float, *, resolution: float = 0.0) -> Interval:
    """Return the interval that holds however often it is looked at."""
    return repeated_intervals.interval(x, alpha, 3, repeated_intervals.OPEN, resolution=resolution)


def naive_e_value(x: list[float], effect: float) -> float:
    """Return the ratio of marginal likelihoods as a sum over deviations (log grid, right Haar) and means (grid)."""
    top = bottom = 0.0
    for place in range(240):
        deviation = math.exp(-4 + 9 * place / 239)
        at_zero = math.prod(math.exp(-((value / deviation) ** 2) / 2) / deviation for value in x)
        bottom += at_zero
        middle, half = sum(x) / len(x) / deviation, 8 / math.sqrt(len(x))
        for step in range(200):
            mean = middle - half + 2 * half * step / 199
            prior = math.exp(-((mean / effect) ** 2) / 2) / effect / math.sqrt(2 * math.pi)
            likelihood = math.prod(math.exp(-((value / deviation - mean) ** 2) / 2) / deviation for value in x)
            top += likelihood * prior * 2 * half / 199
    return top / bottom


@pytest.mark.parametrize("x", [[0.7, 1.1], [1.0, -0.4, 0.8], [0.9, 1.3, 1.1, 0.6]])
@pytest.mark.parametrize("effect", nightly_except([1.0, EFFECT], EFFECT))
def test_the_e_value_is_the_ratio_of_integrated_likelihoods(x, effect):
    assert math.exp(log_e_values(np.array(x), effect=effect)[-1]) == pytest.approx(naive_e_value(x, effect), rel=2e-3)


def test_one_difference_says_nothing_and_the_scale_does_not_matter():
    x = np.array([0.3, 0.5, 0.2, 0.9])
    assert log_e_values(x)[0] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(log_e_values(1e-3 * x), log_e_values(x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(log_e_values(-x), log_e_values(x), rtol=1e-12)
    assert log_e_values(np.zeros(5)).tolist() == [0.0] * 5
    assert math.isnan(p_value(np.empty(0)))


def test_the_ends_of_the_interval_are_the_means_that_the_e_value_just_rejects():
    rng = np.random.default_rng(0)
    for n in (4, 7, 20):
        x = rng.normal(0.4, 1.0, n)
        found = interval(x, 0.05)
        for end in (found.low, found.high):
            assert log_e_values(x - end)[-1] == pytest.approx(math.log(20), abs=1e-6)
        assert log_e_values(x - found.mean)[-1] < math.log(20)


def test_two_seeds_exclude_nothing():
    x = np.random.default_rng(1).normal(size=9)
    assert [math.isinf(interval(x[:n], 0.05).low) for n in range(10)] == [True] * 3 + [False] * 7


def test_its_threshold_lies_above_that_of_a_single_look():
    for n in (3, 4, 5, 10, 50):
        assert critical_t(n, 0.05) > stats.t.ppf(0.975, n - 1)
    assert critical_t(2, 0.05) == critical_t(1, 0.05) == math.inf
    assert 10.0 < critical_t(3, 0.05) < 10.1
    assert critical_t(3, 0.05) < min(critical_t(3, 0.05, effect=effect) for effect in (3.0, 4.0, 8.0))
    assert math.isfinite(critical_t(3, 0.05 / 3))


def test_equal_counts_are_no_proof_of_no_spread():
    same = np.full(4, 0.25)
    assert interval(same, 0.05).low == interval(same, 0.05).high == 0.25
    wider = interval(same, 0.05, resolution=1 / 64)
    assert wider.high - wider.low == pytest.approx(2 * critical_t(4, 0.05) / 64 / 2)
    spread = np.array([0.1, 0.3, 0.2, 0.5])
    assert interval(spread, 0.05, resolution=1e-3) == interval(spread, 0.05)


@pytest.mark.parametrize(
    ("low", "high", "margin", "says"),
    [
        (0.1, 0.3, 0.05, "better"),
        (-0.3, -0.1, 0.05, "worse"),
        (-0.04, 0.03, 0.05, "equal"),
        (-0.04, 0.03, 0.0, "undecided"),
        (-0.04, 0.06, 0.05, "undecided"),
        (0.01, 0.03, 0.05, "better"),
        (-math.inf, math.inf, 0.05, "undecided"),
    ],
)
def test_an_interval_decides(low, high, margin, says):
    assert decide(low, high, margin) == says
