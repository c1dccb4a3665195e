"""Ranks against a naive double loop, and properties of any embeddings."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.camera_3d import component_points
from trainer.analysis.distinct import answers, matching
from trainer.analysis.half_precision import stored_unit_rows
from trainer.analysis.retrieval import median_rank, ranks, recall_at
from trainer.analysis.search import products
from trainer.analysis.tiles import exact, row_blocks
from trainer.analysis.unit_rows import normalized


def naive_ranks(query: np.ndarray, stored: np.ndarray, groups: np.ndarray) -> list[int]:
    """Return naive ranks; rows of one group are one item."""
    places = []
    for i in range(len(query)):
        similarity = [float(np.dot(query[i], stored[j])) for j in range(len(stored))]
        best = max(similarity[j] for j in range(len(stored)) if groups[j] == groups[i])
        wrong_before = {groups[j] for j in range(len(stored)) if groups[j] != groups[i] and similarity[j] >= best}
        places.append(1 + len(wrong_before))
    return places


@pytest.mark.usefixtures("small_blocks")
def test_ranks_equal_the_naive_loop(pairs):
    image, text = pairs
    assert ranks(image, text).tolist() == naive_ranks(image, text, np.arange(60))
    groups = np.random.default_rng(3).integers(0, 25, 60)
    text = text[groups]
    assert ranks(image, text, matching(groups).texts).tolist() == naive_ranks(image, text, groups)
    assert len(set(ranks(image, text).tolist())) > 3, "the example must hold right and wrong answers"


def test_a_collapsed_model_ranks_last():
    same = np.ones((10, 4), dtype=np.float32) / 2
    assert (ranks(same, same) == 10).all()
    assert (ranks(same, same, matching(np.arange(10) // 2).texts) == 5).all()
    assert (ranks(same, same, matching(np.arange(10) // 2).images) == 9).all()


def test_not_a_number_ranks_last():
    broken = np.full((5, 3), np.nan, dtype=np.float32)
    assert (ranks(broken, broken) == 5).all()
    assert (ranks(broken, broken, matching(np.arange(5)).texts) == 5).all()


def test_equal_captions_are_right_answers():
    text = np.eye(3)[[0, 0, 1, 2]]
    image = np.eye(3)[[0, 0, 1, 2]]
    assert ranks(image, text, matching(np.array([0, 0, 1, 2])).texts).tolist() == [1, 1, 1, 1]
    assert ranks(image, text).tolist() == [2, 2, 1, 1]


def test_half_precision_snapshots_are_read(pairs):
    image, text = pairs
    assert (ranks(image.astype(np.float16), text.astype(np.float16)) <= 60).all()


@pytest.mark.slow
@given(st.integers(1, 30), st.integers(0, 1000))
def test_permuting_pairs_changes_nothing(n: int, seed: int):
    rng = np.random.default_rng(seed)
    image, text = rng.standard_normal((2, n, 5))
    groups, order = rng.integers(0, n, n), rng.permutation(n)
    text = text[groups]
    before = ranks(image, text, matching(groups).texts)
    assert (ranks(image[order], text[order], matching(groups[order]).texts) == before[order]).all()
    recalls = [recall_at(before, k) for k in range(1, n + 1)]
    assert recalls == sorted(recalls)
    assert recalls[-1] == 1.0
    assert (before <= ranks(image, text)).all(), "more right answers never worsen a place"


@given(st.integers(0, 500), st.integers(0, 300), st.integers(1, 5000))
def test_blocks_cover_every_row_once(rows: int, columns: int, cells: int):
    blocks = list(row_blocks(rows, columns, cells=cells))
    assert [i for block in blocks for i in range(block.start, block.stop)] == list(range(rows))
    assert all((block.stop - block.start) * columns <= cells or block.stop - block.start == 1 for block in blocks)


def test_recall_and_median_of_known_places():
    places = np.array([1, 1, 2, 5, 11])
    assert recall_at(places, 1) == 0.4
    assert recall_at(places, 5) == 0.8
    assert median_rank(places) == 2
    assert np.isnan(recall_at(places[:0], 1))
    assert np.isnan(median_rank(places[:0]))


def test_all_similarities_are_never_in_memory_at_once():
    """12,000 pairs have 576 MB of similarities; only a block of them is held, for any number of pairs."""
    rows = np.random.default_rng(0).standard_normal((12_000, 4)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    tracemalloc.start()
    try:
        found = ranks(rows, rows[:, ::-1].copy(), answers(np.arange(len(rows)), np.arange(len(rows)) // 2))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.min() >= 1
    assert peak < 120 * 2**20


def test_every_number_in_half_precision_becomes_single_as_numpy_makes_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainer.analysis.half_precision.COMPILED_FROM", 1)
    half = np.arange(2**16, dtype=np.uint16).view(np.float16).reshape(256, 256)
    expected, found = half.astype(np.float32), exact(half)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    there = ~np.isnan(expected)
    assert np.array_equal(found.view(np.uint32)[there], expected.view(np.uint32)[there])
    assert np.array_equal(exact(half[:, ::2]), expected[:, ::2], equal_nan=True)


def test_rows_in_half_precision_become_unit_rows_as_a_loop_in_double_precision_makes_them():
    half = np.arange(2**16, dtype=np.uint16).view(np.float16)
    # Beside a large number the small ones of a row become smaller than half precision has as normal numbers.
    rows = half.reshape(2048, 32).copy()
    rows[::3, 0] = 60_000
    rows[5] = 0
    origin = np.linspace(-0.5, 0.5, 32, dtype=np.float32)
    stored, unit, centered = np.empty_like(rows), np.empty(rows.shape, np.float32), np.empty(rows.shape, np.float32)
    sound = stored_unit_rows(rows, np.zeros(32, np.float32), stored, unit)
    expected = rows.astype(np.float64)
    assert sound.tolist() == [bool(np.isfinite(row).all() and row.any()) for row in expected]
    for number in np.flatnonzero(sound):
        length = math.sqrt(sum(float(value) ** 2 for value in expected[number]))
        np.testing.assert_allclose(unit[number], expected[number] / length, rtol=3e-7, atol=1e-38)
    assert np.array_equal(stored[sound].view(np.uint16), unit[sound].astype(np.float16).view(np.uint16))
    assert np.array_equal(sound, stored_unit_rows(rows, origin, stored, centered))
    assert np.array_equal(centered[sound], unit[sound] - origin)


def test_rounding_to_half_precision_is_numpys_where_two_are_equally_near():
    half = np.arange(2**16, dtype=np.uint16).view(np.float16)
    small = np.abs(half[np.isfinite(half) & (np.abs(half) < 2.0**-7) & (half != 0)])
    rows = np.stack([np.full(len(small), 3, np.float16), np.full(len(small), 4, np.float16), small], 1)  # of length 5
    stored, unit = np.empty_like(rows), np.empty(rows.shape, np.float32)
    assert stored_unit_rows(rows, np.zeros(3, np.float32), stored, unit).all()
    assert np.array_equal(stored.view(np.uint16), unit.astype(np.float16).view(np.uint16))


def test_coordinates_of_rows_in_half_precision_are_those_of_double(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 48)).astype(np.float16)
    rows[5, 7], rows[6, 0] = np.nan, np.inf
    mean, axes = rng.standard_normal(48) / 9, np.linalg.qr(rng.standard_normal((48, 3)))[0]
    monkeypatch.setattr("trainer.analysis.camera_3d.COMPILED_FROM", 1)
    points = component_points([rows[:200], rows[200:]], mean, axes)
    sound = np.isfinite(rows).all(1)
    np.testing.assert_allclose(points[sound], (normalized(rows[sound].astype(np.float64)) - mean) @ axes, atol=1e-6)
    assert np.isnan(points[~sound]).all()


def test_rows_in_half_precision_are_multiplied_without_a_copy(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(0)
    rows = normalized(rng.standard_normal((300, 48))).astype(np.float16)
    rows[3], rows[5, 7], rows[6, 0] = rows[3] * np.float16(1e-4), np.nan, np.inf
    query = normalized(rng.standard_normal(48)).astype(np.float32)
    expected = rows.astype(np.float64) @ query
    plain = products(rows, query)
    monkeypatch.setattr("trainer.analysis.half_precision.COMPILED_FROM", 1)
    found = products(rows, query)
    whole = np.isfinite(expected)
    assert whole.sum() == 298
    np.testing.assert_allclose(found[whole], expected[whole], atol=2e-7)
    np.testing.assert_allclose(plain[whole], expected[whole], atol=2e-7)
    assert np.isnan(found[~whole]).all()
