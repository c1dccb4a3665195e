"""Gap, alignment, uniformity, Ajne and eigenvalues: naive loops and published golden values."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.distinct import matching
from trainer.analysis.geometry import ajne, alignment, modality_gap, uniformity


def test_gap_is_the_distance_of_the_means(pairs):
    image, text = pairs
    gap, size = modality_gap(image, text)
    assert np.allclose(gap, [np.mean(image[:, k]) - np.mean(text[:, k]) for k in range(8)])
    assert size == pytest.approx(math.dist(image.mean(0), text.mean(0)))
    assert modality_gap(text, text)[1] == 0
    assert modality_gap(np.eye(2)[:1], np.eye(2)[1:])[1] == pytest.approx(math.sqrt(2))


def test_the_gap_of_half_precision_copies_no_side():
    image, text = np.random.default_rng(0).standard_normal((2, 400_000, 64)).astype(np.float16)
    matched = matching(np.arange(len(text)))
    tracemalloc.start()
    size = modality_gap(image, text, matched)[1]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size == pytest.approx(np.linalg.norm(image.mean(0, dtype=float) - text.mean(0, dtype=float)))
    assert most < 2 * image.nbytes, "a copy in single precision"


@pytest.mark.usefixtures("small_blocks")
def test_all_pairs_measures_equal_naive_loops(pairs):
    image, text = pairs
    assert alignment(image, text) == pytest.approx(np.mean([math.dist(a, b) ** 2 for a, b in zip(image, text)]))
    both = [(i, j) for i in range(60) for j in range(i)]
    naive = math.log(np.mean([math.exp(-2 * math.dist(image[i], image[j]) ** 2) for i, j in both]))
    assert uniformity(image) == pytest.approx(naive, abs=1e-12)
    angles = [math.acos(np.clip(image[i] @ image[j], -1, 1)) for i, j in both]
    assert ajne(image) == pytest.approx(60 / 4 - sum(angles) / (60 * math.pi), abs=1e-12)


def test_collapsed_rows():
    same = np.repeat(np.eye(4)[:1], 1000, axis=0)
    assert uniformity(same) == pytest.approx(0)
    assert ajne(same) == pytest.approx(250)
    assert np.isnan(uniformity(same[:1]))


@pytest.mark.slow
def test_golden_values_of_uniform_rows(unit):
    rows = unit(4000, 512)
    assert ajne(rows[:2000]) == pytest.approx(
        0.25, abs=0.03
    )  # expectation 1/4, standard deviation .01 at these n and d


@given(st.integers(2, 20), st.integers(0, 100))
def test_rotations_change_nothing(n: int, seed: int):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    for measure in (uniformity, ajne):
        assert measure(rows @ rotation) == pytest.approx(measure(rows), abs=1e-6)
    assert modality_gap(rows @ rotation, -rows @ rotation)[1] == pytest.approx(modality_gap(rows, -rows)[1])


def test_the_gap_of_pictures_with_several_captions_weighs_every_picture_once():
    rng = np.random.default_rng(2)
    picture, caption = np.array([0, 0, 0, 1, 2, 2, 3]), np.array([0, 1, 2, 3, 3, 4, 5])
    image, text = rng.standard_normal((4, 5))[picture], rng.standard_normal((6, 5))[caption]
    expected = np.mean(
        [
            image[picture == p][0] - np.mean([text[caption == c][0] for c in {*caption[picture == p]}], axis=0)
            for p in range(4)
        ],
        axis=0,
    )
    gap, size = modality_gap(image, text, matching(caption, picture))
    assert gap == pytest.approx(expected)
    assert size == pytest.approx(float(np.linalg.norm(expected)))
    same = np.arange(7)
    assert modality_gap(image, text, matching(same, same))[0] == pytest.approx(modality_gap(image, text)[0])
