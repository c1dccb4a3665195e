"""Rotating a cloud keeps its distances, and the signs match the docstring."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.camera_3d import approximate_components, axes_of, components, turned
from trainer.analysis.projection import pca

CLOUD = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)


@given(azimuth=st.floats(-720, 720), elevation=st.floats(-90, 90))
def test_turning_keeps_lengths(azimuth: float, elevation: float):
    axes = axes_of(azimuth, elevation)
    assert axes.T @ axes == pytest.approx(np.eye(3), abs=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1)
    xy, near = turned(CLOUD, azimuth, elevation)
    assert (xy**2).sum(1) + near**2 == pytest.approx((CLOUD**2).sum(1), rel=1e-4)


def test_from_the_front_the_side_and_above():
    xy, near = turned(CLOUD, 0, 0)
    assert np.array_equal(xy, CLOUD[:, :2])
    assert np.array_equal(near, CLOUD[:, 2])
    xy, near = turned(CLOUD, 90, 0)
    assert xy == pytest.approx(CLOUD[:, [2, 1]], abs=1e-6)
    assert near == pytest.approx(-CLOUD[:, 0], abs=1e-6)
    xy, near = turned(CLOUD, 0, 90)
    assert xy == pytest.approx(np.stack([CLOUD[:, 0], -CLOUD[:, 2]], 1), abs=1e-6)
    assert near == pytest.approx(CLOUD[:, 1], abs=1e-6)


def test_components_are_those_of_unit_rows_whatever_is_missing():
    rows = np.random.default_rng(1).normal(size=(30, 5)).astype(np.float16)
    exact = rows.astype(np.float32)
    unit = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    assert components((rows[:20], rows[20:])) == pytest.approx(pca(unit, 3), abs=1e-5)
    assert components((None, rows)) == pytest.approx(pca(unit, 3), abs=1e-5)


@pytest.mark.parametrize("d", [5, 40])
def test_approximate_components_are_those_of_svd_where_axes_differ(d: int):
    scale = np.r_[9, 5, 3, np.linspace(1, 0.5, d - 3)]
    rows = (np.random.default_rng(2).normal(size=(600, d)) * scale + 2).astype(np.float16)
    exact = rows.astype(np.float64)
    unit = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    centered = unit - unit.mean(0)
    axes = np.linalg.svd(centered[::3], full_matrices=False)[2][:3].T
    axes *= np.sign(axes[np.abs(axes).argmax(0), range(3)])
    found = approximate_components((rows[:400], None, rows[400:]), every=3)
    assert found.dtype == np.float32
    assert found == pytest.approx(centered @ axes, abs=2e-3)


def test_approximate_components_of_the_same_rows_are_not_mirrored():
    rows = np.random.default_rng(3).normal(size=(300, 8)) * [9, 5, 3, 1, 1, 1, 1, 1]
    exact, found = components((rows,)), approximate_components((rows,))
    assert (np.sum(exact * found, axis=0) > 0).all()
    assert found == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize("rows", [np.ones((6, 2), np.float16), np.zeros((4, 3), np.float32)])
def test_approximate_components_without_variance_are_zero(rows: np.ndarray):
    found = approximate_components((rows,))
    assert found.shape == (len(rows), 3)
    assert found == pytest.approx(np.zeros((len(rows), 3)), abs=1e-6)
