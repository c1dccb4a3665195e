"""Concepts switched off and added: against float64 loops over planted concepts."""

import numpy as np
import pytest

from trainer.analysis.concept_edits import (
    ConceptSpaces,
    nearest_words,
    neighbors_with,
    recall_without,
    sides_without,
    zero_shot_without,
)
from trainer.analysis.concepts import standardized
from trainer.analysis.distinct import one_to_one
from trainer.analysis.sparse_dictionary import SparseDictionary

N, WIDTHS, SIZE = 30, (7, 5), 6
rng = np.random.default_rng(11)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def of() -> ConceptSpaces:
    sides = [[np.float32(unit(rng.standard_normal((N, width)) + 0.4)) for _ in range(2)] for width in WIDTHS]
    spaces = tuple(standardized(image, text, np.r_[: N - 8, N : 2 * N - 8]) for image, text in sides)
    rows = np.concatenate([space.rows for space in spaces], axis=1)
    width = sum(WIDTHS)
    parts = rng.standard_normal((width, SIZE)), rng.standard_normal(SIZE), rng.standard_normal((SIZE, width))
    dictionary = SparseDictionary(*(np.float32(part) for part in parts), np.zeros(width, np.float32), WIDTHS, 3)
    held = np.arange(N - 8, N)
    return ConceptSpaces(dictionary, dictionary.codes(rows), spaces, held, one_to_one(8), np.arange(N) * 2)


def naive_side(of: ConceptSpaces, space: int, off: tuple[int, ...], *, text: bool) -> np.ndarray:
    """Return unit rows without the concepts, a row and a concept at a time."""
    own = slice(start := sum(WIDTHS[:space]), start + WIDTHS[space])
    found = []
    for i in range(N):
        row = np.float64(of.spaces[space].rows[i + N * text]).copy()
        for c in off:
            row -= float(of.codes[i + N * text, c]) * np.float64(of.dictionary.decoder[c, own])
        row = row * of.spaces[space].scale + (of.spaces[space].text if text else of.spaces[space].image)
        found.append(row / np.sqrt(sum(value * value for value in row)))
    return np.array(found)


@pytest.mark.parametrize("off", [(), (2,), (0, 3, 5)])
@pytest.mark.parametrize("space", [0, 1])
def test_embeddings_and_recall_without_concepts_equal_loops(of: ConceptSpaces, space: int, off: tuple[int, ...]):
    image, text = (naive_side(of, space, off, text=text) for text in (False, True))
    found = sides_without(of, space, off)
    assert found[0] == pytest.approx(image, abs=1e-5)
    assert found[1] == pytest.approx(text, abs=1e-5)
    hits = 0
    for i in of.held:
        hits += all(image[i] @ text[i] > image[i] @ text[j] for j in of.held if j != i)
    assert recall_without(of, space, off) == hits / len(of.held)


@pytest.mark.parametrize("off", [(), (1, 4)])
def test_zero_shot_without_concepts_equals_a_loop(of: ConceptSpaces, off: tuple[int, ...]):
    templates = 3
    prompts = [unit(rng.standard_normal((4 * templates, width))) for width in WIDTHS]
    places, truth = of.held[:6], rng.integers(4, size=6)
    for space in (0, 1):
        image = naive_side(of, space, off, text=False)
        starts = sum(WIDTHS[:space]), sum(WIDTHS[: space + 1])
        right = 0
        said = []
        for c in range(4 * templates):
            whole = np.concatenate([(p[c] - s.text) / s.scale for p, s in zip(prompts, of.spaces, strict=True)])
            values = whole @ np.float64(of.dictionary.encoder) + of.dictionary.bias
            kept = sorted(range(SIZE), key=lambda m: -values[m])[:3]
            row = whole[starts[0] : starts[1]].copy()
            for m in off:
                if m in kept and values[m] > 0:
                    row -= values[m] * of.dictionary.decoder[m, starts[0] : starts[1]]
            said.append(unit(row * of.spaces[space].scale + of.spaces[space].text))
        classes = [unit(sum(said[c * templates : (c + 1) * templates])) for c in range(4)]
        for place, own in zip(places, truth, strict=True):
            right += max(range(4), key=lambda c: image[place] @ classes[c]) == own
        assert zero_shot_without(of, space, off, prompts, places, truth, templates) == right / 6


def test_a_concept_added_to_an_image_leads_to_images_that_have_it(of: ConceptSpaces):
    image = naive_side(of, 0, (), text=False)
    active = [float(v) for v in of.codes[:, 1] if v > 0]
    assert of.typical(1) == pytest.approx(sum(active) / len(active))
    start = np.float64(of.spaces[0].rows[4]) + 2 * of.typical(1) * np.float64(of.dictionary.decoder[1, : WIDTHS[0]])
    asked = unit(start * of.spaces[0].scale + of.spaces[0].image)
    order = sorted((j for j in range(N) if j != 4), key=lambda j: -(image[j] @ asked))
    assert neighbors_with(of, 0, 4, 1, 2.0, 5) == order[:5]
    plain = sorted((j for j in range(N) if j != 4), key=lambda j: -(image[j] @ image[4]))
    assert neighbors_with(of, 0, 4, 1, 0.0, 5) == plain[:5]


def test_pairs_with_a_concept_are_rows_of_the_snapshot(of: ConceptSpaces):
    expected = [2 * i for i in range(N) if of.codes[i, 3] > 0 or of.codes[i + N, 3] > 0]
    assert of.pairs_with(3).tolist() == expected


def test_the_nearest_words_have_the_largest_mean_cosine(of: ConceptSpaces):
    words = tuple("abcdef")
    vectors = [rng.standard_normal((6, width)) for width in WIDTHS]
    start, scores = 0, dict.fromkeys(words, 0.0)
    for rows, share in zip(vectors, of.dictionary.shares()[2], strict=True):
        direction = np.float64(of.dictionary.decoder[2, start : start + rows.shape[1]])
        start += rows.shape[1]
        for word, row in zip(words, rows - rows.mean(axis=0), strict=True):
            scores[word] += share * (row @ direction) / np.linalg.norm(row) / np.linalg.norm(direction)
    assert nearest_words(of, 2, words, vectors) == tuple(sorted(words, key=lambda w: -scores[w])[:3])
