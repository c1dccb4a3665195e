"""Smoothing against the recursion written out; thinning never loses an extreme."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trainer.analysis.smoothing import smooth, thin

pytestmark = pytest.mark.slow

VALUES = arrays(
    np.float64, st.integers(0, 900), elements=st.one_of(st.floats(-1e3, 1e3), st.just(np.nan), st.just(np.inf))
)


@given(VALUES, st.floats(0, 0.999))
def test_smoothing_equals_the_recursion(values: np.ndarray, weight: float):
    expected, average, norm = [], 0.0, 0.0
    for value in values:
        if not np.isfinite(value):
            expected.append(value)
            continue
        average = weight * average + (1 - weight) * value
        norm = weight * norm + (1 - weight)
        expected.append(average / norm)
    assert np.allclose(smooth(values, weight), expected, rtol=1e-9, atol=1e-8, equal_nan=True)


def test_smoothing_keeps_constants_and_refuses_one():
    assert np.allclose(smooth(np.full(1000, 3.5), 0.99), 3.5)
    assert smooth(np.array([1.0, 5.0]), 0).tolist() == [1, 5]
    with pytest.raises(ValueError, match="outside"):
        smooth(np.ones(3), 1.0)


@given(VALUES, st.integers(5, 200))
def test_thinning_keeps_extremes_ends_and_gaps(values: np.ndarray, limit: int):
    kept = thin(values, limit)
    assert len(kept) <= limit
    assert (np.diff(kept) > 0).all()
    if len(values):
        assert kept[0] == 0
        assert kept[-1] == len(values) - 1
        finite = values[np.isfinite(values)]
        if len(finite):
            assert values[kept][np.isfinite(values[kept])].max() == finite.max()
            assert values[kept][np.isfinite(values[kept])].min() == finite.min()
        assert np.isfinite(values).all() == np.isfinite(values[kept]).all()


def test_thinning_keeps_single_spikes():
    values = np.zeros(100_000)
    values[[17, 54_321]] = 1, -1
    assert {17, 54_321} <= set(thin(values, 500).tolist())
