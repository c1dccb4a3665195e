"""Calibration against naive double loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tests.nightly import nightly_except
from trainer.analysis import calibration, tiles


def sample(n: int = 60, c: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    cosines = rng.uniform(-1, 1, (n, c))
    return cosines, np.where(rng.random(n) < 0.7, cosines.argmax(1), rng.integers(0, c, n))


def naive_probabilities(cosines: np.ndarray, inv_tau: float) -> list[list[float]]:
    rows = []
    for row in cosines.tolist():
        powers = [math.exp(inv_tau * value) for value in row]
        rows.append([power / math.fsum(powers) for power in powers])
    return rows


def naive_error(cosines: np.ndarray, label: np.ndarray, inv_tau: float, bins: int) -> float:
    groups: dict[int, list[tuple[float, bool]]] = {}
    for row, own in zip(naive_probabilities(cosines, inv_tau), label.tolist()):
        top = max(row)
        place = next(b for b in range(bins) if top <= (b + 1) / bins)
        groups.setdefault(place, []).append((top, row.index(top) == own))
    return math.fsum(
        len(group) / len(label) * abs(sum(c for c, _ in group) / len(group) - sum(r for _, r in group) / len(group))
        for group in groups.values()
    )


@pytest.mark.slow
@given(st.integers(0, 50), st.floats(0.1, 60), st.integers(1, 20))
def test_error_likelihood_and_probabilities_are_the_naive_ones(seed: int, inv_tau: float, bins: int) -> None:
    cosines, label = sample(seed=seed)
    naive = naive_probabilities(cosines, inv_tau)
    np.testing.assert_allclose(calibration.probabilities(cosines, inv_tau), naive, rtol=1e-12)
    loss = -math.fsum(math.log(row[own]) for row, own in zip(naive, label.tolist())) / len(label)
    assert calibration.negative_log_likelihood(cosines, label, inv_tau) == pytest.approx(loss, rel=1e-12)
    found = calibration.reliability(*calibration.top_confidence(cosines, label, inv_tau), bins=bins)
    assert found.counts.sum() == len(label)
    assert found.error == pytest.approx(naive_error(cosines, label, inv_tau, bins), abs=1e-12)


@given(st.integers(0, 30), st.floats(-0.9, 0.9))
def test_of_siglip_each_class_is_judged_by_its_own_sigmoid(seed: int, offset: float) -> None:
    """The likelihood is that of all classes, as in SigLIP's loss; the best temperature has the smallest."""
    cosines, label = sample(seed=seed)
    naive = [[1 / (1 + math.exp(-(7 * value + 7 * offset))) for value in row] for row in cosines.tolist()]
    np.testing.assert_allclose(calibration.probabilities(cosines, 7.0, offset), naive, rtol=1e-12)
    losses = [
        -math.fsum(math.log(p if place == own else 1 - p) for place, p in enumerate(row))
        for row, own in zip(naive, label.tolist(), strict=True)
    ]
    mean = math.fsum(losses) / len(losses)
    assert calibration.negative_log_likelihood(cosines, label, 7.0, offset) == pytest.approx(mean, rel=1e-9)
    confidence, _ = calibration.top_confidence(cosines, label, 7.0, offset)
    np.testing.assert_allclose(confidence, [max(row) for row in naive], rtol=1e-12)
    fitted = calibration.fitted_inv_tau(cosines, label, offset)
    best = calibration.negative_log_likelihood(cosines, label, fitted, offset)
    for near in (0.99 * fitted, 1.01 * fitted):
        if calibration.LEAST_INV_TAU < near < calibration.MOST_INV_TAU:
            assert best <= calibration.negative_log_likelihood(cosines, label, near, offset) * (1 + 1e-12)


@given(st.integers(0, 30))
def test_the_fitted_temperature_has_the_smallest_likelihood(seed: int) -> None:
    cosines, label = sample(n=200, seed=seed)
    fitted = calibration.fitted_inv_tau(cosines, label)
    best = minimize_scalar(
        lambda log: calibration.negative_log_likelihood(cosines, label, math.exp(log)),
        bounds=(-4, 6),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert fitted == pytest.approx(math.exp(best.x), rel=1e-3)


def test_a_planted_temperature_is_found_again() -> None:
    rng = np.random.default_rng(1)
    cosines = rng.uniform(-1, 1, (20_000, 6))
    chances = calibration.probabilities(cosines, 8.0)
    label = (rng.random((20_000, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    assert calibration.fitted_inv_tau(cosines, label) == pytest.approx(8.0, rel=0.05)
    found = calibration.reliability(*calibration.top_confidence(cosines, label, 8.0))
    assert found.error < 0.02
    assert calibration.reliability(*calibration.top_confidence(cosines, label, 40.0)).error > 0.1


def test_where_there_is_no_best_temperature_an_end_is_given() -> None:
    cosines, label = np.eye(3), np.arange(3)
    assert calibration.fitted_inv_tau(cosines, label) == pytest.approx(calibration.MOST_INV_TAU, rel=1e-4)
    assert calibration.fitted_inv_tau(-cosines, label) == pytest.approx(calibration.LEAST_INV_TAU, rel=1e-4)
    assert math.isnan(calibration.fitted_inv_tau(np.zeros((0, 3)), label[:0]))


def test_tiles_change_nothing_and_large_logits_do_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    cosines, label = sample(n=500)
    whole = calibration.negative_log_likelihood(cosines, label, 20.0), calibration.fitted_inv_tau(cosines, label)
    monkeypatch.setattr(tiles.row_blocks, "__kwdefaults__", {"cells": 35})
    tiled = calibration.negative_log_likelihood(cosines, label, 20.0), calibration.fitted_inv_tau(cosines, label)
    assert tiled == pytest.approx(whole, rel=1e-9)
    assert math.isfinite(calibration.negative_log_likelihood(cosines, label, 1e6))
    curve = calibration.likelihood_curve(cosines, label, np.array([1.0, 20.0]))
    assert curve[1] == pytest.approx(tiled[0])


def test_a_calibrated_model_shows_the_error_that_is_expected_of_it():
    """At n = 50, 200 and 1,000, independent code measured .169, .087 and .038 for such a model."""
    rng = np.random.default_rng(0)
    for n in (50, 200, 1000):
        confidence = rng.uniform(0.2, 1, n)
        expected = calibration.error_range(confidence, rng.random(n) < confidence).calibrated
        drawn = [
            calibration.reliability(confidence, np.random.default_rng(seed).random(n) < confidence).error
            for seed in range(200)
        ]
        assert expected == pytest.approx(np.mean(drawn), rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("n", nightly_except([200, 1000], 200))
def test_the_interval_of_the_calibration_error_holds_the_true_one(n: int):
    """Confidences .65, .75, .85 and .95 that are .15 too large: the true error is .15."""
    rng, held = np.random.default_rng(n), 0
    for seed in range(100):
        confidence = rng.choice([0.65, 0.75, 0.85, 0.95], n)
        found = calibration.error_range(confidence, rng.random(n) < confidence - 0.15, draws=200, seed=seed)
        held += found.low <= 0.15 <= found.high
    assert held >= 89, "of 100; 95 are expected"
    nothing = calibration.error_range(np.zeros(0), np.zeros(0, bool))
    assert math.isnan(nothing.low)
    assert math.isnan(nothing.calibrated)
