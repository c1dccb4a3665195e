"""Ajne's and Gine's statistics: golden values, naive loops, p-values and the density of angles."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.geometry import ajne
from trainer.analysis.uniformity_tests import (
    ajne_of,
    gine_of,
    mean_angle,
    mean_resultant_length,
    null_statistics,
    p_value,
    pair_sums,
    sphere_angle_density,
)


def gine(rows: np.ndarray) -> float:
    return gine_of(pair_sums(rows)[1], *rows.shape)


@pytest.mark.usefixtures("small_blocks")
def test_sums_equal_the_naive_loop(pairs):
    rows = pairs[0]
    naive = [math.acos(np.clip(rows[i] @ rows[j], -1, 1)) for i in range(60) for j in range(i)]
    angles, sines, counts = pair_sums(rows, bins=18)
    assert angles == pytest.approx(sum(naive), abs=1e-9)
    assert sines == pytest.approx(sum(map(math.sin, naive)), abs=1e-9)
    assert counts.tolist() == np.histogram(naive, np.linspace(0, np.pi, 19))[0].tolist()
    assert ajne_of(angles, 60) == pytest.approx(ajne(rows), abs=1e-12)
    factor = 7 / 2 * (math.gamma(3.5) / math.gamma(4)) ** 2
    assert gine(rows) == pytest.approx(30 - factor * sum(map(math.sin, naive)) / 60, abs=1e-9)
    assert mean_angle(ajne(rows), 60) == pytest.approx(np.degrees(np.mean(naive)))
    assert mean_resultant_length(rows) == pytest.approx(math.dist(rows.mean(0), np.zeros(8)))
    assert mean_resultant_length(rows, np.array([1, 3])) == pytest.approx(math.hypot(*rows[[1, 3]].mean(0)))


@pytest.mark.slow
def test_golden_values(unit):
    """The statistics are 250 for 1000 equal rows; .256 for 4000 uniform rows in 512 dimensions."""
    same = np.repeat(np.eye(4)[:1], 1000, axis=0)
    angles, sines, _ = pair_sums(same)
    assert ajne_of(angles, 1000) == pytest.approx(250)
    assert gine_of(sines, 1000, 4) == pytest.approx(500)
    angles, sines, _ = pair_sums(unit(4000, 512).astype(np.float32))
    assert ajne_of(angles, 4000) == pytest.approx(0.256, abs=0.02)
    assert gine_of(sines, 4000, 512) == pytest.approx(0.5, abs=0.05)
    assert mean_angle(ajne_of(angles, 4000), 4000) == pytest.approx(90, abs=0.01)
    # "At n = 13 k: 57.6 <-> mean angle 88.41 degrees, 3.1 <-> 89.92"
    assert mean_angle(57.6, 13_000) == pytest.approx(88.41, abs=0.01)
    assert mean_angle(3.1, 13_000) == pytest.approx(89.92, abs=0.01)


def test_gine_sees_what_ajne_does_not(unit):
    """Rows and their opposites along one axis: balanced about the origin, far from uniform."""
    axis = unit(200, 6) * 0.2 + np.eye(6)[0] * np.repeat([1.0, -1.0], 100)[:, None]
    null = null_statistics(200, 6, draws=99)
    angles, sines, _ = pair_sums(axis)
    assert p_value(gine_of(sines, 200, 6), null[:, 1]) == pytest.approx(0.01)
    assert p_value(ajne_of(angles, 200), null[:, 0]) > 0.05


def test_p_values_are_spread_evenly_under_uniformity():
    null = null_statistics(30, 5, draws=99)
    assert null[:, 0].mean() == pytest.approx(0.25, abs=0.06)
    assert null[:, 1].mean() == pytest.approx(0.5, abs=0.06)
    others = null_statistics(30, 5, draws=60, seed=1)
    for column in (0, 1):
        values = [p_value(value, null[:, column]) for value in others[:, column]]
        assert 0.3 < np.mean(values) < 0.7
        assert min(values) >= 0.01
    assert p_value(9.0, null[:, 0]) == 0.01
    assert math.isnan(p_value(float("nan"), null[:, 0]))


@pytest.mark.parametrize("d", [2, 3, 8, 512])
def test_density_of_angles(d: int, unit):
    at = np.linspace(0, np.pi, 20_001)
    assert np.trapezoid(sphere_angle_density(at, d), at) == pytest.approx(1, abs=1e-3)
    counts = pair_sums(unit(400, d, d), bins=36)[2]
    middles = (np.arange(36) + 0.5) * np.pi / 36
    expected = counts.sum() * sphere_angle_density(middles, d) * np.pi / 36
    assert np.abs(counts - expected).sum() / counts.sum() < 0.2


@given(st.integers(2, 15), st.integers(2, 6), st.integers(0, 99))
def test_bounds_and_rotations(n: int, d: int, seed: int):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    assert gine(rows @ rotation) == pytest.approx(gine(rows), abs=1e-6)
    assert -1e-6 <= ajne(rows) <= n / 4 + 1e-9
    assert gine(rows) <= n / 2 + 1e-9
