"""Rankings over distinct captions and images against float64 double loops over sets of items."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.distinct import answers, matching, numbered, one_to_one
from trainer.analysis.pair_ranks import ranks_among
from trainer.analysis.rank_margins import both_standings, standing
from trainer.analysis.retrieval import average_precision, ranks
from trainer.analysis.similarity import hardest_texts

SMALL = st.tuples(st.integers(1, 24), st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))


def drawn(n: int, captions: int, images: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return caption and image numbers of n pairs, and embeddings equal for equal items, with many ties."""
    rng = np.random.default_rng(seed)
    caption, image = rng.integers(captions, size=n), rng.integers(images, size=n)
    # Whole numbers: sums are exact in any order, so ties are ties everywhere.
    rows = [rng.integers(-2, 3, (m, 3)).astype(np.float64) for m in (images, captions)]
    return caption, image, rows[0][image], rows[1][caption]


def items(numbers: np.ndarray, vectors: np.ndarray) -> dict[int, np.ndarray]:
    """Return distinct item -> its vector."""
    return dict(zip(numbers.tolist(), vectors, strict=True))


def naive(query: np.ndarray, stored: np.ndarray, asking: np.ndarray, answering: np.ndarray):
    """Return rank, margin and average precision of every query, by loops over sets of distinct items."""
    gallery, found = items(answering, stored), []
    for i in range(len(query)):
        right = {answering[j] for j in range(len(query)) if asking[j] == asking[i]}
        scores = {item: float(sum(a * b for a, b in zip(query[i], row, strict=True))) for item, row in gallery.items()}
        wrong = [score for item, score in scores.items() if item not in right]
        best = max(scores[item] for item in right)
        spread = float(np.std(wrong)) if len(wrong) > 1 else 0.0
        margin = (best - max(wrong)) / spread if spread > 1e-9 else float("nan")
        shares = []
        for place, score in enumerate(sorted((scores[item] for item in right), reverse=True), start=1):
            shares.append(place / (place + sum(other >= score for other in wrong)))
        found.append((1 + sum(score >= best for score in wrong), margin, float(np.mean(shares))))
    return [np.array(column) for column in zip(*found, strict=True)]


@pytest.mark.slow
@given(SMALL)
def test_ranks_precision_and_standing_are_those_of_loops_over_distinct_items(size: tuple[int, int, int, int]):
    caption, picture, image, text = drawn(*size)
    found = matching(caption, picture)
    both, text_rank = both_standings(image, text, found)
    ways = ((image, text, picture, caption, found.texts), (text, image, caption, picture, found.images))
    for query, stored, asking, answering, answer in ways:
        rank, margin, precision = naive(query, stored, asking, answering)
        assert ranks(query, stored, answer).tolist() == rank.tolist()
        assert np.allclose(average_precision(query, stored, answer), precision, atol=1e-12)
        one = standing(query, stored, answer)
        assert one.rank.tolist() == rank.tolist()
        np.testing.assert_allclose(one.margin, margin, rtol=1e-9)
        some = np.arange(len(query))[::-2]
        assert standing(query, stored, answer, rows=some).rank.tolist() == rank[some].tolist()
        assert ranks(query, stored, answer, rows=some).tolist() == rank[some].tolist()
    rank, margin, _ = naive(image, text, picture, caption)
    assert both.rank.tolist() == rank.tolist()
    np.testing.assert_allclose(both.margin, margin, rtol=1e-9)
    assert text_rank.tolist() == naive(text, image, caption, picture)[0].tolist()


@pytest.mark.slow
@given(SMALL, st.integers(1, 6))
def test_the_hardest_are_distinct_captions_that_are_none_of_the_pictures_own(size: tuple[int, int, int, int], k: int):
    caption, picture, image, text = drawn(*size)
    found = hardest_texts(image, text, k, matching(caption, picture).texts)
    gallery = items(caption, text)
    for i in range(len(image)):
        own = {caption[j] for j in range(len(image)) if picture[j] == picture[i]}
        naively = sorted((float(image[i] @ row) for item, row in gallery.items() if item not in own), reverse=True)[:k]
        there = found.places[i] >= 0
        assert found.cosines[i][there].tolist() == naively
        assert np.isnan(found.cosines[i][~there]).all()
        named = caption[found.places[i][there]].tolist()
        assert len(set(named)) == len(named)
        assert not own & set(named)
        assert found.right[i] == max(float(image[i] @ gallery[item]) for item in own)


@given(SMALL)
def test_ranks_among_a_sample_count_each_distinct_caption_once(size: tuple[int, int, int, int]):
    caption, picture, image, text = drawn(*size)
    n = len(caption)
    sample = np.random.default_rng(size[3]).integers(n, size=max(1, n // 2))
    gallery = items(caption, text)
    found = ranks_among(image, text, sample, matching(caption, picture).texts)
    for i in range(n):
        own = {caption[j] for j in range(n) if picture[j] == picture[i]}
        best = max(float(image[i] @ gallery[item]) for item in own)
        wrong = {caption[j] for j in sample} - own
        assert found[i] == 1 + sum(float(image[i] @ gallery[item]) >= best for item in wrong)
    everything = ranks_among(image, text, np.arange(n), matching(caption, picture).texts)
    assert everything.tolist() == ranks(image, text, matching(caption, picture).texts).tolist()


@pytest.mark.slow
@given(st.integers(1, 20), st.integers(0, 1000))
def test_without_duplicates_nothing_changes(n: int, seed: int):
    rng = np.random.default_rng(seed)
    image, text = rng.standard_normal((2, n, 4))
    number = rng.permutation(n) + 7
    found = matching(number, rng.permutation(n))
    for query, stored, answer in ((image, text, found.texts), (text, image, found.images)):
        assert ranks(query, stored, answer).tolist() == ranks(query, stored).tolist()
        assert (average_precision(query, stored, answer) == 1 / ranks(query, stored)).all()
    assert np.array_equal(
        hardest_texts(image, text, 3, found.texts).cosines, hardest_texts(image, text, 3).cosines, equal_nan=True
    )


def test_a_class_folder_is_ranked_by_classes_and_not_by_how_many_pictures_share_one():
    """With four images of a cat and one each of ten animals, a wrong caption that four share is one wrong answer."""
    caption = np.array([0, 0, 0, 0, *range(1, 11)])
    text = np.eye(11)[caption]
    image = text.copy()
    image[5] = np.eye(11)[0] * 0.9 + np.eye(11)[2] * 0.4  # taken for a cat first, for itself second
    found = matching(caption)
    assert ranks(image, text)[5] == 5, "the cat's caption four times"
    assert ranks(image, text, found.texts)[5] == 2
    assert ranks(text, image, found.images)[0] == 1
    assert (len(found.texts), len(found.images)) == (11, 14)


def test_a_picture_of_five_captions_is_found_by_any_of_them():
    caption, picture = np.arange(10), np.repeat([0, 1], 5)
    text = np.eye(10)
    image = np.stack([text[3]] * 5 + [text[9]] * 5)
    found = matching(caption, picture)
    assert ranks(image, text, found.texts).tolist() == [1] * 10
    assert ranks(image, text, one_to_one(10)).tolist().count(1) == 2
    assert len(found.images) == 2
    # A text of the first picture is nearest to it or not: there are two pictures to choose from.
    assert max(ranks(text, image, found.images)) <= 2


@pytest.mark.parametrize("broken", [0, 1])
def test_all_equal_and_not_a_number_rank_last(broken: int):
    same = np.ones((8, 3)) / np.sqrt(3)
    found = matching(np.arange(8) // 2, np.arange(8) // 4)
    rows = [same, same.copy()]
    rows[broken][:] = np.nan
    for image, text in ((same, same), rows):
        assert ranks(image, text, found.texts).tolist() == [3] * 8, "four captions, two of them right"
        assert ranks(text, image, found.images).tolist() == [2] * 8
        both, text_rank = both_standings(image, text, found)
        assert both.rank.tolist() == [3] * 8
        assert text_rank.tolist() == [2] * 8
    assert np.allclose(average_precision(same, same, found.texts), np.mean([1 / 3, 2 / 4]))
    assert np.allclose(average_precision(rows[0], rows[1], found.texts), np.mean([1 / 3, 2 / 4]))


def test_numbers_are_equal_where_the_values_are_and_an_empty_one_equals_none():
    assert numbered(["b", "a", "b", "a"]).tolist() == [0, 1, 0, 1]
    found = numbered(["", "x", "", "x", ""])
    assert found[1] == found[3]
    assert len(set(found.tolist())) == 4
    assert numbered([]).tolist() == []


def test_no_pairs_at_all():
    none = np.zeros((0, 3))
    found = answers(np.zeros(0, int), np.zeros(0, int))
    assert len(ranks(none, none, found)) == len(average_precision(none, none, found)) == 0


@pytest.mark.parametrize("most", [5, 30])
def test_answers_in_another_order_are_those_of_texts_in_that_order(most: int, monkeypatch: pytest.MonkeyPatch):
    """Shuffled pairs are compared without a shuffled copy of the texts; by parts, as a million are."""
    monkeypatch.setattr("trainer.analysis.unmatched.CELLS", 40)
    rng = np.random.default_rng(most)
    captions, pictures, order = rng.integers(0, most, 30), rng.integers(0, most, 30), rng.permutation(30)
    if most == 30:
        captions = pictures = np.arange(30)
    image, text = rng.standard_normal((30, 6)), rng.standard_normal((30, 6))[captions]
    expected = hardest_texts(image, text[order], 3, answers(pictures, captions[order])).cosines
    found = hardest_texts(image, text, 3, answers(pictures, captions, order)).cosines
    np.testing.assert_allclose(found, expected, rtol=1e-12)
