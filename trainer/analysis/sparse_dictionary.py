"""A sparse dictionary over embedding spaces of the same items: a TopK crosscoder, trained with NumPy.

Crosscoder: Lindsey et al., "Sparse Crosscoders for Cross-Layer Features and Model Diffing", 2024,
https://transformer-circuits.pub/2024/crosscoders. TopK activations: Gao et al., "Scaling and evaluating sparse
autoencoders", 2024, https://arxiv.org/abs/2406.04093. TopK rather than an L1 penalty, which would shrink a shared
concept in one space to nothing: Minder et al., 2025, https://arxiv.org/abs/2504.02922.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.progress import Progress
from trainer.analysis.unit_rows import normalized
from trainer.analysis.worker_threads import single_blas_thread

_RATE: Final = 1e-2
_BETA: Final = (0.9, 0.999)
_EPSILON: Final = 1e-8
_LAST: Final = 0.3
"""Share of the steps in which the learning rate falls to 0."""
_REVIVED: Final = 0.6
"""Share of the steps in which concepts that are never active are begun anew."""
_REVIVALS: Final = 8
_RIDGE: Final = 1e-3
"""Of the least squares in the end, as a part of a concept's mean square."""
_ROWS_AT_ONCE: Final = 2_048

Codes = Float[np.ndarray, "n m"]


@dataclass(frozen=True)
class SparseDictionary:
    """Concepts: directions in all spaces, of which each row has at most `active`."""

    encoder: Float[np.ndarray, "d m"]  # A column a concept.
    bias: Float[np.ndarray, " m"]  # Of each concept before the selection.
    decoder: Float[np.ndarray, "m d"]  # A row a concept: its direction in the first space, then those in the others.
    offset: Float[np.ndarray, " d"]  # What a row without concepts is.
    widths: tuple[int, ...]  # Of the spaces.
    active: int  # Concepts of a row at most.

    def codes(self, rows: Float[np.ndarray, "n d"]) -> Codes:
        """Return how strongly each row has each concept; 0 for all but its `active` strongest."""
        parts = [rows[start : start + _ROWS_AT_ONCE] for start in range(0, len(rows), _ROWS_AT_ONCE)]
        blocks = [strongest(part @ self.encoder + self.bias, self.active) for part in parts]
        return np.concatenate(blocks) if blocks else np.zeros((0, self.decoder.shape[0]), np.float32)

    def rebuilt(self, codes: Codes) -> Float[np.ndarray, "n d"]:
        """Return the rows that these codes stand for."""
        return codes @ self.decoder + self.offset

    def shares(self) -> Float[np.ndarray, "m spaces"]:
        """Return each concept's part in each space; rows sum to 1, and 1 is in this space only.

        ||d_s|| / sum_t ||d_t||, the relative decoder norm of Lindsey et al.
        """
        parts = np.split(self.decoder, np.cumsum(self.widths)[:-1], axis=1)
        norms = np.stack([np.linalg.norm(part, axis=1) for part in parts], axis=1)
        return norms / np.maximum(norms.sum(axis=1, keepdims=True), 1e-12)


def strongest(values: Float[np.ndarray, "n m"], active: int) -> Codes:
    """Return the `active` largest positive values of each row, and 0 elsewhere; of equal ones the first."""
    positive = np.maximum(values, 0)
    if active >= positive.shape[1]:
        return positive
    least = np.partition(positive, -active, axis=1)[:, -active, None]
    above, level = positive > least, (positive == least) & (positive > 0)
    room = active - above.sum(axis=1, keepdims=True)
    return np.where(above | (level & (np.cumsum(level, axis=1) <= room)), positive, 0)


Weights = tuple[Float[np.ndarray, "d m"], Float[np.ndarray, " m"], Float[np.ndarray, "m d"], Float[np.ndarray, " d"]]
"""Encoder, bias, decoder, offset."""


def gradients(rows: Float[np.ndarray, "n d"], weights: Weights, active: int) -> tuple[float, Weights, Codes]:
    """Return the loss, its gradients by encoder, bias, decoder and offset, and the codes.

    Loss: mean over rows of ||x - f(x) D - o||^2, with f the `active` largest of ReLU((x - o) E + b).
    """
    encoder, bias, decoder, offset = weights
    centered = rows - offset
    codes = strongest(centered @ encoder + bias, active)
    error = codes @ decoder - centered
    loss = float(np.einsum("nd,nd->", error, error) / len(rows))
    error *= 2 / len(rows)
    back = (error @ decoder.T) * (codes > 0)
    by_bias = back.sum(axis=0)
    by_offset = error.sum(axis=0) - encoder @ by_bias
    return loss, (centered.T @ back, by_bias, codes.T @ error, by_offset), codes


@single_blas_thread
def fit(
    rows: Float[np.ndarray, "n d"],
    *,
    widths: tuple[int, ...],
    concepts: int,
    active: int,
    steps: int = 800,
    batch: int = 512,
    seed: int = 0,
    progress: Progress = lambda _share, _note: None,
) -> SparseDictionary:
    """Return a dictionary of the rows, by Adam; the same for the same seed, up to the last digits of the BLAS library.

    By one thread of the BLAS library: at products as small as a batch, several wait more than they save.

    Concepts that no row of the last steps had begin anew at rows that are rebuilt badly. In the end decoder and offset
    are fitted to the codes by least squares: where every row has equally many concepts, the same vector could be added
    to all directions and taken off the offset, and two seeds would end at different ones.

    Args:
        rows: The spaces side by side, centered, of comparable lengths.
        widths: Of the spaces.
        active: Concepts of a row at most.
        steps: Updates.
        batch: Rows of an update.
        seed: Decides the beginning and the order.
    """
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    rng = np.random.default_rng(seed)
    # Weights of a dictionary begin at data, and the encoder at the decoder: fewer concepts are never active.
    begun = rows[rng.choice(len(rows), concepts, replace=len(rows) < concepts)]
    decoder = normalized(begun + 0.01 * rng.standard_normal(begun.shape, dtype=np.float32))
    zeros = (np.zeros(concepts, np.float32), np.zeros(rows.shape[1], np.float32))
    weights = (np.ascontiguousarray(decoder.T), zeros[0], decoder, zeros[1])
    moments = [(np.zeros_like(weight_array), np.zeros_like(weight_array)) for weight_array in weights]
    seen = np.zeros(concepts, np.int64)
    every = max(1, int(steps * _REVIVED / _REVIVALS))
    for step in range(steps):
        if step % 20 == 0:
            progress(step / steps, "Training the dictionary")
        some = rows[rng.integers(len(rows), size=min(batch, len(rows)))]
        _, slopes, codes = gradients(some, weights, active)
        seen += (codes > 0).sum(axis=0)
        rate = _RATE * min(1.0, (steps - step) / (steps * _LAST))
        for weight, gradient, (first, second) in zip(weights, slopes, moments, strict=True):
            _adam(weight, gradient, first, second, rate, step + 1)
        weights[2][:] = normalized(weights[2])
        if (step + 1) % every == 0 and step + 1 <= steps * _REVIVED:
            _revive(np.flatnonzero(seen == 0), some, codes, weights, moments, rng)
            seen[:] = 0
    progress(1.0, "Trained")
    return _refit(rows, weights, widths, active)


def _refit(rows: Float[np.ndarray, "n d"], weights: Weights, widths: tuple[int, ...], active: int) -> SparseDictionary:
    """Return the dictionary with the decoder of least squares for its codes, the smallest of equally good ones."""
    encoder, bias, _, offset = weights
    bias = bias - offset @ encoder
    dictionary = SparseDictionary(encoder, bias, weights[2], offset, widths, active)
    codes = np.float64(dictionary.codes(rows))
    mean, middle = codes.mean(axis=0), rows.mean(axis=0, dtype=np.float64)
    codes -= mean
    gram = codes.T @ codes
    gram[np.diag_indices_from(gram)] += max(_RIDGE * np.trace(gram) / len(gram), 1e-12)
    decoder = np.linalg.solve(gram, codes.T @ (rows - middle))
    offset = (middle - mean @ decoder).astype(np.float32)
    return replace(dictionary, decoder=decoder.astype(np.float32), offset=offset)


def matched(
    decoder: Float[np.ndarray, "m d"], other: Float[np.ndarray, "k d"]
) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Return each concept's counterpart in another dictionary, one to one, and the cosine of the two.

    The assignment has the largest sum of cosines; a concept without a counterpart has -1 and cosine 0.
    """
    from scipy.optimize import linear_sum_assignment

    cosines = normalized(decoder).astype(np.float64) @ normalized(other).astype(np.float64).T
    mine, theirs = linear_sum_assignment(-cosines)
    counterpart, values = np.full(len(decoder), -1), np.zeros(len(decoder))
    counterpart[mine], values[mine] = theirs, cosines[mine, theirs]
    return counterpart, values


def explained(rows: Float[np.ndarray, "n d"], rebuilt: Float[np.ndarray, "n d"]) -> float:
    """Return the explained variance of centered rows: 1 - sum ||x - x'||^2 / sum ||x||^2."""
    exact = np.asarray(rows, np.float64)
    total = float((exact**2).sum())
    return 1 - float(((exact - rebuilt) ** 2).sum()) / total if total else float("nan")


def principal(rows: Float[np.ndarray, "n d"], count: int) -> Float[np.ndarray, "count d"]:
    """Return the first principal directions of centered rows, as orthonormal rows."""
    exact = np.asarray(rows, np.float64)
    _, vectors = np.linalg.eigh(exact.T @ exact)
    return vectors[:, ::-1][:, :count].T


def _adam(
    weight: np.ndarray, gradient: np.ndarray, first: np.ndarray, second: np.ndarray, rate: float, step: int
) -> None:
    """Update a weight in place (Kingma and Ba, 2015, algorithm 1)."""
    first += (1 - _BETA[0]) * (gradient - first)
    second += (1 - _BETA[1]) * (gradient * gradient - second)
    scale = rate * (1 - _BETA[1] ** step) ** 0.5 / (1 - _BETA[0] ** step)
    weight -= scale * first / (np.sqrt(second) + _EPSILON)


def _revive(
    dead: Int[np.ndarray, " k"],
    rows: np.ndarray,
    codes: np.ndarray,
    weights: Weights,
    moments: list[tuple[np.ndarray, np.ndarray]],
    rng: np.random.Generator,
) -> None:
    """Restart dead concepts at residuals of rows, drawn in proportion to their size."""
    if not len(dead):
        return
    left = rows - codes @ weights[2] - weights[3]
    chance = np.float64((left**2).sum(axis=1))
    if not chance.sum() > 0:
        return
    fresh = normalized(left[rng.choice(len(rows), len(dead), p=chance / chance.sum())])
    weights[0][:, dead], weights[1][dead], weights[2][dead] = fresh.T, 0, fresh
    for index, parts in enumerate(moments[:3]):
        for part in parts:
            part[(slice(None), dead) if index == 0 else dead] = 0
