"""Vectors of embeddings: which have a direction, and all brought to unit length."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from trainer.analysis.half_precision import widened


def is_vector(rows: Float[np.ndarray, "k d"]) -> np.ndarray:
    """Return which rows have a direction: finite numbers, not all zero, and a length that float32 holds."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(rows.astype(np.float32), axis=1)
    return np.isfinite(lengths) & (lengths > 0)


def normalized(vectors: Float[np.ndarray, "*any d"]) -> Float[np.ndarray, "*any d"]:
    """Return the vectors, those of the last axis, with length 1; one of zeros stays so."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def checked_unit_rows(
    rows: Float[np.ndarray, "k d"], out: Float[np.ndarray, "k d"] | None = None
) -> tuple[Float[np.ndarray, "k d"], np.ndarray]:
    """Return the rows as float32 of unit length, and which of them have a direction, as `is_vector` says; others are 0.

    Meant for blocks of some thousand rows: one copy of them is made, in `out` if there is one.
    """
    unit = np.empty(rows.shape, np.float32) if out is None else out
    if rows.dtype == np.float16:
        widened(rows, unit)
    else:
        unit[...] = rows
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("kd,kd->k", unit, unit)
        sound = np.isfinite(squares) & (squares > 0)
        unit[~sound] = 0
        if rows.dtype != np.float16:  # whose rows are exact to a thousandth
            squares = np.einsum("kd,kd->k", unit, unit, dtype=np.float64)
        lengths = np.sqrt(squares).astype(np.float32)
    unit /= np.where(sound, lengths, 1)[:, None]
    return unit, sound


def unit_rows(rows: Float[np.ndarray, "k d"]) -> Float[np.ndarray, "k d"]:
    """Return the rows as float32 of unit length."""
    return checked_unit_rows(rows)[0]
