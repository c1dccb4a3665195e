"""Tests of a mean difference over seeds that stay valid however often one looks: e-values and confidence sequences.

The differences of two arms on the same seeds are taken as draws of one normal distribution of unknown variance. The
e-value is the scale-invariant mixture of Wang and Ramdas, Anytime-valid t-tests and confidence sequences for Gaussian
means with unknown variance, 2023 (arXiv:2310.03722): the standardized mean gets a normal prior, the deviation the right
Haar prior. It is a test martingale, so that by Ville's inequality it ever reaches 1/alpha with probability alpha at
most; the confidence sequence is all means that it has not rejected. No number of seeds has to be fixed beforehand.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from jaxtyping import Float
from msgspec import Struct

EFFECT: Final = 5.5
"""Standard deviation of the prior of the mean in deviations, about the one with the lowest threshold of three seeds.

A larger one decides earlier where effects are large, a smaller one where they are small; the error rate is the same."""

Decision = Literal["better", "worse", "equal", "undecided"]
"""What an interval of arm minus control says, 0 and the margin being given."""


class Interval(Struct, frozen=True):
    """The mean of paired differences, with the confidence sequence at their number.

    Attributes:
        mean: Of the differences; NaN without one.
        low, high: Ends; infinite where so few seeds exclude nothing.
        n: Differences.
    """

    mean: float
    low: float
    high: float
    n: int


def log_e_values(
    differences: Float[np.ndarray, "*shape n"], *, effect: float = EFFECT
) -> Float[np.ndarray, "*shape n"]:
    """Return the logarithm of the e-value against a mean of 0 after each difference; 0 after the first.

    With c = 1 / effect, S the sum and V the sum of squares of the first n differences (Wang and Ramdas, 2023):
    sqrt(c² / (n + c²)) (V / (V - S² / (n + c²)))^(n / 2).

    Args:
        differences: Along the last axis, in the order in which they became known.
        effect: Deviation of the prior of the mean in deviations.
    """
    x = np.asarray(differences, np.float64)
    n, prior = np.arange(1, x.shape[-1] + 1), effect**-2
    total, squares = np.cumsum(x, axis=-1), np.cumsum(x * x, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        explained = np.where(squares > 0, total**2 / squares / (n + prior), 0.0)
    return 0.5 * np.log(prior / (n + prior)) * (squares > 0) - 0.5 * n * np.log1p(-explained)


def critical_t(n: int, alpha: float, *, effect: float = EFFECT) -> float:
    """Return the t statistic at which the e-value of n differences is 1/alpha; infinite if it cannot be.

    The fixed-sample t-test has a smaller one, which is only valid at a single look.
    """
    if n < 2:
        return float("inf")
    prior = effect**-2
    share = (n + prior) * -np.expm1(2 / n * (np.log(alpha) + 0.5 * np.log(prior / (n + prior))))
    return float(np.sqrt(share * (n - 1) / (n - share))) if share < n else float("inf")


def p_value(differences: Float[np.ndarray, " n"], *, effect: float = EFFECT) -> float:
    """Return the anytime-valid p of a mean of 0: 1 over the largest e-value so far, at most 1; NaN without one.

    It may be looked at after each seed; of what is stopped early, that of a fixed-sample test may not.
    """
    if not len(differences):
        return float("nan")
    return float(np.exp(-max(0.0, float(log_e_values(differences, effect=effect).max()))))


def decide(low: float, high: float, margin: float) -> Decision:
    """Return what an interval of arm minus control says; larger is better.

    Equal: it lies within the margin on both sides (two one-sided tests at once). An interval on one side of 0 says so,
    even within the margin.

    Args:
        low: Of the interval.
        high: Of the interval.
        margin: Differences below this count as none; 0: nothing is ever equal.
    """
    if low > 0:
        return "better"
    if high < 0:
        return "worse"
    return "equal" if -margin < low and high < margin else "undecided"
