"""Rows in blocks: how the analyses compare everything with everything in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.progress import Progress

CELLS: Final = 4_000_000
"""Most cells of a similarity block: 16 MiB in float32, small enough to stay near the caches."""


def row_blocks(rows: int, columns: int, *, cells: int = CELLS) -> Iterator[slice]:
    """Consecutive slices that cover `rows` once, each so short that a block of `columns` has at most `cells` cells."""
    height = max(1, cells // max(columns, 1))
    for start in range(0, rows, height):
        yield slice(start, min(start + height, rows))


def part_of(progress: Progress | None, place: int, parts: int) -> Progress | None:
    """What part `place` of `parts` equal ones tells its progress to."""
    return (lambda share, note: progress((place + share) / parts, note)) if progress else None


def exact(vectors: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """The same rows in float32 or float64, whatever a snapshot stored them as.

    Half precision would lose the third digit of a cosine, and numpy multiplies float16 matrices without BLAS.
    """
    return np.asarray(vectors, dtype=np.result_type(vectors.dtype, np.float32))
