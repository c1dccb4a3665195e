"""Wilson's interval: published values and coverage."""

import numpy as np
import pytest

from trainer.analysis.intervals import wilson
from trainer.store.question import Question


def test_known_intervals():
    assert wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson(0.0, 10) == pytest.approx((0, 0.2775), abs=1e-3)
    assert wilson(1.0, 10)[1] == pytest.approx(1)
    for n in range(1, 300):
        assert wilson(0.0, n)[0] == 0.0
        assert wilson(1.0, n)[1] == 1.0
    assert np.isnan(wilson(0.5, 0)).all()


def test_it_holds_the_truth_95_times_in_100():
    counts = np.random.default_rng(0).binomial(400, 0.8, 4000)
    held = [low <= 0.8 <= high for low, high in (wilson(c / 400, 400) for c in counts)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_captions_that_repeat_ask_once():
    """Simulation: 60 captions of 8 images each, where a model finds an image with probability .8."""
    rng, held = np.random.default_rng(0), {"captions": [], "pairs": []}
    question = Question("retrieval", 480, gallery=60, protocol="480 distinct pictures")
    assert [question.asked(name) for name in ("text_to_image_R@1", "image_to_text_R@1")] == [60, 480]
    for _ in range(2_000):
        share = float(np.repeat(rng.random(60) < 0.8, 8).mean())
        for what, n in (("captions", question.asked("text_to_image_R@1")), ("pairs", question.n)):
            low, high = wilson(share, n)
            held[what].append(low <= 0.8 <= high)
    assert 0.93 <= np.mean(held["captions"]) <= 0.98
    assert np.mean(held["pairs"]) < 0.6, "as many as pairs is far too narrow"


def test_pictures_that_repeat_ask_once_and_other_tasks_ask_with_every_sample():
    asked = Question("retrieval", 40_000, gallery=39_900, protocol="8,000 distinct pictures")
    assert asked.asked("image_to_text_R@5") == 8_000
    assert Question("zero_shot", 50, classes=3).asked("zero_shot_acc1") == 50
    assert Question("retrieval", 50).asked("text_to_image_R@1") == 50
