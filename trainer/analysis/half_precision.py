"""Rows in half precision made single, brought to unit length and multiplied: many of them by compiled kernels."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
from jaxtyping import Bool, Float16, Float32

from trainer.analysis.compiled import compiled

COMPILED_FROM: Final = 2**23
"""Numbers at once from which on the kernels are used.

Numpy takes some 15 ms for so many; loading the kernels, once a process, most of a second.
"""
COMPILED_AFTER: Final = 2**26
"""Numbers in smaller pieces after which a process loads the kernels: numpy has taken a tenth of a second for them."""
KERNELS: Final = "trainer.analysis.half_kernels"
_UP: Final = np.float32(2.0**112)
"""By which a half, its bits moved to where single precision has them, is too small."""


def widened(
    half: Float16[np.ndarray, "*any"], out: Float32[np.ndarray, "*any"] | None = None
) -> Float32[np.ndarray, "*any"]:
    """Return the numbers in single precision, copied, into `out` if there is one."""
    single = np.empty(half.shape, np.float32) if out is None else out
    if not _pays(half.size):
        single[...] = half
        return single
    half = np.ascontiguousarray(half)
    compiled(KERNELS).widen(half.view(np.uint16).reshape(-1), single.view(np.int32).reshape(-1), single.reshape(-1))
    return single


def stored_unit_rows(
    half: Float16[np.ndarray, "k d"],
    origin: Float32[np.ndarray, " d"],
    stored: Float16[np.ndarray, "k d"],
    centered: Float32[np.ndarray, "k d"],
) -> Bool[np.ndarray, " k"]:
    """Return which rows have a direction, and fill `stored` with them at unit length, rounded as numpy does.

    Args:
        half: The rows; each is read once.
        origin: Subtracted from the unit rows in single precision, which fill `centered`.
    """
    sound = np.empty(len(half), bool)
    half = np.ascontiguousarray(half)
    compiled(KERNELS).unit_rows(half.view(np.uint16), origin, sound, stored.view(np.uint16), centered)
    return sound


def coordinates(
    half: Float16[np.ndarray, "n d"], axes: Float32[np.ndarray, "d k"], origin: Float32[np.ndarray, " k"]
) -> Float32[np.ndarray, "n k"]:
    """Return the products of the rows, brought to unit length, with all axes, less those of the origin.

    A row that holds infinity or NaN has NaN.
    """
    points = np.empty((len(half), len(origin)), np.float32)
    half, lines = np.ascontiguousarray(half), np.ascontiguousarray(axes.T)
    compiled(KERNELS).coordinates(half.view(np.uint16), lines, origin, points)
    return points


def products(stored: Float16[np.ndarray, "n d"], query: Float32[np.ndarray, " d"]) -> Float32[np.ndarray, " n"]:
    """Return the inner product of each row with a query of numbers below 2^15; nothing of the rows is written.

    A row that holds infinity or NaN has NaN. Sums depend in their last digit on the number of rows alone.
    """
    if stored.size < COMPILED_FROM:
        return stored.astype(np.float32) @ query
    scores = np.empty(len(stored), np.float32)
    compiled(KERNELS).products(np.ascontiguousarray(stored).view(np.uint16), query * _UP, scores)
    return scores


_SEEN: Final = Counter[str]()


def _pays(numbers: int) -> bool:
    """Return whether the kernels are to be used; a few numbers, as the window's own thread has, never load them."""
    if numbers < COMPILED_FROM // 128:
        return False
    _SEEN["numbers"] += numbers
    return numbers >= COMPILED_FROM or _SEEN["numbers"] >= COMPILED_AFTER
