"""Significance tests: two models on the same samples, and groups of runs over seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float

from trainer.analysis.intervals import wilson

DRAWS: Final = 4_000
EXACT: Final = 20_000
"""Up to so many ways to deal out the values every one is tried; above, as many are drawn."""
FEWEST_FLIPS: Final = 6
"""Differences of which a test of their signs can have a p below 0.05: 2 / 2^6 is 0.031."""
MOST_FLIPS: Final = 40
_CELLS: Final = 4_000_000
_FEW: Final = 64
"""Up to so many different paired differences a draw is one multinomial instead of n numbers."""


@dataclass(frozen=True)
class Paired:
    """Model B minus model A on the same samples.

    Attributes:
        difference: Mean of B minus mean of A.
        low, high: 95 % interval of it.
        n: Samples.
    """

    difference: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class McNemar:
    """Samples that only one of two models gets right, and the probability of such a split if both are equal.

    Attributes:
        only_a, only_b: Samples right in A alone and in B alone.
        p: Two-sided, exact (binomial).
    """

    only_a: int
    only_b: int
    p: float


@dataclass(frozen=True)
class Groups:
    """Group B minus group A, with one run per seed.

    Attributes:
        mean_a, mean_b: Means of the groups.
        difference: Mean of B minus mean of A.
        low, high: 95 % interval of the difference (Welch).
        welch: Two-sided p of Welch's t-test; NaN where neither group varies.
        permutation: Two-sided p of the permutation test of the means.
    """

    mean_a: float
    mean_b: float
    difference: float
    low: float
    high: float
    welch: float
    permutation: float


def paired_bootstrap(
    a: Float[np.ndarray, " n"] | Bool[np.ndarray, " n"],
    b: Float[np.ndarray, " n"] | Bool[np.ndarray, " n"],
) -> Paired:
    """Return the percentile bootstrap interval of the mean of `b - a`, paired by sample.

    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13. NaN without samples.

    Raises:
        ValueError: The two have different lengths.
    """
    if len(a) != len(b):
        raise ValueError("paired samples have the same length")
    n = len(a)
    if not n:
        return Paired(math.nan, math.nan, math.nan, 0)
    gap = np.asarray(b, np.float64) - np.asarray(a, np.float64)
    rng = np.random.default_rng(0)
    values, counts = np.unique(gap, return_counts=True)
    if len(values) <= _FEW:
        # How often each value is drawn is all that the mean needs, and that is one multinomial draw.
        means = rng.multinomial(n, counts / n, size=DRAWS) @ values / n
    else:
        at_once = max(1, _CELLS // n)
        parts = [min(at_once, DRAWS - start) for start in range(0, DRAWS, at_once)]
        means = np.concatenate([gap[rng.integers(0, n, (part, n))].mean(axis=1) for part in parts])
    low, high = np.quantile(means, [0.025, 0.975])
    return Paired(float(gap.mean()), float(low), float(high), n)


def paired_difference(
    a: Float[np.ndarray, " n"] | Bool[np.ndarray, " n"],
    b: Float[np.ndarray, " n"] | Bool[np.ndarray, " n"],
) -> Paired:
    """Return the mean of `b - a` with an interval: Newcombe's for correct and wrong answers, else a bootstrap.

    Args:
        a: Answers of model A.
        b: Those of B to the same questions.

    Raises:
        ValueError: The two have different lengths.
    """
    yes_or_no = all(np.asarray(sample).dtype == bool for sample in (a, b))
    return paired_shares(a, b) if yes_or_no else paired_bootstrap(a, b)


def paired_shares(a: Bool[np.ndarray, " n"], b: Bool[np.ndarray, " n"]) -> Paired:
    """Return the difference in accuracy, B minus A, on paired samples with Newcombe's interval; NaN without samples.

    Newcombe, Improved confidence intervals for the difference between binomial proportions based on paired data, 1998,
    method 10: the square-and-add of two Wilson intervals with a corrected correlation. Resampling fails near the
    ceiling, where few samples differ; this keeps a width even where none does.

    Args:
        a: Right answers of model A.
        b: Those of B to the same questions, each of which is there once.

    Raises:
        ValueError: The two have different lengths.
    """
    if len(a) != len(b):
        raise ValueError("paired samples have the same length")
    n = len(a)
    if not n:
        return Paired(math.nan, math.nan, math.nan, 0)
    a, b = np.asarray(a, bool), np.asarray(b, bool)
    both, only_a, only_b, none = (int(x.sum()) for x in (a & b, a & ~b, b & ~a, ~a & ~b))
    share_a, share_b = (both + only_a) / n, (both + only_b) / n
    (low_a, high_a), (low_b, high_b) = wilson(share_a, n), wilson(share_b, n)
    product = both * none - only_a * only_b
    apart = max(product - n / 2, 0.0) if product > 0 else float(product)
    margins = (both + only_a) * (only_b + none) * (both + only_b) * (only_a + none)
    phi = apart / math.sqrt(margins) if margins else 0.0
    gap = share_b - share_a

    def reach(first: float, second: float) -> float:
        return math.sqrt(max(first**2 - 2 * phi * first * second + second**2, 0.0))

    low = gap - reach(share_b - low_b, high_a - share_a)
    return Paired(gap, low, gap + reach(high_b - share_b, share_a - low_a), n)


def mcnemar(a: Bool[np.ndarray, " n"], b: Bool[np.ndarray, " n"]) -> McNemar:
    """Return the exact McNemar test of two models' correct answers to the same questions.

    McNemar, Note on the sampling error of the difference between correlated proportions or percentages, 1947.

    Raises:
        ValueError: The two have different lengths.
    """
    if len(a) != len(b):
        raise ValueError("paired samples have the same length")
    a, b = np.asarray(a, bool), np.asarray(b, bool)
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    if not only_a + only_b:
        return McNemar(0, 0, 1.0)
    from scipy.stats import binom

    p = 2 * float(binom.cdf(min(only_a, only_b), only_a + only_b, 0.5))
    return McNemar(only_a, only_b, min(p, 1.0))


def compare_groups(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " m"]) -> Groups:
    """Return Welch's t-test and the permutation test of the means of two groups of runs.

    Welch, The generalization of Student's problem when several different population variances are involved, 1947.

    Raises:
        ValueError: A group has fewer than 2 runs, or a value is no number.
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if len(a) < 2 or len(b) < 2:
        raise ValueError("a group needs at least 2 runs")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("every value has to be a number")
    gap = float(b.mean() - a.mean())
    low, high, p = _welch(a, b, gap)
    return Groups(float(a.mean()), float(b.mean()), gap, low, high, p, permutation_p(a, b))


def permutation_p(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " m"]) -> float:
    """Return the share of permutations into groups of these sizes whose means differ at least as much.

    Every way is tried where there are at most `EXACT`; else so many are drawn, and the real one counts as one more.
    """
    from scipy.stats import permutation_test

    how: dict[str, Any] = {"n_resamples": EXACT, "alternative": "greater", "vectorized": True, "random_state": 0}
    return float(permutation_test((a, b), lambda x, y, axis: np.abs(y.mean(axis) - x.mean(axis)), **how).pvalue)


def sign_flip_p(differences: Float[np.ndarray, " n"]) -> float:
    """Return the share of all signs of paired differences whose mean is at least as far from 0 as theirs: exact.

    It supposes that differences are symmetric about 0, and no distribution. NaN with fewer than `FEWEST_FLIPS` of them,
    which cannot give less than 0.05, or more than `MOST_FLIPS`. Fisher, The Design of Experiments, 1935, section 21.
    """
    x = np.asarray(differences, np.float64)
    if not FEWEST_FLIPS <= len(x) <= MOST_FLIPS:
        return math.nan
    # Every sum of n signs is one of the first half and one of the second: counted in a sorted half, not listed.
    first, second = (_signed_sums(half) for half in np.array_split(x, 2))
    second.sort()
    # Sums in another order differ in the last digits; such a one is as far away as the real one.
    far = abs(x.sum()) - 4 * len(x) * np.finfo(np.float64).eps * np.abs(x).sum()
    below = np.searchsorted(second, -far - first, side="right")
    above = len(second) - np.searchsorted(second, far - first, side="left")
    return min(1.0, float((below + above).sum()) / 2.0 ** len(x))


def _signed_sums(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " signs"]:
    sums = np.zeros(1)
    for value in x.tolist():
        sums = np.concatenate([sums - value, sums + value])
    return sums


def holm(p_values: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """Return Holm-adjusted p-values, comparable to a single threshold; NaN stays NaN.

    Holm, A simple sequentially rejective multiple test procedure, 1979.
    """
    p = np.asarray(p_values, np.float64)
    adjusted = np.full(len(p), np.nan)
    order = [index for index in np.argsort(p, kind="stable").tolist() if not math.isnan(p[index])]
    reached = 0.0
    for done, index in enumerate(order):
        reached = max(reached, min(1.0, (len(order) - done) * p[index]))
        adjusted[index] = reached
    return adjusted


def _welch(a: np.ndarray, b: np.ndarray, gap: float) -> tuple[float, float, float]:
    from scipy.stats import t

    parts = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    error = math.sqrt(sum(parts))
    if error == 0:
        return gap, gap, math.nan
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (len(a) - 1) + parts[1] ** 2 / (len(b) - 1))
    half = float(t.ppf(0.975, freedom)) * error
    return gap - half, gap + half, float(2 * t.sf(abs(gap) / error, freedom))
