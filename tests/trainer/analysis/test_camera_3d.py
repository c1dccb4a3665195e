"""Rotating a cloud keeps its distances, and the signs match the docstring."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.analysis.camera_3d import axes_of, components, turned
from trainer.analysis.projection import pca

CLOUD = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)


@given(azimuth=st.floats(-720, 720), elevation=st.floats(-90, 90))
@settings(max_examples=50, deadline=None)
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


def test_axes_of_a_part_place_every_row():
    rows = np.random.default_rng(2).normal(size=(60, 5)) * [5, 4, 3, 2, 1]
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    some = np.concatenate([unit[:40][::3], unit[40:][::3]])
    axes = np.linalg.svd(some - some.mean(0))[2][:3].T
    expected = (unit - some.mean(0)) @ axes
    found = components((rows[:40], rows[40:]), every=3)
    assert np.abs(found) == pytest.approx(np.abs(expected), abs=1e-5)
