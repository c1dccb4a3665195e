"""Counts, separation, intervals and densities against naive loops, and against the functions on the values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from trainer.analysis.distinct import matching
from trainer.analysis.separation import (
    FINE,
    MEASURES,
    all_unmatched,
    anchor_groups,
    density,
    fine_counts,
    intervals,
    ks,
    sampled_unmatched,
    separation,
)
from trainer.analysis.similarity import auc, d_prime, hardest_texts, overlap


def test_ks_is_that_of_scipy():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.2, 1, 80), rng.normal(0, 1, 333)
    assert ks(first, second) == pytest.approx(stats.ks_2samp(first, second).statistic, abs=1e-12)
    assert ks(np.array([1.0, 2]), np.array([3.0])) == 1
    assert np.isnan(ks(np.array([np.nan]), second))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("grouped", [False, True])
def test_all_unmatched_equal_the_naive_loop(pairs, grouped: bool):
    image, text = pairs
    captions = np.random.default_rng(0).integers(0, 20, 60) if grouped else np.arange(60)
    text, texts = text[captions], matching(captions).texts
    group_of = anchor_groups(60) % 7
    naive = np.zeros((7, FINE), int)
    for i in range(60):
        for caption in set(captions.tolist()) - {captions[i]}:
            row = text[captions.tolist().index(caption)]
            naive[group_of[i], int((float(image[i] @ row) + 1) * FINE / 2)] += 1
    counts, hardest = all_unmatched(image, text, 3, group_of, texts if grouped else None)
    alone = hardest_texts(image, text, 3, texts)
    assert np.array_equal(hardest.cosines, alone.cosines), "the hardest come of the same pass"
    assert np.array_equal(hardest.places, alone.places)
    assert np.abs(counts - naive).sum() <= 4, "the same cells, but for rounding at the edge of a bin"
    assert counts.sum() == naive.sum()


def test_progress_can_cancel(pairs):
    class Stop(Exception):
        pass

    def cancel(share: float, note: str) -> None:
        raise Stop

    with pytest.raises(Stop):
        all_unmatched(*pairs, 1, anchor_groups(60), progress=cancel)


def test_cosines_that_are_no_numbers_are_not_counted(pairs):
    image, text = (rows.copy() for rows in pairs)
    image[7], text[9] = np.nan, np.nan
    counts, _ = all_unmatched(image, text, 1, anchor_groups(60))
    assert counts.sum() == 60 * 59 - 59 - 58
    assert counts[7].sum() == 0
    assert counts.min() == 0


def test_sampled_cosines_are_those_of_unmatched_pairs(pairs):
    image, text = pairs
    captions = np.arange(60) // 2
    text, texts = text[captions], matching(captions).texts
    found = sampled_unmatched(image, text, 600, texts, rows=np.array([4, 9]), seed=3)
    assert found.shape == (2, 300)
    for row, values in zip((4, 9), found, strict=True):
        possible = [image[row] @ text[j] for j in range(60) if captions[j] != captions[row]]
        there = values[np.isfinite(values)]
        assert all(np.isclose(possible, value).any() for value in there)
        assert 200 < len(there) < 300
    assert np.array_equal(found, sampled_unmatched(image, text, 600, texts, rows=np.array([4, 9]), seed=3), True)


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 10_000))
def test_measures_of_counts_are_those_of_the_values(n: int, m: int, seed: int):
    rng = np.random.default_rng(seed)
    matched, unmatched = rng.uniform(-0.2, 0.99, n), rng.uniform(-0.9, 0.6, m)
    first, second = (fine_counts(v, np.zeros(len(v), int)).sum(0) for v in (matched, unmatched))
    counted = {name: float(value) for name, value in separation(first, second).items()}
    assert counted["auc"] == pytest.approx(auc(matched, unmatched), abs=5e-3 + 2 / n / m)
    assert counted["ks"] == pytest.approx(ks(matched, unmatched), abs=1e-9 + 2 / min(n, m))
    if n > 2 and m > 2:
        assert counted["d_prime"] == pytest.approx(d_prime(matched, unmatched), rel=2e-2, abs=2e-2)
    assert 0 <= counted["overlap"] <= 1 + 1e-9


def test_overlap_of_counts_is_near_that_of_values():
    rng = np.random.default_rng(0)
    matched, unmatched = rng.normal(0.3, 0.1, 20_000), rng.normal(0, 0.1, 20_000)
    first, second = (fine_counts(v, np.zeros(len(v), int))[0] for v in (matched, unmatched))
    assert float(separation(first, second)["overlap"]) == pytest.approx(overlap(matched, unmatched), abs=0.01)


def test_intervals_hold_the_truth_and_shrink():
    """Two normal distributions 1.5 standard deviations apart: AUC = Phi(1.5 / sqrt 2) = .8556."""
    rng, widths, held = np.random.default_rng(1), [], 0
    for n in (60, 60, 60, 60, 60, 60, 960):
        matched, unmatched = rng.normal(0.15, 0.1, n), rng.normal(0, 0.1, (n, 4))
        group_of = anchor_groups(n)
        low, high = intervals(fine_counts(matched, group_of), fine_counts(unmatched, group_of))["auc"]
        held += low <= 0.8556 <= high
        widths.append(high - low)
    assert held >= 5
    assert widths[-1] < 0.5 * np.mean(widths[:-1]), "16 times the anchors: a quarter of the width"
    alone = intervals(fine_counts(matched[:1], anchor_groups(1)), fine_counts(unmatched[:1], anchor_groups(1)))
    assert all(np.isnan(alone[name]).all() for name in MEASURES)


def test_density_is_that_of_scipy():
    values = np.random.default_rng(0).normal(0.2, 0.1, 500)
    at = np.linspace(-0.6, 0.95, 400)
    found = density(fine_counts(values, np.zeros(500, int))[0], at)
    assert np.trapezoid(found, at) == pytest.approx(1, abs=2e-3)
    spread = min(values.std(), np.subtract(*np.quantile(values, (0.75, 0.25))) / 1.34)
    naive = stats.gaussian_kde(values, bw_method=0.9 * spread * 500**-0.2 / values.std(ddof=1))(at)
    assert np.allclose(found, naive, atol=0.02)
    assert density(np.zeros(FINE), at).sum() == 0


def test_hardest_texts_name_their_rows(pairs):
    image, text = pairs
    found = hardest_texts(image, text, 3)
    cosines, rows = found.cosines, found.places
    assert np.allclose(cosines, np.einsum("nd,nkd->nk", image, text[rows]))
    assert (rows != np.arange(60)[:, None]).all()
    assert hardest_texts(image[:2], text[:2], 3).places.tolist() == [[1, -1, -1], [0, -1, -1]]
