"""Confidence intervals of a measured share."""

from __future__ import annotations

import math
from typing import Final

LEAST_ONE_SIDED: Final = 6
"""Questions that only one of two runs answers, all of them the same one: a sign test gives 2 * 0.5**6 = 0.03 < 0.05."""
FEWEST_HELD_OUT: Final = 24
"""Pairs from which on a difference of 25 points can be told from chance."""


def smallest_difference(n: int) -> float:
    """Return the smallest difference of two shares of the same `n` questions that can be told from chance.

    Of fewer than six questions no difference can: the value is above 1.
    """
    return LEAST_ONE_SIDED / n if n > 0 else math.inf


def wilson(share: float, n: int, *, z: float = 1.96) -> tuple[float, float]:
    """Return the Wilson interval, which covers the true share in 95 of 100 samples (`z` 1.96); NaN without a sample.

    Wilson, Probable inference, the law of succession, and statistical inference, 1927, equation 2; unlike the
    normal approximation it stays inside [0, 1] and has a width at 0 and 1.
    """
    if n < 1 or math.isnan(share):
        return float("nan"), float("nan")
    center = (share + z * z / 2 / n) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(max(share * (1 - share) / n + z * z / 4 / n / n, 0))
    # Rounding would leave 7e-18 where the interval begins at 0.
    return 0.0 if share <= 0 else max(center - half, 0.0), 1.0 if share >= 1 else min(center + half, 1.0)
