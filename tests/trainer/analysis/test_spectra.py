"""Covariance spectra: golden values, numpy's own, and collapse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.spectra import (
    covariance_spectrum,
    effective_directions,
    effective_rank,
    is_collapsed,
    share_along_first,
    share_in_first,
    shares_of,
)


@pytest.mark.usefixtures("small_blocks")
def test_spectrum_is_numpys(unit):
    rows = unit(70, 8)
    assert np.allclose(covariance_spectrum(rows), np.linalg.eigvalsh(np.cov(rows.T, bias=True))[::-1])
    half = rows.astype(np.float16)
    assert np.allclose(covariance_spectrum(half), covariance_spectrum(half.astype(np.float64)), atol=1e-6)


def test_share_along_the_first_directions():
    points = np.diag([3.0, 2.0, 1.0, 0.5]) @ np.tile(np.eye(4), 1)
    points = np.concatenate([points, -points])
    assert share_along_first(np.array([[1.0, 0, 0, 0], [0, 1, 0, 1]]), points, 2) == pytest.approx(2 / 3)
    assert np.isnan(share_along_first(np.zeros((2, 4)), points, 2))


@pytest.mark.slow
def test_golden_values(unit):
    rows = unit(4000, 512)
    spectrum = covariance_spectrum(rows)
    assert effective_directions(spectrum) == 501
    planted = np.random.default_rng(0).standard_normal((4000, 20)) @ unit(20, 512, 1)
    assert effective_directions(covariance_spectrum(planted)) == 20
    assert not is_collapsed(spectrum, 4000)
    assert is_collapsed(covariance_spectrum(planted), 4000)


@given(st.integers(2, 40), st.integers(0, 99), st.floats(0.3, 1))
def test_directions_are_those_of_singular_values(n: int, seed: int, share: float):
    rows = np.random.default_rng(seed).standard_normal((n, 6))
    spectrum = covariance_spectrum(rows)
    variances = np.linalg.svd(rows - rows.mean(0), compute_uv=False) ** 2
    held = [variances[:k].sum() / variances.sum() for k in range(1, len(variances) + 1)]
    assert effective_directions(spectrum, share) == 1 + sum(part < share - 1e-12 for part in held[:-1])
    assert effective_directions(covariance_spectrum(np.repeat(rows[:1], n, axis=0))) == 0
    assert 1 <= effective_rank(spectrum) <= 6 + 1e-9
    firsts = [share_in_first(spectrum, k) for k in range(8)]
    assert firsts == sorted(firsts)
    assert firsts[0] == 0
    assert firsts[6] == pytest.approx(1)


def test_effective_rank_counts_equal_directions():
    assert effective_rank(np.array([2.0, 2.0, 2.0, 0.0])) == pytest.approx(3)
    assert effective_rank(np.array([5.0, 0.0])) == pytest.approx(1)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6])
def test_shares_do_not_depend_on_the_scale(scale):
    rows = np.random.default_rng(0).standard_normal((50, 4)) * [4, 3, 2, 1]
    expected = np.linalg.eigvalsh(np.cov(rows.T, bias=True))[::-1]
    assert shares_of(covariance_spectrum(scale * rows)) == pytest.approx(expected / expected.sum(), rel=1e-6)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 7.0])
def test_what_rounding_leaves_of_equal_rows_is_no_variance(value):
    assert covariance_spectrum(np.full((1001, 3), value, np.float32)).tolist() == [0, 0, 0]


def test_rows_that_are_all_equal_have_no_directions():
    spectrum = covariance_spectrum(np.ones((9, 4), np.float32))
    assert (effective_directions(spectrum), effective_rank(spectrum), share_in_first(spectrum, 2)) == (0, 0, 0)
    assert shares_of(spectrum).tolist() == [0] * 4
    assert is_collapsed(spectrum, 9)
