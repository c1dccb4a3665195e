import math

import numpy as np
import pytest

from trainer.analysis.embedding_moves import (
    along_direction,
    closed_gap,
    foreseen_by_ridge,
    principal_directions,
    ridge,
    slerp,
    text_difference,
    without_direction,
)
from trainer.analysis.unit_rows import normalized


@pytest.fixture
def rows() -> np.ndarray:
    return normalized(np.random.default_rng(0).standard_normal((40, 5)))


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_slerp_divides_the_angle(rows, share):
    whole = math.acos(float(rows[0] @ rows[1]))
    found = slerp(rows[0], rows[1], share)
    assert math.acos(min(1.0, float(found @ rows[0]))) == pytest.approx(share * whole, abs=1e-7)
    assert math.acos(min(1.0, float(found @ rows[1]))) == pytest.approx((1 - share) * whole, abs=1e-7)
    assert np.linalg.norm(found) == pytest.approx(1)


def test_slerp_of_equal_rows_is_that_row(rows):
    assert slerp(rows[0], rows[0], 0.3) == pytest.approx(rows[0])


def test_a_text_difference_is_added_and_scaled(rows):
    by_hand = [r + 0.5 * (a - b) for r, a, b in zip(rows[0], rows[2], rows[1])]
    length = math.sqrt(sum(value**2 for value in by_hand))
    assert text_difference(rows[0], rows[1], rows[2], 0.5) == pytest.approx([value / length for value in by_hand])


def test_principal_directions_are_those_of_the_covariance(rows):
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    for place, direction in enumerate(principal_directions(rows, 3)):
        assert abs(float(direction @ vectors[:, values.argsort()[::-1][place]])) == pytest.approx(1, abs=1e-9)
        assert direction[np.abs(direction).argmax()] > 0


def test_without_a_direction_a_row_varies_no_more_along_it(rows):
    (direction,), mean = principal_directions(rows, 1), rows.mean(axis=0)
    found = without_direction(rows[0], mean, direction)
    before = rows[0] - ((rows[0] - mean) @ direction) * direction
    assert found == pytest.approx(before / np.linalg.norm(before))
    assert before @ direction == pytest.approx(float(mean @ direction))
    assert along_direction(rows[0], direction, 0.4) == pytest.approx(normalized(rows[0] + 0.4 * direction))


def test_the_closed_gap_moves_the_mean_text_onto_the_mean_image(rows):
    texts, images = rows[:20], rows[20:] + 3
    assert closed_gap(texts.mean(axis=0), texts, images) == pytest.approx(normalized(images.mean(axis=0)))


def test_ridge_is_where_its_gradient_vanishes(rows):
    texts, images, penalty = rows[:30], np.random.default_rng(1).standard_normal((30, 5)), 0.02
    weights = ridge(texts, images, penalty)
    for i in range(6):
        for j in range(5):
            slope = 0.0
            for text, image in zip(texts, images):
                wide = [*text, 1.0]
                slope += 2 * wide[i] * (sum(w * t for w, t in zip(weights[:, j], wide)) - image[j])
            slope += 0.0 if i == 5 else 2 * penalty * 30 * weights[i, j]
            assert slope == pytest.approx(0, abs=1e-9)
    found = foreseen_by_ridge(texts, weights)
    assert found[3] == pytest.approx(normalized(np.array([*texts[3], 1.0]) @ weights))


def test_ridge_without_penalty_recovers_a_linear_map(rows):
    true = np.random.default_rng(2).standard_normal((6, 5))
    wide = np.hstack([rows, np.ones((40, 1))])
    assert ridge(rows, wide @ true, 0.0) == pytest.approx(true, abs=1e-9)
