"""Data efficiency: the score of models by pairs seen, and the pairs needed for a score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

Curve = tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]
"""Pairs seen, ascending, and the value measured then."""


class Band(Struct, frozen=True):
    """The curves of several seeds as one."""

    pairs: Int[np.ndarray, " k"]  # Pairs seen at which every curve was measured, ascending.
    mean: Float[np.ndarray, " k"]  # Over the curves.
    std: Float[np.ndarray, " k"]  # Deviation over the curves (n - 1); NaN of a single one.


def band(curves: Sequence[Curve]) -> Band:
    """Return mean and standard deviation where all curves have a value, without extrapolation.

    Raises:
        ValueError: There are no curves.
    """
    if not curves:
        raise ValueError("a band needs a curve")
    pairs = curves[0][0]
    for other, _ in curves[1:]:
        pairs = np.intersect1d(pairs, other)
    values = np.array([np.asarray(value, np.float64)[np.searchsorted(seen, pairs)] for seen, value in curves])
    values = values.reshape(len(curves), len(pairs))
    spread = values.std(axis=0, ddof=1) if len(curves) > 1 else np.full(len(pairs), np.nan)
    return Band(pairs, values.mean(axis=0), spread)


def pairs_to_reach(pairs: Int[np.ndarray, " k"], values: Float[np.ndarray, " k"], level: float) -> float | None:
    """Return the pairs seen when the linearly interpolated curve first reaches `level`; None if it never does."""
    reached = np.flatnonzero(values >= level)
    if not len(reached):
        return None
    first = int(reached[0])
    if first == 0 or values[first] == values[first - 1]:
        return float(pairs[first])
    share = (level - values[first - 1]) / (values[first] - values[first - 1])
    return float(pairs[first - 1] + share * (pairs[first] - pairs[first - 1]))
