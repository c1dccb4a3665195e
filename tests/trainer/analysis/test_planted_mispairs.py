"""Planted mispairs: what is detected is what a search by hand finds, and what was learned by heart hides them."""

import math

import numpy as np
import pytest

from trainer.analysis.mispair_evidence import mispair_evidence, suspected
from trainer.analysis.planted_mispairs import planted_mispairs, training_advantage
from trainer.analysis.units import units_of_numbers


def vectors(n: int, noise: float, seed: int = 0):
    draw = np.random.default_rng(seed)
    image, more = (draw.standard_normal((n, 32)).astype(np.float32) for _ in range(2))
    text = image + noise * more
    return tuple(rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (image, text))


def test_a_run_that_separates_detects_them_and_one_that_does_not_detects_none():
    units = units_of_numbers(np.arange(600), np.arange(600))
    good = planted_mispairs(*vectors(600, 0.3), units)
    assert len(good.rows) == 50
    assert good.detected.mean() > 0.95
    blind = planted_mispairs(*vectors(600, 0.3)[:1], vectors(600, 0.3, seed=1)[1], units)
    assert blind.detected.mean() < 0.1


def test_it_is_a_search_among_exchanged_captions():
    """By hand: the same rows, their captions rolled, and the rule of `suspected` on a matching of its own."""
    image, text = vectors(300, 0.6)
    picture, caption = np.arange(300) // 2, np.arange(300) % 97
    units = units_of_numbers(picture, caption)
    found = planted_mispairs(image, text, units, seed=3)
    rows = units.order(3)[: len(units.rows("pair")) // 10]
    other = np.arange(300)
    other[rows] = np.roll(rows, 1)
    shown = {*zip(picture.tolist(), caption.tolist(), strict=True)}
    wrong = [row for row in rows.tolist() if (picture[row], caption[other[row]]) not in shown]
    assert found.rows.tolist() == wrong
    moved = units_of_numbers(picture, caption[other])
    evidence = mispair_evidence(image, text[other], moved.matching)
    judged, _ = suspected(evidence.margin, evidence.caption_rank, evidence.image_rank)
    assert found.detected.tolist() == judged[wrong].tolist()


def test_what_training_gave_a_pair_hides_a_learned_mispair():
    """Training pairs lie deviations above held-out ones: a mispair of the training data does, too."""
    units = units_of_numbers(np.arange(600), np.arange(600))
    image, text = vectors(600, 0.3)
    honest = planted_mispairs(image, text, units)
    learned = planted_mispairs(image, text, units, advantage=8.0)
    assert learned.detected.mean() < 0.1 < honest.detected.mean()
    assert not len(planted_mispairs(image, text, units, advantage=math.nan).rows), "not known"


def test_the_advantage_is_the_difference_of_medians():
    trained = mispair_evidence(*vectors(200, 0.3), units_of_numbers(np.arange(200), np.arange(200)).matching)
    held = mispair_evidence(*vectors(50, 2.0), units_of_numbers(np.arange(50), np.arange(50)).matching)
    assert training_advantage(trained, [held]) == pytest.approx(np.median(trained.margin) - np.median(held.margin))
    assert training_advantage(held, [trained]) == 0
    assert math.isnan(training_advantage(trained, []))


def test_nothing_is_written_into_what_it_was_given():
    image, text = vectors(100, 0.3)
    units = units_of_numbers(np.arange(100), np.arange(100))
    before = image.copy(), text.copy(), units.caption.copy()
    planted_mispairs(image, text, units)
    assert all((a == b).all() for a, b in zip(before, (image, text, units.caption), strict=True))


def test_too_few_pairs_are_not_planted():
    assert not len(planted_mispairs(*vectors(15, 0.3), units_of_numbers(np.arange(15), np.arange(15))).rows)
