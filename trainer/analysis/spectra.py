"""The covariance spectrum of embeddings, and measures of dimension derived from it."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiles import exact, row_blocks

COLLAPSED_SHARE: Final = 0.1
"""Fewer effective directions than this share of those there could be count as collapsed."""
_ROUNDING: Final = (64 * np.finfo(np.float64).eps) ** 2
"""Variance that equal rows are left with by rounding, at most, as a share of their squared mean."""


def covariance_spectrum(vectors: Float[np.ndarray, "n d"], progress: Progress = silent) -> Float[np.ndarray, " d"]:
    """Return the covariance eigenvalues (divided by n) in descending order, none below 0; in float64.

    All are 0 where no more is left than rounding leaves of equal rows. Block by block: memory is O(d^2), whatever n is.
    """
    n, d = vectors.shape
    mean = np.zeros(d)
    for rows in row_blocks(n, d):
        mean += exact(vectors[rows]).sum(0, dtype=np.float64)
    mean /= max(n, 1)
    scatter = np.zeros((d, d))
    for rows in row_blocks(n, d):
        centered = vectors[rows].astype(np.float64) - mean
        scatter += centered.T @ centered
        progress(rows.stop / n, "Measuring the covariance")
    eigenvalues = np.linalg.eigvalsh(scatter / max(n, 1))[::-1].clip(min=0)
    return eigenvalues if eigenvalues.sum() > _ROUNDING * float(mean @ mean) else np.zeros_like(eigenvalues)


def shares_of(eigenvalues: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
    """Return the share of variance in each direction; all 0 without variance."""
    total = float(eigenvalues.sum())
    return eigenvalues / total if total > 0 else np.zeros_like(eigenvalues)


def effective_directions(eigenvalues: Float[np.ndarray, " d"], share: float = 0.99) -> int:
    """Return the number of leading directions that hold `share` of the variance; 0 without variance.

    The measure of the CLOOB blog (Fuerst et al., 2022, https://arxiv.org/abs/2110.11316).
    """
    shares = shares_of(eigenvalues)
    # The running sum may end a rounding below 1; the tolerance keeps the answer at most d.
    return int(np.argmax(np.cumsum(shares) >= share - 1e-12)) + 1 if shares.any() else 0


def effective_rank(eigenvalues: Float[np.ndarray, " d"]) -> float:
    """Return the exponential of the entropy of the variance shares: 1 for a line, d for an isotropic cloud.

    Roy & Vetterli, The effective rank: a measure of effective dimensionality, 2007. 0 without any variance.
    """
    shares = shares_of(eigenvalues)
    some = shares[shares > 0]
    return float(np.exp(-(some * np.log(some)).sum())) if len(some) else 0.0


def share_in_first(eigenvalues: Float[np.ndarray, " d"], k: int) -> float:
    """Return the share of variance in the first `k` directions, in [0, 1]."""
    return float(min(shares_of(eigenvalues)[:k].sum(), 1.0))


def share_along_first(vectors: Float[np.ndarray, "n d"], points: Float[np.ndarray, "m d"], k: int) -> float:
    """Return the share of the squared length of `vectors` along the first `k` principal directions of `points`.

    About `k / d` for vectors without a preferred direction; NaN where all of them are 0.
    """
    centered = np.asarray(points, np.float64) - np.mean(points, axis=0, dtype=np.float64)
    first = np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, :k]
    vectors = np.asarray(vectors, np.float64)
    total = float((vectors**2).sum())
    return float(((vectors @ first) ** 2).sum() / total) if total > 0 else float("nan")


def is_collapsed(eigenvalues: Float[np.ndarray, " d"], n: int) -> bool:
    """Return whether the rows leave most of the space unused: dimensional collapse.

    True where 99 % of the variance lie in fewer than a tenth of the min(d, n - 1) directions there could be. The
    phenomenon is that of Jing et al., Understanding Dimensional Collapse in Contrastive Self-supervised Learning,
    2022, https://arxiv.org/abs/2110.09348; the bound is ours.
    """
    return effective_directions(eigenvalues) < COLLAPSED_SHARE * min(len(eigenvalues), max(n - 1, 1))
