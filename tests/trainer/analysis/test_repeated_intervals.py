"""Levels of repeated t tests against a plain simulation, and the interval and p against their definition."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.benchmarks.experiments import simulate
from tests.nightly import nightly_except
from trainer.analysis import anytime_valid
from trainer.analysis.repeated_intervals import OPEN, critical_t, crossing, interval, nominal_level, p_value

BUDGETS = [(3, 5), (2, 3), (3, 8), (5, 8), (3, 10), (2, 20)]


def least_p(least: int, most: int, draws: int) -> np.ndarray:
    """Return the least p of all looks of plain t tests, for draws of a true mean of 0."""
    x = np.random.default_rng(least + 100 * most).standard_normal((draws, most))
    looks = [stats.ttest_1samp(x[:, :n], 0.0, axis=1).pvalue for n in range(least, most + 1)]
    return np.min(looks, axis=0)


@pytest.mark.parametrize("budget", nightly_except(BUDGETS, (3, 5), (3, 8)))
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 3])
def test_any_look_rejects_a_true_mean_with_probability_alpha(budget, alpha):
    draws = 60_000
    wrong = int((least_p(*budget, draws) <= nominal_level(alpha, *budget)).sum())
    # Four standard errors of the simulation; the level that every look has alone is far outside.
    assert abs(wrong / draws - alpha) < 4 * math.sqrt(alpha * (1 - alpha) / draws)
    assert crossing(alpha, *budget) > 1.3 * alpha


def test_the_levels_are_those_of_a_simulation_of_two_million_experiments():
    """The values of 800,000 draws and more by another program, whose third digit is rough."""
    found = {budget: nominal_level(0.05, *budget) for budget in ((3, 5), (3, 8), (3, 10), (5, 8))}
    assert found == pytest.approx({(3, 5): 0.0228, (3, 8): 0.0144, (3, 10): 0.0120, (5, 8): 0.0225}, rel=0.01)
    for alpha in (0.05, 0.01):
        assert nominal_level(alpha, 4, 4) == alpha
        assert critical_t(4, alpha, 4, 4) == pytest.approx(stats.t.isf(alpha / 2, 3))


def test_two_and_three_values_are_an_integral_over_angle_and_length():
    """The direction of two values is uniform; the third over their length is Student's t of 2 over sqrt(2)."""
    nominal = 0.03
    bounds = [float(stats.t.isf(nominal / 2, n - 1)) for n in (2, 3)]
    third = np.tan(np.linspace(-math.pi / 2, math.pi / 2, 4_001)[1:-1])
    weights, middle = np.diff(stats.t.cdf(third * math.sqrt(2), 2)), (third[1:] + third[:-1]) / 2
    angles = np.linspace(0, math.atan(bounds[0]), 401)
    inside = []
    for phi in angles + 3 * math.pi / 4:  # from (-1, 1), where the mean is 0
        x = np.stack([np.full_like(middle, math.cos(phi)), np.full_like(middle, math.sin(phi)), middle])
        inside.append(weights @ (np.abs(x.mean(axis=0)) <= bounds[1] * stats.sem(x, axis=0)))
    share = np.trapezoid(inside, angles) * 2 / math.pi
    assert 1 - crossing(nominal, 2, 3) == pytest.approx(share, abs=2e-4)


def test_an_interval_is_the_t_interval_at_the_level_and_cut_at_what_can_be():
    x = np.array([0.055, 0.021, -0.15])
    for least, most, low, high in ((3, 5, -0.436, 0.387), (3, 3, -0.298, 0.248), (3, 8, -0.55, 0.50)):
        found = interval(x, 0.05, least, most)
        level = 1 - nominal_level(0.05, least, most)
        exact = stats.t.interval(level, 2, loc=x.mean(), scale=stats.sem(x))
        assert (found.low, found.high) == pytest.approx(exact, rel=1e-12)
        assert (found.low, found.high) == pytest.approx((low, high), abs=5e-3)
    cut = interval(np.array([0.9, -0.9, 0.8]), 0.05, 3, 5, bounds=(-1, 1))
    assert (cut.low, cut.high) == (-1, 1)
    for n in (1, 2, 6):
        assert math.isinf(interval(np.arange(n) * 1.0, 0.05, 3, 5).low), "there is no look"
    assert math.isinf(interval(np.empty(0), 0.05, 3, 5).high)


def test_an_open_budget_has_the_confidence_sequence():
    x = np.array([0.4, 0.6, 0.5, 0.7])
    one, half = interval(x, 0.05, 3, OPEN), anytime_valid.critical_t(4, 0.05) * stats.sem(x)
    assert (one.low, one.high) == pytest.approx((x.mean() - half, x.mean() + half))
    assert p_value(x, 3, OPEN) == anytime_valid.p_value(x)
    assert math.isinf(interval(x[:2], 0.05, 3, OPEN).low)
    assert critical_t(5, 0.05, 3, OPEN) == anytime_valid.critical_t(5, 0.05)


def test_p_is_the_least_alpha_at_which_the_interval_excludes_0():
    x = np.array([0.4, 0.9, 0.6, 0.3])
    p = p_value(x, 3, 5)
    for alpha, excluded in ((1.02 * p, True), (0.98 * p, False)):
        assert (interval(x, alpha, 3, 5).low > 0) == excluded
    assert p_value(x, 4, 4) == pytest.approx(stats.ttest_1samp(x, 0).pvalue)
    assert p_value(x[:2], 3, 5) == 1.0
    assert math.isnan(p_value(np.empty(0), 3, 5))
    assert 0 <= p_value(np.array([1.0, 1.0, 1.0 + 1e-9]), 3, 5) < 1e-6, "without a warning"
    same = np.full(3, 0.25)
    assert p_value(same, 3, 5) == 0.0
    assert 0 < p_value(same, 3, 5, resolution=0.1) < 0.5


WORLDS = [
    ["normal", (3, 5), 0.95],
    ["normal", (3, 3), 0.95],
    ["normal", (5, 8), 0.95],
    ["t3", (3, 5), 0.965],
    ["exponential", (3, 5), 0.862],
    ["collapses", (3, 5), 0.802],
    ["collapses", (3, 8), 0.724],
]


@pytest.mark.parametrize(("world", "budget", "coverage"), nightly_except(WORLDS, WORLDS[0], WORLDS[5]))
def test_coverage_is_as_the_benchmark_says(world, budget, coverage):
    found = simulate(world, 0.0, *budget, experiments=8_000, seed=7)
    assert abs(found.coverage - coverage) < 4 * math.sqrt(coverage * (1 - coverage) / 8_000) + 0.002


def test_three_to_five_seeds_decide_what_is_large():
    powers = [simulate("normal", effect, 3, 5, experiments=4_000, seed=3).power for effect in (1.0, 2.0, 4.0)]
    assert powers == pytest.approx([0.30, 0.79, 1.00], abs=0.03)
