"""Labels by share, words for classes, and the pairs seen per score."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.efficiency import band, pairs_to_reach
from trainer.analysis.label_shares import labels_of_share, stratified
from trainer.analysis.word_scores import answerable, class_scores, class_words


@given(st.lists(st.integers(0, 4), min_size=5, max_size=200), st.sampled_from([0.01, 0.1, 0.5, 1.0]), st.integers(0, 9))
def test_a_share_has_every_class_in_proportion(labels: list[int], share: float, seed: int):
    targets = np.array(labels)
    counts = labels_of_share(targets, share)
    there = np.bincount(targets)
    assert ((counts > 0) == (there > 0)).all()
    assert (np.abs(counts - share * there) <= 1).all()
    rows = stratified(targets, counts, seed=seed)
    assert (np.bincount(targets[rows], minlength=len(there)) == counts).all()
    assert len(set(rows.tolist())) == len(rows)
    assert (rows == stratified(targets, counts, seed=seed)).all()


def test_another_seed_draws_other_rows():
    targets = np.arange(300) % 3
    counts = labels_of_share(targets, 0.1)
    assert not (stratified(targets, counts, seed=0) == stratified(targets, counts, seed=1)).all()
    assert labels_of_share(targets, 0.5, total=700) is None
    assert labels_of_share(targets, 0.5, total=600).tolist() == [100, 100, 100]


def test_a_class_scores_the_mean_of_its_known_words():
    words = ["red", "star", "long", "shirt"]
    weights = class_words(["Red star", "long-sleeve shirt", "hat", "red red"], words)
    scores = np.array([[1.0, 3.0, 5.0, 7.0], [0.0, -2.0, 0.5, 0.5]])
    found = class_scores(scores, weights)
    naive = [[np.mean([row[0], row[1]]), np.mean([row[2], row[3]]), -np.inf, row[0]] for row in scores]
    assert found == pytest.approx(np.array(naive))
    assert answerable(weights).tolist() == [True, True, False, True]
    # Log-probabilities of a softmax name the same class.
    soft = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    assert (class_scores(soft, weights).argmax(1) == found.argmax(1)).all()


def test_the_band_is_that_of_the_pairs_that_all_seeds_were_measured_at():
    one = (np.array([0, 100, 200, 400]), np.array([0.1, 0.2, 0.4, 0.5]))
    two = (np.array([0, 200, 300, 400]), np.array([0.1, 0.6, 0.7, 0.9]))
    found = band([one, two])
    assert found.pairs.tolist() == [0, 200, 400]
    assert found.mean == pytest.approx([0.1, 0.5, 0.7])
    assert found.std == pytest.approx([0.0, np.std([0.4, 0.6], ddof=1), np.std([0.5, 0.9], ddof=1)])
    assert np.isnan(band([one]).std).all()
    assert len(band([one, (np.array([7]), np.array([1.0]))]).pairs) == 0
    with pytest.raises(ValueError, match="needs a curve"):
        band([])


def test_the_price_of_a_level_is_read_between_points():
    pairs, values = np.array([0, 100, 200, 300]), np.array([0.1, 0.3, 0.2, 0.5])
    assert pairs_to_reach(pairs, values, 0.2) == pytest.approx(50)
    assert pairs_to_reach(pairs, values, 0.3) == pytest.approx(100)
    assert pairs_to_reach(pairs, values, 0.4) == pytest.approx(200 + 100 * 2 / 3)
    assert pairs_to_reach(pairs, values, 0.05) == 0
    assert pairs_to_reach(pairs, values, 0.6) is None
