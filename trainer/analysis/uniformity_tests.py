"""Tests of uniformity on the sphere, with p-values, and the pairwise angles they use."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.geometry import weighted_sum
from trainer.analysis.lru_cache import LruCache
from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiles import exact, row_blocks

_NULLS: Final = LruCache[tuple[int, int, int, int], np.ndarray](32)
# Simulating is the slow part of a test, and the same n and d are asked for at every step.


def pair_sums(
    vectors: Float[np.ndarray, "n d"],
    *,
    bins: int = 180,
    progress: Progress = silent,
    by_row: Float[np.ndarray, " n"] | None = None,
) -> tuple[float, float, Int[np.ndarray, " bins"]]:
    """Return the sum of pairwise angles (radians), the sum of their sines, and a histogram over 0 to pi.

    One pass, block by block; rows are taken as directions, whatever their length. To `by_row` the angles of each row
    with all others are added.
    """
    unit = exact(vectors)
    unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    n, angles, sines, counts = len(unit), 0.0, 0.0, np.zeros(bins, np.int64)
    for rows in row_blocks(n, n):
        progress(rows.start / n, "measuring angles")
        # Only the columns from the block on: each pair is met once, but for the square on the diagonal.
        cosines = np.clip(unit[rows] @ unit[rows.start :].T, -1, 1)
        angle = np.arccos(cosines)
        seen = np.arange(n - rows.start)[None, :] > np.arange(len(angle))[:, None]
        if by_row is not None:
            upper = np.where(seen, angle, 0)
            by_row[rows] += upper.sum(axis=1, dtype=np.float64)
            by_row[rows.start :] += upper.sum(axis=0, dtype=np.float64)
        angle = angle[seen]
        angles += float(angle.sum(dtype=np.float64))
        sines += float(np.sin(angle).sum(dtype=np.float64))
        counts += np.bincount(np.minimum((angle * (bins / np.pi)).astype(np.int64), bins - 1), minlength=bins)
    return angles, sines, counts


def ajne_of(angles: float, n: int) -> float:
    """Return Ajne's statistic of `n` rows from the sum of pairwise angles; see `trainer.analysis.geometry.ajne`."""
    return n / 4 - angles / (n * math.pi) if n else float("nan")


def gine_of(sines: float, n: int, d: int) -> float:
    """Return Gine's G of `n` rows in `d` dimensions from the sum of pairwise sines: about .5 if uniform, n/2 if equal.

    G = n/2 - (d - 1)/(2n) (Gamma((d - 1)/2) / Gamma(d/2))^2 (sum of sines). It sees what Ajne's statistic is blind to,
    a lack of uniformity that is symmetric about the origin, and is blind to the rest. Gine, Invariant tests for
    uniformity on compact Riemannian manifolds based on Sobolev norms, 1975; Prentice, 1978, for any d.
    """
    if not n or d < 2:
        return float("nan")
    factor = (d - 1) / 2 * math.exp(2 * (math.lgamma((d - 1) / 2) - math.lgamma(d / 2)))
    return n / 2 - factor * sines / n


def mean_angle(ajne: float, n: int) -> float:
    """Return the mean pairwise angle of `n` rows in degrees from Ajne's statistic: 90 if uniform, for any n."""
    return float("nan") if n < 2 else 360 * (n / 4 - ajne) / (n - 1)


def mean_resultant_length(vectors: Float[np.ndarray, "n d"], rows: Int[np.ndarray, " r"] | None = None) -> float:
    """Return the length of the mean of all rows, or of some: 0 balanced, 1 all equal, `n ** -.5` if uniform."""
    n = len(vectors) if rows is None else len(rows)
    return float(np.linalg.norm(weighted_sum(vectors, rows))) / n if n else float("nan")


def sphere_angle_density(angle: Float[np.ndarray, " m"], d: int) -> Float[np.ndarray, " m"]:
    """Return the density per radian of the angle between uniform directions in `d` dimensions: sin^(d-2), normalized.

    Its integral over 0 to pi is 1. Cai, Fan & Jiang, Distributions of angles in random packing on spheres, 2013.
    """
    log_scale = math.lgamma(d / 2) - math.lgamma((d - 1) / 2) - math.log(math.pi) / 2
    with np.errstate(divide="ignore"):
        logs = (d - 2) * np.log(np.sin(np.asarray(angle, np.float64)).clip(0)) if d > 2 else np.zeros(np.shape(angle))
    return np.exp(log_scale + logs)


def null_statistics(
    n: int, d: int, *, draws: int = 199, seed: int = 0, progress: Progress = silent
) -> Float[np.ndarray, "draws 2"]:
    """Return Ajne's and Gine's statistics of `draws` samples of `n` uniform directions in `d` dimensions."""
    return _NULLS.obtain((n, d, draws, seed), lambda: _null(n, d, draws, seed, progress)).copy()


def p_value(statistic: float, null: Float[np.ndarray, " draws"]) -> float:
    """Return the p-value under uniformity: (1 + number of null statistics as large) / (1 + draws); NaN for NaN.

    Never 0: with 199 draws the least is .005. Davison & Hinkley, Bootstrap Methods, 1997, equation 4.11.
    """
    return float("nan") if math.isnan(statistic) else (1 + int((null >= statistic).sum())) / (1 + len(null))


def _null(n: int, d: int, draws: int, seed: int, progress: Progress) -> np.ndarray:
    rng = np.random.default_rng(seed)
    statistics = np.empty((draws, 2))
    for draw in range(draws):
        progress(draw / draws, "simulating uniform directions")
        angles, sines, _ = pair_sums(rng.standard_normal((n, d), dtype=np.float32))
        statistics[draw] = ajne_of(angles, n), gine_of(sines, n, d)
    return statistics
