"""How few held-out pairs can compare runs: what is said of fewer, on Home and before anything trains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from trainer.analysis.chance import chance_level, says_little
from trainer.analysis.intervals import FEWEST_HELD_OUT, smallest_difference
from trainer.metrics import RECALL_HEADING, measured_on
from trainer.store import RunRow

LAST_K: Final = 10
"""Largest k of the recalls that runs log."""


def too_few_of(rows: Iterable[RunRow]) -> int | None:
    """Return on how many pairs these runs were measured where that is too few; None where it is enough or unknown."""
    return fewest(n for row in rows if row.metric and (n := measured_on(row.metric, row.facts)[1]) is not None)


def fewest(counts: Iterable[int]) -> int | None:
    """Return the smallest of these numbers of pairs where it is too small; None where it is enough or there is none."""
    return min((n for n in counts if n < FEWEST_HELD_OUT), default=None)


def too_few(n: int) -> str:
    """Return in a line that runs cannot be compared on so few held-out pairs."""
    return f"{pairs_in_words(n)}: too few to compare"


def pairs_in_words(n: int) -> str:
    """Return `4 held-out pairs`."""
    return f"{n:,} held-out pair{'s' * (n != 1)}"


def with_captions(captions: int, pairs: int) -> str:
    """Return `240 pairs with 3 different captions`."""
    return f"{pairs:,} pairs with {captions:,} different captions"


def few_captions(captions: int, pairs: int) -> str:
    """Return `few_answers` after how many captions there are; empty where they are enough."""
    few = few_answers(captions, pairs)
    return f"{with_captions(captions, pairs)}. {few}" if few and captions > 1 else few


def few_answers(captions: int, pairs: int) -> str:
    """Return what so few different captions mean for retrieval, and what to do; empty where they are enough."""
    if not 0 < captions < pairs or not says_little(LAST_K, captions):
        return ""
    if captions == 1:
        return f"All {pairs:,} pairs have the same caption: there is nothing to retrieve. Write captions that differ."
    first, last = (100 * chance_level(k, captions) for k in (1, LAST_K))
    return (
        f"Equal captions count as one answer: guessing is right in {first:.1f} % of the first answers, in {last:.1f} % "
        f"among the first {LAST_K}. Compare {RECALL_HEADING} only, or write captions that differ."
    )


def next_step(n: int) -> str:
    """Return what so few held-out pairs can show, and what to do."""
    least = smallest_difference(n)
    can = f"show only differences of {100 * least:.0f} points or more" if least <= 1 else "show no difference"
    return f"So few pairs {can}. Hold out {FEWEST_HELD_OUT} pairs or more"
