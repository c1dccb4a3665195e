"""Neighbors from half of the tiles, by compiled functions, are those of a float64 loop, with ties by number."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainer.analysis import tiled_neighbors
from trainer.analysis.tiled_neighbors import nearest, neighbors_of_each


@pytest.fixture(autouse=True)
def many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are taken for many: tiles of a few lines, some for each thread."""
    monkeypatch.setattr(tiled_neighbors, "DOUBLE_CELLS", 0)
    monkeypatch.setattr(tiled_neighbors, "EDGE", 16)


def naive(query: np.ndarray, stored: np.ndarray, k: int, *, own: bool = False) -> list[list[int]]:
    """Return neighbors by a loop in float64; equal up to 2^-36 is a tie, what is not a number comes last."""
    lines = []
    for row, asking in enumerate(query.astype(np.float64)):
        cosines = np.rint([(asking * other).sum() * 2**36 for other in stored.astype(np.float64)])
        cosines = np.where(np.isnan(cosines), -np.inf, cosines)
        order = sorted((-cosine, place) for place, cosine in enumerate(cosines) if not own or place != row)
        lines.append([place for _, place in order][:k])
    return lines


def rows(n: int, d: int, seed: int, dtype: type, distinct: int) -> np.ndarray:
    """Return unit rows of which many are equal, or nearly."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((distinct, d))[rng.integers(0, distinct, n)] + 1e-8 * rng.standard_normal((n, d))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(dtype)


@example(12, 1, 0, np.float64, 1)
@given(
    st.integers(2, 90),
    st.integers(1, 12),
    st.integers(0, 2**32 - 1),
    st.sampled_from([np.float16, np.float32, np.float64]),
    st.integers(1, 90),
)
def test_neighbors_of_each_are_those_of_the_loop(n: int, k: int, seed: int, dtype: type, distinct: int):
    vectors = rows(n, 5, seed, dtype, distinct)
    found, cosines = neighbors_of_each(vectors, k)
    assert found.tolist() == naive(vectors, vectors, k, own=True)
    wide = vectors.astype(np.float64)
    np.testing.assert_allclose(cosines, np.take_along_axis(wide @ wide.T, found, axis=1), atol=1e-10)


@pytest.mark.parametrize("distinct", [3, 70])
def test_neighbors_among_others_and_of_some_are_those_of_the_loop(distinct: int):
    query, stored = rows(40, 6, 1, np.float32, distinct), rows(100, 6, 2, np.float32, distinct)
    assert nearest(query, stored, 7)[0].tolist() == naive(query, stored, 7)
    some = np.array([3, 50, 99])
    assert nearest(stored[some], stored, 7, self_rows=some)[0].tolist() == [
        naive(stored, stored, 7, own=True)[row] for row in some
    ]


def test_a_collapsed_set_and_rows_that_are_not_numbers():
    same = np.ones((70, 4), np.float32) / 2
    assert neighbors_of_each(same, 3)[0].tolist() == naive(same, same, 3, own=True)
    broken = rows(70, 4, 3, np.float32, 70)
    broken[5] = np.nan
    assert neighbors_of_each(broken, 3)[0].tolist() == naive(broken, broken, 3, own=True)


def test_more_neighbors_than_there_are_rows():
    few = rows(5, 4, 3, np.float32, 5)
    assert neighbors_of_each(few, 20)[0].shape == (5, 4)
    assert nearest(few, few, 20)[0].tolist() == naive(few, few, 5)
