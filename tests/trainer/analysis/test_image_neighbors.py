"""Distances of images to their nearest others."""

import numpy as np

from trainer.analysis.image_neighbors import image_neighbors


def test_distances_are_those_of_a_loop_and_never_below_zero() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 512)).astype(np.float32)
    rows = np.repeat(rows / np.linalg.norm(rows, axis=1, keepdims=True), 2, axis=0)  # each twice: rounding exceeds 1
    neighbors = image_neighbors(rows, k=3)
    exact = 1.0 - rows.astype(np.float64) @ rows.astype(np.float64).T
    np.fill_diagonal(exact, np.inf)
    assert (neighbors.distance >= 0).all()
    # A cosine of d products in float32, four times over.
    np.testing.assert_allclose(neighbors.distance, exact.min(axis=1).clip(min=0), atol=4 * 512 * 2.0**-24)
