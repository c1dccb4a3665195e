"""Samples of rows when there are too many to compute with."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Int

MOST_COSINES: Final = 400_000_000
"""Cosines that a chart computes for one number without being asked: 20,000 questions among 20,000 answers."""
FEWEST_ASKING: Final = 1_000
"""Questions that ask however many answers there are: a share of them is known to 3 points."""


def most_asking(answers: int) -> int:
    """Return the number of questions that are drawn where there are this many answers."""
    return max(FEWEST_ASKING, MOST_COSINES // max(answers, 1))


def at_most(rows: Int[np.ndarray, " n"] | int, most: int, *, seed: int = 0) -> Int[np.ndarray, " k"]:
    """Return all rows, or a random sample of `most` if there are more; ascending. Rows must be of different units.

    The draw is the same each time: what is computed with it does not change from one look to the next.

    Args:
        rows: The rows, or how many there are (0 to n - 1).
        most: How many are taken at the most.
    """
    n = rows if isinstance(rows, int) else len(rows)
    if n <= most:
        return np.arange(n) if isinstance(rows, int) else rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
