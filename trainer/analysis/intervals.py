"""Confidence intervals of a measured share."""

from __future__ import annotations

import math


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
