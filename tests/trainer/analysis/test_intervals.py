"""Wilson's interval: published values and coverage."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.analysis.intervals import wilson


def test_known_intervals():
    assert wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson(0.0, 10) == pytest.approx((0, 0.2775), abs=1e-3)
    assert wilson(1.0, 10)[1] == pytest.approx(1)
    assert np.isnan(wilson(0.5, 0)).all()


def test_it_holds_the_truth_95_times_in_100():
    counts = np.random.default_rng(0).binomial(400, 0.8, 4000)
    held = [low <= 0.8 <= high for low, high in (wilson(c / 400, 400) for c in counts)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)
