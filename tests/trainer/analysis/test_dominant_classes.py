"""The point of a class's name against a double loop over all points."""

import numpy as np
import pytest

from trainer.analysis.dominant_classes import MOST_POINTS, NEAR_SHARE, dominant_points


def counted(classes: np.ndarray, xy: np.ndarray) -> dict[int, tuple[int, int]]:
    """Return, by class, how many of its points are around its densest dominating point, and the row of that."""
    radius = NEAR_SHARE * max(xy[:, 0].max() - xy[:, 0].min(), xy[:, 1].max() - xy[:, 1].min())
    best: dict[int, tuple[int, int]] = {}
    for row, (x, y) in enumerate(xy):
        around = [other for other, (u, v) in enumerate(xy) if (x - u) ** 2 + (y - v) ** 2 <= radius**2]
        own = sum(classes[other] == classes[row] for other in around)
        size = sum(number == classes[row] for number in classes)
        enough = own >= 0.8 * len(around) and own >= 5 and own >= 0.1 * size
        if enough and own > best.get(classes[row], (0, 0))[0]:
            best[classes[row]] = own, row
    return best


@pytest.mark.parametrize("seed", range(4))
def test_each_class_is_at_its_densest_point(seed: int):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 6, 150)
    xy = rng.normal(0, 0.4, (150, 2)) + np.array([[0, 0], [3, 0], [0, 3], [3, 3], [1.5, 1.5], [1.5, 1.5]])[classes]
    expected, points = counted(classes, xy), dominant_points(classes, xy)
    assert expected
    assert points == {number: tuple(xy[row]) for number, (_, row) in expected.items()}
    densest_first = [expected[number][0] for number in points]
    assert densest_first == sorted(densest_first, reverse=True)


def test_points_without_a_place_and_of_many_a_part():
    xy = np.full((3 * MOST_POINTS, 2), np.nan)
    assert dominant_points(np.zeros(len(xy), int), xy) == {}
    assert dominant_points(np.zeros(0, int), np.zeros((0, 2))) == {}
    xy[::2] = 1.0
    assert dominant_points(np.full(len(xy), 7), xy) == {7: (1.0, 1.0)}
