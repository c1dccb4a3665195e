"""Repeated confidence intervals of a mean over seeds: all looks at a budget that was declared beforehand hold together.

After n values the interval is mean ± c s / sqrt(n), where c is the quantile of Student's t at one nominal level for
every look, and that level is the one at which the true mean is outside of any interval with probability alpha: the
repeated confidence intervals of Jennison and Turnbull, Interim analyses: the repeated confidence interval approach,
Journal of the Royal Statistical Society B 51, 1989, with exact t boundaries. Whatever rule stops within the budget is
covered. With a single look the interval is Student's. A budget without an end has the confidence sequence of
`anytime_valid` in its place.

The level is computed and not simulated. For values around 0 let r be the cosine of the angle between (x1 ... xn) and
(1 ... 1), so that t = r sqrt((n - 1) / (1 - r²)). The direction of a normal vector is independent of its length, so the
next value takes a share sin(phi) of the new direction that is independent of all earlier ones, with density
proportional to cos(phi)^(n - 1), and

    r' = (sqrt(n) r cos(phi) + sin(phi)) / sqrt(n + 1).

The cosines are therefore a Markov chain on one line, and the probability to cross no boundary is integrated over it
from the last look to the first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis import anytime_valid
from trainer.analysis.anytime_valid import Interval

CELLS: Final = 150
"""Of the angle of r; four times as many change the level of 3 to 10 values by 1e-3 of it, that of 3 to 100 by 1 %."""
RARE: Final = 1e-4
"""A two-sided p; cosines of rarer ones are told apart less finely."""
FEWEST: Final = 2
"""Values that have a deviation."""
OPEN: Final = 0
"""As `most`: the budget has no end."""


def crossing(nominal: float, least: int, most: int) -> float:
    """Return the probability that t tests of a true mean have a p of `nominal` or less at any of the looks.

    Args:
        nominal: Two-sided level of each look.
        least: Values at the first look.
        most: Values at the last one; there is a look at every number between them.
    """
    first = max(least, FEWEST)
    if most < first or nominal <= 0:
        return 0.0
    from scipy.special import stdtr

    edges = _edges(most)
    inside = np.ones(len(edges))
    for n, within in zip(range(most - 1, first - 1, -1), reversed(_transitions(first, most)), strict=True):
        ends, values = _cut(edges, inside, _cosine(nominal, n + 1))
        edges = _edges(n)
        shares = np.column_stack([within[:, : len(ends) - 1], _within(edges, ends[-1], n)])
        inside = np.diff(shares, axis=1) @ (values[1:] + values[:-1]) / 2
    ends, values = _cut(edges, inside, _cosine(nominal, first))
    with np.errstate(divide="ignore"):  # the bound of a p near 0 is 1 as printed by float64
        share = 2 * stdtr(first - 1, ends * np.sqrt((first - 1) / (1 - ends**2))) - 1
    return 1.0 - float(np.diff(share) @ (values[1:] + values[:-1]) / 2)


@lru_cache(maxsize=256)
def nominal_level(alpha: float, least: int, most: int) -> float:
    """Return the two-sided level of each look at which the probability that any rejects a true mean is alpha.

    Alpha itself where there is one look, and with fewer than two values.
    """
    if most <= max(least, FEWEST):
        return alpha
    from scipy.optimize import brentq

    looks = most - max(least, FEWEST) + 1
    log = brentq(
        lambda x: np.log(crossing(float(np.exp(x)), least, most) / alpha), np.log(alpha / looks), np.log(alpha)
    )
    return float(np.exp(log))


def critical_t(n: int, alpha: float, least: int, most: int) -> float:
    """Return c of the interval mean ± c s / sqrt(n) after n values; infinite where there is no look.

    Args:
        n: Values.
        alpha: Probability that the mean is outside of any of the intervals.
        least: Values at the first look.
        most: Values at the last; `OPEN`: there is no last one.
    """
    if n < max(least, FEWEST) or (most != OPEN and n > most):
        return float("inf")
    if most == OPEN:
        return anytime_valid.critical_t(n, alpha)
    from scipy.stats import t

    return float(t.isf(nominal_level(alpha, least, most) / 2, n - 1))


def interval(
    values: Float[np.ndarray, " n"],
    alpha: float,
    least: int,
    most: int,
    *,
    resolution: float = 0.0,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Interval:
    """Return the mean with its interval, which holds together with those of all other looks at 1 - alpha.

    Args:
        values: Of the seeds so far.
        alpha: As of `critical_t`, as are `least` and `most`.
        least: Values at the first look.
        most: Values at the last, or `OPEN`.
        resolution: Smallest step of a measured value, such as 1/n of a share of n samples. The deviation counts as
            this at least: equal numbers of right answers are not a spread of 0. It only widens the interval.
        bounds: What the mean can be at all; the interval is cut there, but where it lies outside of them.
    """
    x = np.asarray(values, np.float64)
    if not len(x):
        return Interval(float("nan"), float("-inf"), float("inf"), 0)
    c, mean = critical_t(len(x), alpha, least, most), float(x.mean())
    half = c * _error(x, resolution) if np.isfinite(c) else np.inf
    if not np.isfinite(half):
        return Interval(mean, float("-inf"), float("inf"), len(x))
    return Interval(mean, max(mean - half, bounds[0]), min(mean + half, bounds[1]), len(x))


def p_value(values: Float[np.ndarray, " n"], least: int, most: int, *, resolution: float = 0.0) -> float:
    """Return the repeated p of a mean of 0: the least alpha at which the interval after these values excludes it.

    It may be looked at after each value of the budget. 1 before the first look; NaN without a value. Of an open budget
    it is the anytime-valid p. The arguments are those of `interval`.
    """
    x = np.asarray(values, np.float64)
    if most == OPEN or not len(x):
        return anytime_valid.p_value(x)
    if not max(least, FEWEST) <= len(x) <= most:
        return 1.0
    error = _error(x, resolution)
    if error == 0:
        return 1.0 if x.mean() == 0 else 0.0
    from scipy.stats import t

    return min(1.0, crossing(float(2 * t.sf(abs(x.mean()) / error, len(x) - 1)), least, most))


def _error(x: Float[np.ndarray, " n"], resolution: float) -> float:
    """Return the standard error of the mean; of equal values exactly 0."""
    return max(float((x - x[0]).std(ddof=1)), resolution) / float(np.sqrt(len(x)))


@lru_cache(maxsize=256)
def _edges(n: int) -> Float[np.ndarray, " cells"]:
    """Return cosines from 0 to 1, most of them below that of a p of `RARE`."""
    rare = np.arcsin(_cosine(RARE, n))
    outside = np.linspace(rare, np.pi / 2, CELLS // 10 + 1)[1:]
    return np.sin(np.concatenate([np.linspace(0, rare, CELLS + 1), outside]))


def _cosine(nominal: float, n: int) -> float:
    """Return the cosine at which a t test of n values has this p."""
    from scipy.stats import t

    bound = float(t.isf(nominal / 2, n - 1))
    return bound / float(np.sqrt(bound**2 + n - 1))


def _cut(edges: np.ndarray, inside: np.ndarray, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges below a bound and the bound itself, with the probabilities there."""
    ends = np.append(edges[edges < bound], bound)
    return ends, np.interp(ends, edges, inside)


@lru_cache(maxsize=4)
def _transitions(first: int, most: int) -> tuple[Float[np.ndarray, "cells cells"], ...]:
    """Return for each n the probability that |r| of n + 1 values is at most an edge (columns), given r of n (rows)."""
    return tuple(_within(_edges(n)[:, None], _edges(n + 1)[None, :], n) for n in range(first, most))


def _within(r: np.ndarray, bound: np.ndarray | float, n: int) -> np.ndarray:
    """Return P(|r'| <= bound | r) for r >= 0, where r' is the cosine of one value more than r.

    r' = A sin(phi + delta) / sqrt(n + 1), where A² = n r² + 1 and tan(delta) = sqrt(n) r.
    """
    from scipy.special import stdtr

    def below(phi: np.ndarray) -> np.ndarray:
        # sin(phi) is a coordinate of a random direction in n + 1 dimensions.
        return stdtr(n, np.sqrt(n) * np.tan(np.clip(phi, -np.pi / 2, np.pi / 2)))

    delta = np.arctan(np.sqrt(n) * r)
    angle = np.arcsin(np.minimum(bound * np.sqrt((n + 1) / (n * r**2 + 1)), 1.0))
    # Near the largest r' of the arc one interval; where the new value overwhelms all earlier ones, a second one.
    return below(angle - delta) - below(-angle - delta) + 1.0 - below(np.pi - angle - delta)
