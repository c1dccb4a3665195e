"""Pairs that do not retrieve each other: in both runs (perhaps bad data), or in one only (the models differ)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.charts import BOTH, ChartError
from trainer.charts.pair_changes import Changes


class Mispairs(Struct, frozen=True):
    """Badly ranked pairs, worst first; places in `Changes.rows`.

    Pairs are listed, pictures are counted: the captions of one picture are ranked badly together.
    """

    share: float  # Part of the pairs that counts as badly ranked in each run; each picture has the same weight.
    badness_a: Float[np.ndarray, " n"]  # Geometric mean of the ranks both ways in A; 1 is best.
    badness_b: Float[np.ndarray, " n"]  # The same in B.
    both: Int[np.ndarray, " i"]  # Badly ranked in both: candidates for wrong labels.
    only_a: Int[np.ndarray, " j"]  # Badly ranked in A only.
    only_b: Int[np.ndarray, " k"]  # Badly ranked in B only.
    # `both`, `only_a` and `only_b` -> how many pictures have a badly ranked pair in both runs, or in one.
    pictures: dict[str, int]
    expected: float  # How many pictures `both` would count if the runs erred independently.


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
    picture = changes.units.picture if len(changes.units) else np.arange(len(bad[0]))
    weight = 1 / np.bincount(picture)[picture]
    quantiles = [_quantile(b, weight) for b in bad]
    # Sums of weights are rounded.
    worst = [(q >= 1 - share - 1e-9) & (b > 1) for q, b in zip(quantiles, bad)]
    both = np.flatnonzero(worst[0] & worst[1])
    only_a, only_b = np.flatnonzero(worst[0] & ~worst[1]), np.flatnonzero(worst[1] & ~worst[0])
    has = [np.bincount(picture, low) > 0 for low in worst]
    counted = {"both": has[0] & has[1], "only_a": has[0] & ~has[1], "only_b": has[1] & ~has[0]}
    return Mispairs(
        share,
        bad[0],
        bad[1],
        _worst_first(both, np.minimum(*quantiles), bad[0] * bad[1]),
        _worst_first(only_a, quantiles[0] - quantiles[1], bad[0]),
        _worst_first(only_b, quantiles[1] - quantiles[0], bad[1]),
        pictures={key: int(of.sum()) for key, of in counted.items()},
        expected=float(has[0].mean() * has[1].sum()) if len(bad[0]) else 0.0,
    )


def _quantile(values: Float[np.ndarray, " n"], weight: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the share, by weight, of smaller values; ties share the highest place."""
    order = np.argsort(values, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    return below[np.searchsorted(values[order], values, side="left")] / max(below[-1], 1.0)


def _worst_first(rows: np.ndarray, first: np.ndarray, second: np.ndarray) -> Int[np.ndarray, " m"]:
    return rows[np.lexsort((rows, -second[rows], -first[rows]))]
