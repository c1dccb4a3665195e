"""Closing the gap: invariants, changes, and a sample that moves like the whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.gap import WAYS, close_gap
from trainer.analysis.geometry import modality_gap


@pytest.fixture(scope="module")
def apart(pairs) -> tuple[np.ndarray, np.ndarray]:
    moved = [rows + side * 1.5 * np.eye(8)[0] for rows, side in zip(pairs, (1, -1), strict=True)]
    return tuple(rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in moved)


@pytest.mark.parametrize("way", WAYS)
def test_the_gap_closes(apart, way: str):
    sizes = [modality_gap(*close_gap(*apart, share, way))[1] for share in (0, 0.25, 0.5, 0.75, 1)]
    assert sizes[0] == pytest.approx(modality_gap(*apart)[1])
    assert all(np.diff(sizes) < 0)
    assert sizes[-1] < 0.2 * sizes[0]


@pytest.mark.parametrize("way", WAYS)
def test_what_remains_of_a_closed_gap_comes_from_the_renormalizing(apart, way: str):
    gap, size = modality_gap(*apart)
    image, text = close_gap(*apart, 1.0, way)
    assert 0 < modality_gap(image, text)[1] < size, "as the docstring and the view's help say"
    along = gap / size
    if way == "shift":
        moved = (apart[0] - gap / 2, apart[1] + gap / 2)
    else:
        moved = tuple(rows - np.outer(rows @ along, along) for rows in apart)
    assert np.allclose(moved[0].mean(axis=0), moved[1].mean(axis=0), atol=1e-12), "before, the means are equal"


def test_equal_the_naive_loops(apart):
    gap, size = modality_gap(*apart)
    image, text = close_gap(*apart, 0.6)
    for i in range(60):
        moved = apart[0][i] - 0.3 * gap
        assert np.allclose(image[i], moved / np.linalg.norm(moved), atol=1e-12)
        moved = apart[1][i] + 0.3 * gap
        assert np.allclose(text[i], moved / np.linalg.norm(moved), atol=1e-12)
    image, _ = close_gap(*apart, 1.0, "project")
    assert np.allclose(image @ gap / size, 0, atol=1e-12)


@given(st.floats(-0.5, 2), st.sampled_from(WAYS), st.integers(0, 50))
def test_rows_stay_unit_and_samples_move_as_the_whole(share: float, way: str, seed: int):
    rng = np.random.default_rng(seed)
    image, text = (rng.standard_normal((20, 5)) + side for side in (0.4, -0.4))
    image, text = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (image, text))
    whole = close_gap(image, text, share, way)
    for rows in whole:
        assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    part = close_gap(image[:7], text[:7], share, way, gap=modality_gap(image, text)[0])
    assert np.allclose(part[0], whole[0][:7])
    if share == 0:
        assert np.array_equal(whole[0], image)
