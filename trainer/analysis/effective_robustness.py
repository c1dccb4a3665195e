"""Effective robustness: how far a model lies above the line of baseline models, with a bootstrap over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float
from msgspec import Struct

DRAWS: Final = 2_000
LEAST_RUNS: Final = 3
_EDGE: Final = 1e-3
"""Shares are kept this far from 0 and 1, where the logit is infinite."""


class RobustnessLine(Struct, frozen=True):
    """A line in logits, logit(shifted) = intercept + slope logit(own), and one for each draw of the bootstrap."""

    intercept: float
    slope: float
    draws: Float[np.ndarray, "draws 2"]

    def at(self, unshifted: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the shifted share that the line expects."""
        return _share(self.intercept + self.slope * logit(unshifted))

    def interval(self, unshifted: Float[np.ndarray, " n"]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Return the 2.5th and 97.5th percentile of what the lines of the draws expect."""
        every = _share(self.draws[:, :1] + self.draws[:, 1:] * logit(unshifted)[None])
        low, high = np.quantile(every, [0.025, 0.975], axis=0)
        return low, high


def logit(share: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return ln(p / (1 - p)), p kept off 0 and 1."""
    clipped = np.clip(np.asarray(share, np.float64), _EDGE, 1 - _EDGE)
    return np.log(clipped / (1 - clipped))


def _share(value: Float[np.ndarray, " *n"]) -> Float[np.ndarray, " *n"]:
    return 1 / (1 + np.exp(-value))


def robustness_line(
    runs: Sequence[tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]],
) -> RobustnessLine | None:
    """Return the line of least squares through all points of the baseline runs; None for fewer than `LEAST_RUNS`.

    Taori et al., Measuring Robustness to Natural Distribution Shifts in Image Classification, 2020,
    https://arxiv.org/abs/2007.00644. The bootstrap draws whole runs, as the points of one run depend on each other.

    Args:
        runs: Of each baseline run the share on its own data and on the shifted data, a point each evaluation.
    """
    if len(runs) < LEAST_RUNS:
        return None
    rng = np.random.default_rng(0)
    drawn = [_fitted([runs[at] for at in rng.integers(len(runs), size=len(runs))]) for _ in range(DRAWS)]
    intercept, slope = _fitted(runs)
    return RobustnessLine(intercept, slope, np.array(drawn))


def _fitted(runs: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
    x, y = (logit(np.concatenate([run[side] for run in runs])) for side in (0, 1))
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread if spread > 0 else 0.0
    return float(y.mean() - slope * x.mean()), slope
