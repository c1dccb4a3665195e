"""Training curves: smoothing with bias correction, and thinning that keeps every peak."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int

_BLOCK: Final = 256


def smooth(values: Float[np.ndarray, " n"], weight: float) -> Float[np.ndarray, " n"]:
    """Return the bias-corrected exponential moving average of the finite values, which starts at the first one.

    Entry t averages entries s <= t with weights `weight ** (t - s)`; 0 changes nothing. Values that are not finite
    stay as they are and do not spread.

    Raises:
        ValueError: `weight` outside [0, 1).
    """
    if not 0 <= weight < 1:
        raise ValueError(f"smoothing {weight} is outside [0, 1)")
    smoothed = np.array(values, dtype=np.float64)
    finite = np.isfinite(smoothed)
    present = smoothed[finite]
    if weight > 0 and len(present):
        correction = -np.expm1(np.arange(1, len(present) + 1) * np.log(weight))
        smoothed[finite] = _moving_average(present, weight) / correction
    return smoothed


def thin(values: Float[np.ndarray, " n"], limit: int) -> Int[np.ndarray, " m"]:
    """Return ordered positions of at most `limit` entries that draw the same curve, with all peaks and gaps.

    Kept are the first and the last, and of each stretch of equal length its smallest, its largest and its first
    entry that is not finite.

    Raises:
        ValueError: `limit` below 5.
    """
    if limit < 5:
        raise ValueError(f"a curve needs at least 5 points, {limit} are allowed")
    n = len(values)
    if n <= limit:
        return np.arange(n)
    stretches = (limit - 2) // 3
    length = -(-n // stretches)
    # Padding repeats the last entry, whose position is kept anyway.
    at = np.minimum(np.arange(stretches * length).reshape(stretches, length), n - 1)
    entries = np.asarray(values, dtype=np.float64)[at]
    finite = np.isfinite(entries)
    rows = np.arange(stretches)
    selected = [
        at[rows, np.where(finite, entries, np.inf).argmin(1)],
        at[rows, np.where(finite, entries, -np.inf).argmax(1)],
        at[rows, finite.argmin(1)],
    ]
    return np.unique(np.concatenate([*selected, [0, n - 1]]))


def _moving_average(values: np.ndarray, weight: float) -> np.ndarray:
    """Return `out[t] = weight * out[t - 1] + (1 - weight) * values[t]` from 0, as one matrix product per block."""
    n = len(values)
    blocks = np.pad(values, (0, -n % _BLOCK)).reshape(-1, _BLOCK)
    lag = np.arange(_BLOCK)[:, None] - np.arange(_BLOCK)
    kernel = np.where(lag >= 0, (1 - weight) * weight ** np.maximum(lag, 0), 0)
    averaged = blocks @ kernel.T
    fade, carried = weight ** np.arange(1, _BLOCK + 1), 0.0
    for block in averaged:
        block += fade * carried
        carried = block[-1]
    return averaged.reshape(-1)[:n]
