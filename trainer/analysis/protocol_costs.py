"""What a change of an evaluation's protocol costs: the difference of two shares of right answers, with its test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.significance import mcnemar, paired_shares

_Z: Final = 1.959963984540054


@dataclass(frozen=True)
class ProtocolAnswers:
    """The answers of a model under one protocol, a row per row of the data."""

    right: Bool[np.ndarray, " n"]  # Whether the answer is right; of rows that do not count, anything.
    weight: Float[np.ndarray, " n"]  # How much a row counts; together 1.
    # Of a mean per class the class of each row; None: the rows are one population.
    stratum: Int[np.ndarray, " n"] | None = None

    @property
    def share(self) -> float:
        """The weighted share of right answers."""
        return float(self.weight @ self.right)

    @property
    def influence(self) -> Float[np.ndarray, " n"]:
        """What each row adds to the error of the share: its weight times its distance from its population's share."""
        if self.stratum is None:
            return self.weight * (self.right - self.share)
        total = np.bincount(self.stratum, weights=self.weight)
        shares = np.bincount(self.stratum, weights=self.weight * self.right) / np.where(total > 0, total, 1.0)
        return self.weight * (self.right - shares[self.stratum])


def of_rows(right: Bool[np.ndarray, " n"], counted: Bool[np.ndarray, " n"]) -> ProtocolAnswers:
    """Return answers of which each counted row counts as much as the next."""
    return ProtocolAnswers(right, counted / max(int(counted.sum()), 1))


def of_classes(
    right: Bool[np.ndarray, " n"], counted: Bool[np.ndarray, " n"], label: Int[np.ndarray, " n"]
) -> ProtocolAnswers:
    """Return answers of which each occurring class counts as much as the next."""
    stratum = np.where(counted, label, 0)
    sizes = np.bincount(stratum, weights=counted)
    weight = np.where(counted, 1.0 / np.maximum(sizes[stratum], 1.0) / max(int((sizes > 0).sum()), 1), 0.0)
    return ProtocolAnswers(right, weight, stratum)


@dataclass(frozen=True)
class ProtocolCost:
    """Protocol B minus protocol A.

    Attributes:
        low, high: 95 % interval.
        p: Two-sided; 1 where no answer differs.
        test: `McNemar`, or `delta method` where rows count unequally or several are of one picture.
    """

    difference: float
    low: float
    high: float
    p: float
    test: str


def paired_cost(a: ProtocolAnswers, b: ProtocolAnswers, unit: Int[np.ndarray, " n"]) -> ProtocolCost:
    """Return what protocol B changes on the same rows.

    Where each counted row counts once in both and is a picture of its own: Newcombe's interval and the exact McNemar
    test. Else the delta method over pictures: the variance of the difference is the sum over pictures of the squared
    sums of their rows' influences (van der Vaart, Asymptotic Statistics, 1998, chapter 20).

    Args:
        a: ProtocolAnswers of the first protocol.
        b: Of the second.
        unit: The picture of each row.
    """
    counted = a.weight > 0
    plain = a.stratum is None and b.stratum is None and np.array_equal(a.weight, b.weight)
    if plain and len(np.unique(unit[counted])) == counted.sum() and np.ptp(a.weight[counted]) == 0:
        gap = paired_shares(a.right[counted], b.right[counted])
        p = mcnemar(a.right[counted], b.right[counted]).p
        return ProtocolCost(gap.difference, gap.low, gap.high, p, "McNemar")
    sums = np.bincount(unit, weights=b.influence - a.influence)
    return _by_variance(b.share - a.share, float(sums @ sums), len(np.unique(unit[counted | (b.weight > 0)])))


def unpaired_cost(
    a: ProtocolAnswers, b: ProtocolAnswers, unit_a: Int[np.ndarray, " n"], unit_b: Int[np.ndarray, " m"]
) -> ProtocolCost:
    """Return the difference on other pictures, by the delta method: the variances of both shares add up."""
    sums = [np.bincount(unit, weights=answers.influence) for answers, unit in ((a, unit_a), (b, unit_b))]
    fewest = min(len(np.unique(unit_a)), len(np.unique(unit_b)))
    return _by_variance(b.share - a.share, float(sum(each @ each for each in sums)), fewest)


def _by_variance(difference: float, variance: float, units: int) -> ProtocolCost:
    from scipy.stats import norm

    error = math.sqrt(variance * units / max(units - 1, 1))
    p = float(2 * norm.sf(abs(difference) / error)) if error else float(difference == 0)
    return ProtocolCost(difference, difference - _Z * error, difference + _Z * error, p, "delta method")
