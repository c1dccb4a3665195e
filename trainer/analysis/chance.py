"""The chance level of a share that counts whether the right one is among the first k candidates."""

from __future__ import annotations

import math
from typing import Final

LEAST_SHOWN: Final = 0.1
"""Percent below which the level is told as below it."""
LEAST_MAJORITY: Final = 1.0
"""Percent of the questions below which the most frequent answer is not told."""
MAJORITY_TOLD_FROM: Final = 1.25
"""Times the chance level from which on it is."""


def chance_level(k: int, candidates: int, right: float = 1.0) -> float:
    """Return how often k random candidates hold a right one; also the share of k neighbors that two draws share.

    Args:
        k: Candidates that are drawn.
        candidates: Of which they are drawn.
        right: Right ones of each question; of a mean the level is exact for k = 1 and at most this for more.
    """
    if candidates < 1:
        return math.nan
    return 1 - math.prod(max(0.0, 1 - right / (candidates - drawn)) for drawn in range(min(k, candidates)))


def says_little(k: int, candidates: int) -> bool:
    """Return whether k is at least a third of the candidates: guessing then gets a third or more."""
    return 3 * k >= candidates


def chance_text(k: int, candidates: int, right: float = 1.0, majority: float = 0.0) -> str:
    """Return the chance level for people: `chance 9.1 %`, and of a k that is a third of them that it says little.

    Args:
        k, candidates, right: As for `chance_level`.
        majority: Share of the questions that one answer to all of them gets right, told where it is clearly more.
    """
    level = 100 * chance_level(k, candidates, right)
    text = f"chance {level:.1f} %" if level >= LEAST_SHOWN else f"chance < {LEAST_SHOWN} %"
    if k == 1 and 100 * majority >= max(LEAST_MAJORITY, MAJORITY_TOLD_FROM * level):
        text += f", majority baseline {100 * majority:.1f} %"
    return text + _little(k, candidates)


def jaccard_chance_text(k: int, candidates: int) -> str:
    """Return the same of the Jaccard overlap of two neighborhoods of k: `chance 0.55`."""
    level = chance_level(k, candidates)
    return f"chance {level / (2 - level):.2f}{_little(k, candidates)}"


def _little(k: int, candidates: int) -> str:
    return f", says little: {min(k, candidates)} of {candidates:,} candidates" if says_little(k, candidates) else ""
