"""Principal components against numpy's singular values, with deterministic signs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.projection import ScatterSum, pca, principal_axes


@pytest.mark.usefixtures("small_blocks")
def test_pca_equals_the_singular_value_decomposition():
    vectors = np.random.default_rng(0).standard_normal((90, 6)) * [5, 4, 3, 2, 1, 0.5] + 7
    u, s, _ = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    points = pca(vectors, 3)
    assert points.dtype == np.float32
    assert np.allclose(np.abs(points), np.abs(u[:, :3] * s[:3]), atol=1e-5)
    assert np.allclose(principal_axes(vectors, 3)[2], (s**2 / (s**2).sum())[:3])


@given(st.integers(0, 100))
def test_signs_are_settled(seed: int):
    vectors = np.random.default_rng(seed).standard_normal((30, 4)) * [4, 3, 2, 1]
    axes = principal_axes(vectors, 2)[1]
    assert (axes[np.abs(axes).argmax(0), [0, 1]] > 0).all()
    order = np.random.default_rng(seed + 1).permutation(30)
    assert np.allclose(pca(vectors[order]), pca(vectors)[order], atol=1e-4)


def test_degenerate_rows_stay_finite():
    assert (pca(np.ones((5, 3), dtype=np.float16)) == 0).all()
    assert pca(np.ones((4, 1)), 2).shape == (4, 2)
    assert pca(np.ones((1, 8)), 2).tolist() == [[0, 0]]


@pytest.mark.parametrize("ends", [(0, 90), (90, 90), (1, 50)])
def test_sums_of_blocks_are_joined(ends: tuple[int, int]):
    vectors = (np.random.default_rng(0).standard_normal((90, 6)) * [5, 4, 3, 2, 1, 0.5] + 7).astype(np.float32)
    vectors[:50] += 20  # whose blocks are centered elsewhere
    joined = ScatterSum(6)
    for block in np.split(vectors, ends):
        part = ScatterSum(6)
        part.add(block.copy(), spare=True)
        joined.join(part)
    assert joined.n == 90
    for own, expected in zip(joined.axes(3), principal_axes(vectors, 3), strict=True):
        np.testing.assert_allclose(own, expected, atol=1e-5)
