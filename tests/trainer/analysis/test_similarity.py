"""Matched and hardest unmatched cosines against naive loops; separation on cases worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trainer.analysis.distinct import matching
from trainer.analysis.similarity import auc, d_prime, hardest_texts, matched_cosines, overlap
from trainer.analysis.unmatched import largest

COSINES = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1, 1).map(lambda value: round(value, 2)))


def test_matched_cosines_are_row_by_row(pairs):
    image, text = pairs
    assert np.allclose(matched_cosines(image, text), [image[i] @ text[i] for i in range(60)], atol=1e-15)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("grouped", [False, True])
def test_hardest_unmatched_equals_the_naive_loop(pairs, grouped: bool):
    image, text = pairs
    groups = np.random.default_rng(0).integers(0, 20, 60) if grouped else np.arange(60)
    text = text[groups]
    naive = [
        sorted((float(image[i] @ text[list(groups).index(g)]) for g in set(groups) - {groups[i]}), reverse=True)[:10]
        for i in range(60)
    ]
    asked = matching(groups).texts if grouped else None
    assert np.allclose(hardest_texts(image, text, 10, asked).cosines, naive, atol=1e-12)
    sample = np.array([3, 4, 59, 0])
    assert np.allclose(hardest_texts(image, text, 10, asked, rows=sample).cosines, np.array(naive)[sample], atol=1e-12)


@pytest.mark.parametrize(("n", "k"), [(5_003, 10), (2_049, 1), (9_000, 40), (3_000, 100)])
def test_the_largest_of_wide_rows_are_those_of_a_sort(n: int, k: int):
    cosines = np.random.default_rng(n).uniform(-1, 1, (7, n)).astype(np.float32)
    cosines[3, :50] = -np.inf
    cosines[4, ::2] = 0.75  # many ties
    found = np.take_along_axis(cosines, largest(cosines, k), axis=1)
    assert np.array_equal(np.sort(found, axis=1), np.sort(cosines, axis=1)[:, -k:])
    assert all(len(set(row)) == k for row in largest(cosines, k).tolist())


def test_rows_with_too_few_unmatched_end_in_nan():
    rows = np.eye(3, dtype=np.float32)
    hardest = hardest_texts(rows, rows, 10, matching(np.array([0, 0, 1])).texts).cosines
    assert hardest.shape == (3, 10)
    assert np.isfinite(hardest).sum(1).tolist() == [1, 1, 1]


@pytest.mark.slow
@given(COSINES, COSINES)
def test_auc_equals_counting(matched: np.ndarray, unmatched: np.ndarray):
    naive = np.mean([[1.0 if a > b else 0.5 if a == b else 0.0 for b in unmatched] for a in matched])
    assert auc(matched, unmatched) == pytest.approx(naive, abs=1e-12)
    assert auc(matched, unmatched) + auc(unmatched, matched) == pytest.approx(1)
    assert auc(np.exp(3 * matched), np.exp(3 * unmatched)) == pytest.approx(naive), "no change of scale moves it"


@pytest.mark.slow
@given(COSINES, COSINES)
def test_overlap_is_a_share(matched: np.ndarray, unmatched: np.ndarray):
    shared = overlap(matched, unmatched)
    assert 0 <= shared <= 1 + 1e-12
    assert shared == pytest.approx(overlap(unmatched, matched))
    assert overlap(matched, matched) == pytest.approx(1)


def test_separation_of_known_distributions():
    rng = np.random.default_rng(0)
    matched, unmatched = rng.normal(2, 1, 20_000), rng.normal(0, 1, (2_000, 10))
    assert d_prime(matched, unmatched) == pytest.approx(2, abs=0.05)
    assert auc(matched, unmatched) == pytest.approx(0.9214, abs=0.005)  # Phi(2 / sqrt 2)
    assert overlap(matched, unmatched) == pytest.approx(0.3173, abs=0.02)  # 2 Phi(-1)
    assert overlap(np.array([1.0, 2]), np.array([3.0, 4])) == 0


def test_missing_values_are_left_out():
    holed = np.array([[0.1, np.nan], [0.2, 0.3]])
    assert auc(np.array([0.15]), holed) == pytest.approx(1 / 3)
    assert np.isnan(auc(np.array([np.nan]), holed))
    assert np.isnan(d_prime(np.array([0.5]), np.array([0.5])))
    assert np.isnan(overlap(np.array([]), holed))
