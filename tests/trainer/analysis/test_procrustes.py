"""Procrustes alignment inverts rotations; weights of new points match UMAP's own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.analysis.out_of_sample_placement import memberships, place
from trainer.analysis.procrustes import procrustes


def rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(2, 9), st.booleans())
def test_a_turned_copy_comes_back_onto_itself(seed: int, d: int, scaled: bool):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((20, d))
    size = 3.5 if scaled else 1.0
    copy = size * points @ rotation(rng, d) + rng.standard_normal(d)
    turn = procrustes(copy, points, scaled=scaled)
    assert np.allclose(turn.apply(copy), points, atol=1e-9)
    assert np.allclose(turn.rotation.T @ turn.rotation, np.eye(d), atol=1e-9)
    assert turn.scale == pytest.approx(1 / size)


@settings(deadline=None)
@given(st.integers(0, 1000))
def test_no_rotation_comes_nearer(seed: int):
    rng = np.random.default_rng(seed)
    points, onto = rng.standard_normal((12, 3)), rng.standard_normal((12, 3))
    turn = procrustes(points, onto, moved=False)
    best = ((turn.apply(points) - onto) ** 2).sum()
    for _ in range(20):
        assert ((points @ rotation(rng, 3) - onto) ** 2).sum() >= best - 1e-9


def test_without_moving_it_turns_about_the_origin():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((30, 4)) + 5
    turn = procrustes(points @ rotation(rng, 4), points, moved=False)
    assert not turn.before.any()
    assert not turn.after.any()


def test_a_narrow_space_is_part_of_a_wide_one():
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((40, 6))
    wide[:, 4:] = 0
    wide = wide @ rotation(rng, 6)
    narrow = np.linalg.svd(wide, full_matrices=False)[0][:, :4] * np.linalg.svd(wide, compute_uv=False)[:4]
    assert np.allclose(procrustes(narrow, wide, moved=False).apply(narrow), wide, atol=1e-9)
    assert procrustes(wide, narrow).apply(wide).shape == (40, 4)


def test_one_point_and_none_do_not_fail():
    assert procrustes(np.zeros((1, 2)), np.ones((1, 2))).apply(np.zeros((1, 2))).tolist() == [[1, 1]]
    assert procrustes(np.zeros((0, 2)), np.zeros((0, 2))).apply(np.ones((1, 2))).shape == (1, 2)


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(2, 30))
def test_memberships_after_the_nearest_sum_to_the_logarithm_of_k(seed: int, k: int):
    distances = np.sort(np.random.default_rng(seed).random((6, k)) + 0.01, axis=1)
    weights = memberships(distances)
    assert np.allclose(weights[:, 0], 1)
    assert (np.diff(weights, axis=1) <= 0).all()
    assert np.allclose(weights[:, 1:].sum(1), np.log2(k), atol=1e-6) or k <= 3


@pytest.mark.slow
@pytest.mark.nightly  # which takes half a minute to compile
def test_memberships_are_those_of_umap():
    umap = pytest.importorskip("umap.umap_", reason="umap-learn")
    distances = np.sort(np.random.default_rng(0).random((5, 12)).astype(np.float32) + 0.05, axis=1)
    sigmas, rhos = umap.smooth_knn_dist.py_func(distances, 12.0)
    expected = np.exp(-np.maximum(distances - rhos[:, None], 0) / sigmas[:, None])
    assert np.allclose(memberships(distances), expected, atol=2e-4)


def test_a_new_point_stands_between_its_neighbors_and_on_its_twin():
    xy = np.array([[0.0, 0], [2, 0], [0, 2], [9, 9]])
    neighbors, distances = np.array([[0, 1], [3, 1]]), np.array([[0.3, 0.3], [0.0, 0.2]])
    assert np.allclose(place(neighbors, distances, xy), [[1, 0], [9, 9]])
