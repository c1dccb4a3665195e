"""Linear projections: principal components, identical on every machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from trainer.analysis.tiles import exact, row_blocks
from trainer.analysis.worker_threads import single_blas_thread


def principal_axes(
    vectors: Float[np.ndarray, "n d"], k: int = 2
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d k"], Float[np.ndarray, " k"]]:
    """Return the mean row, the `k` directions of largest variance as unit columns, and their shares of it.

    The largest entry of every direction is positive: without such a rule the sign is an accident of the LAPACK
    build, and maps of two machines, or of two steps, would be mirrored. Missing directions (k > d) are zero.
    """
    mean, scatter = mean_and_scatter(vectors)
    return mean, *largest_axes(scatter, k)


def mean_and_scatter(vectors: Float[np.ndarray, "n d"]) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
    """Return the mean row, and the sum over the rows of the outer products of what they differ from it."""
    mean = vectors.mean(0, dtype=np.float64)
    d = vectors.shape[1]
    scatter = np.zeros((d, d))
    for rows in row_blocks(len(vectors), d):
        centered = vectors[rows].astype(np.float64) - mean
        scatter += centered.T @ centered
    return mean, scatter


class ScatterSum:
    """The mean and the scatter matrix of rows that come block by block: one pass, nothing of the rows is kept.

    Blocks are centered at the mean of the first one, so that products in float32 lose nothing in a narrow cone; their
    sum is in float64.
    """

    def __init__(self, width: int) -> None:
        """Begin without rows of this width."""
        self.n = 0
        self.origin: Float[np.ndarray, " d"] | None = None  # The mean of the first block.
        # Kept from block to block: the pages of fresh ones took as long as the sums.
        self._centered = np.empty((0, width), np.float32)
        self._product = np.empty((width, width), np.float32)
        self._total, self._products = np.zeros(width), np.zeros((width, width))

    def add(self, block: Float[np.ndarray, "b d"], *, spare: bool = False) -> None:
        """Count in some more rows; spare ones, in float32, may be overwritten."""
        if not len(block):
            return
        if self.origin is None:
            self.origin = block.mean(0, dtype=np.float64).astype(np.float32)
        if len(block) > len(self._centered) and not spare:
            self._centered = np.empty((len(block), len(self.origin)), np.float32)
        out = block if spare else self._centered[: len(block)]
        self.add_centered(np.subtract(block, self.origin, out=out, casting="same_kind"))

    def add_centered(self, centered: Float[np.ndarray, "b d"]) -> None:
        """Count in some more rows, given by what they differ from the origin by."""
        self.n += len(centered)
        # By BLAS: half of the time of numpy's own sums.
        self._total += np.ones(len(centered), np.float32) @ centered
        self._products += np.matmul(centered.T, centered, out=self._product)

    def join(self, other: ScatterSum) -> None:
        """Count in the rows of another sum."""
        if other.origin is None:
            return
        if self.origin is None:
            self.n, self.origin, self._total, self._products = other.n, other.origin, other._total, other._products
            return
        # The other's rows differ from this origin by as much as its origin does, too.
        shift = other.origin.astype(np.float64) - self.origin
        crossed = np.outer(other._total, shift)
        self._products += other._products + crossed + crossed.T + other.n * np.outer(shift, shift)
        self._total += other._total + other.n * shift
        self.n += other.n

    @property
    def is_finite(self) -> bool:
        """Whether every number of the rows is one."""
        return bool(np.isfinite(self._products).all())

    def axes(self, k: int) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d k"], Float[np.ndarray, " k"]]:
        """Return what `principal_axes` returns of all rows."""
        shift = self._total / max(self.n, 1)
        mean = shift if self.origin is None else self.origin + shift
        return mean, *largest_axes(self._products - self.n * np.outer(shift, shift), k)


# BLAS's own threads wait for each other by spinning.
@single_blas_thread
def scatter_of(parts: Sequence[Float[np.ndarray, "_ d"]]) -> ScatterSum:
    """Return mean and scatter of the rows of all parts, read once, block by block."""
    scatter = ScatterSum(parts[0].shape[1])
    for part in parts:
        for rows in row_blocks(*part.shape):
            scatter.add(exact(part[rows]))
    return scatter


def largest_axes(scatter: Float[np.ndarray, "d d"], k: int) -> tuple[Float[np.ndarray, "d k"], Float[np.ndarray, " k"]]:
    """Return a scatter matrix's directions of largest variance and their shares; see `principal_axes`."""
    eigenvalues, eigenvectors = np.linalg.eigh(scatter)
    axes = largest_positive(eigenvectors[:, ::-1][:, :k])
    variances = eigenvalues[::-1][:k].clip(min=0)
    total = eigenvalues.clip(min=0).sum()
    shares = variances / total if total > 0 else np.zeros_like(variances)
    missing = k - axes.shape[1]
    return np.pad(axes, ((0, 0), (0, missing))), np.pad(shares, (0, missing))


def largest_positive(axes: Float[np.ndarray, "d k"]) -> Float[np.ndarray, "d k"]:
    """Return the columns, turned so that the largest entry of each is positive."""
    return axes * np.where(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])] < 0, -1, 1)


def percent(share: float) -> str:
    """Return a share of the variance in words; one axis of hundreds may have less than 1 %."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"


def total_variance(parts: Sequence[Float[np.ndarray, "_ d"]]) -> float:
    """Return the total variance of all rows of the parts, block by block; 0 without rows."""
    n, mean, squares = sum(map(len, parts)), 0.0, 0.0
    for part in parts:
        for rows in row_blocks(len(part), part.shape[1]):
            block = part[rows].astype(np.float64)
            mean, squares = mean + block.sum(0), squares + float((block**2).sum())
    return max(squares / n - float(np.sum(np.square(mean / n))), 0.0) if n else 0.0


def pca(vectors: Float[np.ndarray, "n d"], k: int = 2) -> Float[np.ndarray, "n k"]:
    """Return the rows' coordinates on their `k` principal axes, in float32; the origin is their mean."""
    mean, axes, _ = principal_axes(vectors, k)
    points = np.empty((len(vectors), k), dtype=np.float32)
    for rows in row_blocks(len(vectors), vectors.shape[1]):
        points[rows] = (vectors[rows].astype(np.float64) - mean) @ axes
    return points
