"""In how many directions embeddings vary: the spectrum of their covariance, and what is read off it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.tiles import exact, row_blocks

COLLAPSED_SHARE: Final = 0.1
"""Fewer effective directions than this share of those there could be count as collapsed."""


def covariance_spectrum(
    vectors: Float[np.ndarray, "n d"], progress: Callable[[float, str], None] | None = None
) -> Float[np.ndarray, " d"]:
    """Eigenvalues of the covariance of the rows (divided by n), largest first, none below 0; in float64.

    Block by block: memory is O(d^2), whatever n is.
    """
    n, d = vectors.shape
    mean = np.zeros(d)
    for rows in row_blocks(n, d):
        mean += exact(vectors[rows]).sum(0, dtype=np.float64)
    mean /= max(n, 1)
    scatter = np.zeros((d, d))
    for rows in row_blocks(n, d):
        centerd = vectors[rows].astype(np.float64) - mean
        scatter += centerd.T @ centerd
        if progress:
            progress(rows.stop / n, "Measuring the covariance")
    return np.linalg.eigvalsh(scatter / max(n, 1))[::-1].clip(min=0)


def shares_of(eigenvalues: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
    """Share of the variance in each direction; all 0 without any variance."""
    total = float(eigenvalues.sum())
    return eigenvalues / total if total > np.finfo(np.float64).eps else np.zeros_like(eigenvalues)


def effective_directions(eigenvalues: Float[np.ndarray, " d"], share: float = 0.99) -> int:
    """How many directions, largest first, hold `share` of the variance; 0 without any.

    As `trainer.analysis.geometry.effective_eigenvalues`, of a spectrum that is there already.
    """
    shares = shares_of(eigenvalues)
    return int(np.argmax(np.cumsum(shares) >= share - 1e-12)) + 1 if shares.any() else 0


def effective_rank(eigenvalues: Float[np.ndarray, " d"]) -> float:
    """Exponential of the entropy of the shares of variance: 1 for a line, d where all directions vary alike.

    Roy & Vetterli, The effective rank: a measure of effective dimensionality, 2007. 0 without any variance.
    """
    shares = shares_of(eigenvalues)
    some = shares[shares > 0]
    return float(np.exp(-(some * np.log(some)).sum())) if len(some) else 0.0


def share_in_first(eigenvalues: Float[np.ndarray, " d"], k: int) -> float:
    """Share of the variance in the first `k` directions, in [0, 1]."""
    return float(min(shares_of(eigenvalues)[:k].sum(), 1.0))


def is_collapsed(eigenvalues: Float[np.ndarray, " d"], n: int) -> bool:
    """Whether the rows leave most of the space unused: dimensional collapse.

    True where 99 % of the variance lie in fewer than a tenth of the min(d, n - 1) directions there could be. The
    phenomenon is that of Jing et al., Understanding Dimensional Collapse in Contrastive Self-supervised Learning,
    2022, https://arxiv.org/abs/2110.09348; the bound is ours.
    """
    return effective_directions(eigenvalues) < COLLAPSED_SHARE * min(len(eigenvalues), max(n - 1, 1))
