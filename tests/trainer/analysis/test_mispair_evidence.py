"""Evidence of mispairs, near images and outliers equals naive double loops in float64."""

import numpy as np
import pytest

from trainer.analysis.distinct import matching
from trainer.analysis.image_neighbors import image_neighbors, near_duplicates, outliers
from trainer.analysis.mispair_evidence import lower_fence, mispair_evidence, suspected


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return images and texts of 60 pairs; five captions and four pictures are shared by two pairs each."""
    rng = np.random.default_rng(3)
    captions, pictures = np.arange(60), np.arange(60)
    captions[50:55], pictures[40:44] = np.arange(5), np.arange(20, 24)
    base = rng.normal(size=(60, 16))
    image, text = base + 0.6 * rng.normal(size=(60, 16)), base + 0.6 * rng.normal(size=(60, 16))
    return unit(image[pictures]), unit(text[captions]), captions, pictures


def test_the_evidence_is_that_of_plain_loops(pairs):
    image, text, captions, pictures = pairs
    found = mispair_evidence(image, text, matching(captions, pictures))
    a, b = image.astype(np.float64), text.astype(np.float64)
    right = {(int(p), int(c)) for p, c in zip(pictures, captions, strict=True)}
    unmatched = []
    for i in range(60):
        own, wrong, seen = float(a[i] @ b[i]), {}, set()
        for j in range(60):
            if captions[j] in seen:
                continue
            seen.add(captions[j])
            if (int(pictures[i]), int(captions[j])) not in right:
                wrong[j] = float(a[i] @ b[j])
        unmatched += wrong.values()
        assert found.cosine[i] == pytest.approx(own, abs=1e-6)
        assert found.caption_rank[i] == 1 + sum(value >= own for value in wrong.values())
        assert found.best_caption[i] == max(wrong, key=lambda j, wrong=wrong: wrong[j])
        others, seen = {}, set()
        for j in range(60):
            if pictures[j] in seen:
                continue
            seen.add(pictures[j])
            if (int(pictures[j]), int(captions[i])) not in right:
                others[j] = float(a[j] @ b[i])
        assert found.image_rank[i] == 1 + sum(value >= own for value in others.values())
        assert found.best_image[i] == max(others, key=lambda j, others=others: others[j])
    assert found.mean == pytest.approx(np.mean(unmatched), abs=1e-7)
    assert found.deviation == pytest.approx(np.std(unmatched), abs=1e-7)
    np.testing.assert_allclose(found.margin, (found.cosine - np.mean(unmatched)) / np.std(unmatched), atol=1e-5)


def test_only_low_margins_that_retrieve_neither_way_are_suspected():
    good = [5.0, 4.9, 5.1, 5.2, 4.8, 5.0, 5.05, 4.95, 5.15, 4.85]
    margin = np.array([*good, -1.0, -1.0, -1.0, np.nan])
    first, second = np.array([1] * 10 + [9, 1, 9, 9]), np.array([1] * 10 + [9, 9, 1, 9])
    wrong, limit = suspected(margin, first, second, fence=3.0)
    assert np.flatnonzero(wrong).tolist() == [10]
    known = np.sort(margin[:-1])
    assert limit == pytest.approx(np.median(known) - 3 * (np.median(known) - known[3]))
    assert np.isnan(lower_fence(np.array([np.nan]), 3.0))
    nothing, _ = suspected(np.empty(0), np.empty(0, int), np.empty(0, int))
    assert not len(nothing)


def test_a_collapsed_model_finds_nothing_first():
    same = np.tile(unit(np.ones((1, 8))), (20, 1))
    found = mispair_evidence(same, same, matching(np.arange(20)))
    assert (found.caption_rank == 20).all()
    assert np.isnan(found.margin).all() or found.deviation < 1e-3


@pytest.mark.parametrize("n", [2, 5, 90])
def test_neighbors_are_those_of_plain_loops(n: int):
    image = unit(np.random.default_rng(n).normal(size=(n, 6)))
    if n == 90:
        image[7] = image[3]
        image[60:75] = image[60]  # more equal ones than neighbors
    found = image_neighbors(image, k=4)
    a = image.astype(np.float64)
    for i in range(n):
        distances = sorted(1 - float(a[i] @ a[j]) for j in range(n) if j != i)
        assert found.distance[i] == pytest.approx(distances[0], abs=1e-6)
        assert found.mean[i] == pytest.approx(np.mean(distances[:4]), abs=1e-6)
        assert found.nearest[i] != i
        assert 1 - float(a[i] @ a[found.nearest[i]]) == pytest.approx(distances[0], abs=1e-6)


def test_a_copy_is_a_near_duplicate_and_a_stranger_is_an_outlier():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(200, 12)) * 0.3 + np.eye(12)[0], -np.eye(12)[:1]])
    rows[17] = rows[5] + 1e-4
    found = image_neighbors(unit(rows))
    near, _ = near_duplicates(found)
    assert np.flatnonzero(near).tolist() == [5, 17]
    far, limit = outliers(found)
    assert far[200]
    assert far.sum() == np.sum(found.mean > limit)
    assert limit == pytest.approx(np.median(found.mean) + 8 * (np.quantile(found.mean, 0.75) - np.median(found.mean)))
