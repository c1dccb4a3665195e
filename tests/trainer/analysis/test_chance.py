"""The chance level of R@k and of shared neighbors, against drawing at random."""

import itertools
import math

import pytest

from trainer.analysis.chance import chance_level, chance_text, says_little


@pytest.mark.parametrize(("k", "candidates", "right"), [(1, 11, 1), (5, 11, 1), (10, 11, 3), (3, 7, 2), (7, 7, 1)])
def test_level_is_the_share_of_all_draws_that_hold_a_right_one(k: int, candidates: int, right: int) -> None:
    draws = [*itertools.combinations(range(candidates), k)]
    hit = sum(min(draw) < right for draw in draws) / len(draws)
    assert chance_level(k, candidates, right) == pytest.approx(hit)


def test_level_of_two_neighborhoods_is_the_mean_share_that_they_share() -> None:
    draws = [set(draw) for draw in itertools.combinations(range(8), 3)]
    mean = sum(len(a & b) / 3 for a in draws for b in draws) / len(draws) ** 2
    assert chance_level(3, 8) == pytest.approx(mean)


def test_no_candidate_has_no_level() -> None:
    assert math.isnan(chance_level(1, 0))


def test_a_third_of_the_candidates_says_little() -> None:
    assert [k for k in range(1, 11) if says_little(k, 11)] == [4, 5, 6, 7, 8, 9, 10]
    assert chance_text(10, 11) == "chance 90.9 %, says little: 10 of 11 candidates"
    assert chance_text(1, 11) == "chance 9.1 %"
