"""Pairs that do not retrieve each other: in both runs (perhaps bad data), or in one only (the models differ)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from trainer.charts import BOTH, ChartError
from trainer.charts.pair_changes import Changes


@dataclass(frozen=True)
class Mispairs:
    """Badly ranked pairs, worst first; places in `Changes.rows`.

    Attributes:
        share: Part of the pairs that counts as badly ranked in each run.
        badness_a: Geometric mean of the ranks both ways in A; 1 is best.
        badness_b: The same in B.
        both: Badly ranked in both: candidates for wrong labels.
        only_a: Badly ranked in A only.
        only_b: Badly ranked in B only.
        expected: How many `both` would hold if the runs erred independently.
    """

    share: float
    badness_a: Float[np.ndarray, " n"]
    badness_b: Float[np.ndarray, " n"]
    both: Int[np.ndarray, " i"]
    only_a: Int[np.ndarray, " j"]
    only_b: Int[np.ndarray, " k"]
    expected: float


def mispairs(changes: Changes, *, share: float = 0.1) -> Mispairs:
    """Split the worst `share` of each run's pairs by whether the other run ranks them badly too.

    A pair of rank 1 both ways is never bad. The position within its run is what counts, so that a run that is worse
    throughout does not make every pair a difference.

    Raises:
        ChartError: A run lacks images or texts, or `share` is not between 0 and 1.
    """
    if "text_rank_a" not in changes.values:
        raise ChartError(f"Ranks of pairs need images and texts of both runs. {BOTH}")
    if not 0 < share < 1:
        raise ChartError("The share of pairs that counts as low-ranked must be between 0 and 1.")
    values = changes.values
    bad = [np.sqrt(values[f"image_rank_{side}"] * values[f"text_rank_{side}"]) for side in "ab"]
    place = [_quantile(b) for b in bad]
    worst = [(q >= 1 - share) & (b > 1) for q, b in zip(place, bad)]
    both = np.flatnonzero(worst[0] & worst[1])
    only_a, only_b = np.flatnonzero(worst[0] & ~worst[1]), np.flatnonzero(worst[1] & ~worst[0])
    return Mispairs(
        share,
        *bad,
        _worst_first(both, np.minimum(*place), bad[0] * bad[1]),
        _worst_first(only_a, place[0] - place[1], bad[0]),
        _worst_first(only_b, place[1] - place[0], bad[1]),
        expected=float(worst[0].mean() * worst[1].sum()) if len(bad[0]) else 0.0,
    )


def _quantile(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the share of smaller values; ties share the highest place."""
    return np.searchsorted(np.sort(values), values, side="left") / max(len(values), 1)


def _worst_first(rows: np.ndarray, first: np.ndarray, second: np.ndarray) -> Int[np.ndarray, " m"]:
    return rows[np.lexsort((rows, -second[rows], -first[rows]))]
