"""Near-duplicate images: found by a perceptual hash, and confirmed by small colored versions of both.

The hash is the difference hash (64 signs of the brightness between neighbors on a grid of 8 x 9). It does not see color
and says little of plain pictures, so two pictures count only where their 8 x 8 versions are close as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Float32, Int, UInt8, UInt64

BITS: Final = 4
"""Signs of 64 that may differ."""
DEVIATION: Final = 8.0
"""Root mean square of the differences of the small versions, of 255, from which on two pictures are others."""
_AT_ONCE: Final = 2_048
_EDGE: Final = 8


def perceptual_hashes(images: UInt8[np.ndarray, "n h w 3"]) -> UInt64[np.ndarray, " n"]:
    """Return the difference hash of each image."""
    gray = _shrunk(images, _EDGE, _EDGE + 1) @ np.array([0.299, 0.587, 0.114], np.float32)
    signs = (gray[:, :, 1:] > gray[:, :, :-1]).reshape(len(images), -1)
    return np.packbits(signs, axis=1).view(">u8")[:, 0].astype(np.uint64)


def small_versions(images: UInt8[np.ndarray, "n h w 3"]) -> Float32[np.ndarray, "n 192"]:
    """Return each image as the means of 8 x 8 areas."""
    return _shrunk(images, _EDGE, _EDGE).reshape(len(images), -1)


def groups_of_near(
    hashes: UInt64[np.ndarray, " n"], small: Float32[np.ndarray, "n 192"], *, bits: int = BITS
) -> Int[np.ndarray, " n"]:
    """Return the lowest row linked to each image by pairs of near duplicates; its own if it has none.

    Pairs are found exactly: hashes that differ in at most `bits` signs agree in one of `bits + 1` parts of them.
    """
    first = np.arange(len(hashes))
    for rows in _agreeing(hashes, bits + 1):
        for at in range(0, len(rows), _AT_ONCE):
            some = rows[at : at + _AT_ONCE]
            near = np.bitwise_count(hashes[some, None] ^ hashes[None, rows]) <= bits
            for i, j in zip(*np.nonzero(near & (some[:, None] < rows[None])), strict=True):
                a, b = int(some[i]), int(rows[j])
                if np.sqrt(np.mean((small[a] - small[b]) ** 2)) <= DEVIATION:
                    _link(first, a, b)
    return np.array([_root(first, row) for row in range(len(first))], dtype=np.int64)


def _shrunk(images: np.ndarray, height: int, width: int) -> Float32[np.ndarray, "n height width 3"]:
    """Return means of areas; if an image has fewer pixels than areas, one pixel counts for several."""

    def averaged(values: np.ndarray, axis: int, parts: int) -> np.ndarray:
        size = values.shape[axis]
        starts = np.arange(parts) * size // parts
        counts = np.maximum(np.diff([*starts, size]), 1)
        shape = [1] * values.ndim
        shape[axis] = parts
        return np.add.reduceat(values, starts, axis=axis) / counts.reshape(shape).astype(np.float32)

    return averaged(averaged(np.asarray(images).astype(np.float32), 1, height), 2, width)


def _agreeing(hashes: np.ndarray, parts: int) -> Iterator[np.ndarray]:
    """Yield ascending rows whose hashes agree in a part of their bits."""
    edges = np.linspace(0, 64, parts + 1).astype(int)
    for low, high in itertools.pairwise(edges):
        part = (hashes >> np.uint64(low)) & np.uint64((1 << int(high - low)) - 1)
        order = np.argsort(part, kind="stable")
        cuts = np.flatnonzero(np.diff(part[order])) + 1
        yield from (rows for rows in np.split(order, cuts) if len(rows) > 1)


def _root(first: np.ndarray, row: int) -> int:
    while first[row] != row:
        first[row] = first[first[row]]
        row = int(first[row])
    return row


def _link(first: np.ndarray, a: int, b: int) -> None:
    low, high = sorted((_root(first, a), _root(first, b)))
    first[high] = low
