"""Compiled: half precision made single, brought to unit length, and multiplied. Imported by `compiled` alone."""

import numba
import numpy as np

_UP = np.float32(2.0**112)
"""By which a half, its bits moved to where single precision has them, is too small."""


@numba.njit(nogil=True, cache=True, inline="always")
def _moved(half):
    number = np.int32(half)
    return ((number & np.int32(0x8000)) << np.int32(16)) | ((number & np.int32(0x7FFF)) << np.int32(13))


@numba.njit(nogil=True, cache=True, inline="always")
def _move(half, bits):
    """Fill `bits` with those of the halves, moved; return whether all are numbers."""
    largest = np.uint16(0)
    for i in range(half.size):
        largest = max(largest, half[i] & np.uint16(0x7FFF))
        bits[i] = _moved(half[i])
    return largest < np.uint16(0x7C00)


@numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _product(row, other):
    total = np.float32(0)
    for i in range(row.size):
        total += row[i] * other[i]
    return total


@numba.njit(nogil=True, cache=True)
def widen(half, bits, single):
    """Fill `single`, whose memory `bits` shares, with the numbers of `half`, bit by bit; NaN stays NaN.

    Sign, exponent and fraction are moved to where single precision has them; the product corrects the exponent, of
    numbers below the normal ones, too. Infinity and NaN are mended afterwards.
    """
    for start in range(0, half.size, 1_024):
        part, to, numbers = half[start : start + 1_024], bits[start : start + 1_024], single[start : start + 1_024]
        finite = _move(part, to)
        for i in range(part.size):
            numbers[i] *= _UP
        for i in range(0 if finite else part.size):
            if (part[i] & np.uint16(0x7C00)) == np.uint16(0x7C00):
                to[i] = _moved(part[i]) | np.int32(0x7F800000)


@numba.njit(nogil=True, cache=True)
def unit_rows(half, origin, sound, stored, centered):
    """Fill `stored` with each line of `half` at length 1, and `centered` with what it differs from `origin` by.

    A line is read once, and stays in the nearest cache. It is rounded to nearest, ties to even; where half precision
    has no normal numbers, the sum with .5 is rounded to its last digit, and its fraction is what is sought. What a line
    that is not `sound` becomes means nothing.
    """
    bits = np.empty(half.shape[1], np.int32)
    unit = bits.view(np.float32)
    sums = np.empty(half.shape[1], np.float32)
    rounded = sums.view(np.int32)
    for i in range(half.shape[0]):
        finite = _move(half[i], bits)
        for j in range(unit.size):
            unit[j] *= _UP
        square = _product(unit, unit)
        sound[i] = finite and square > 0
        length = np.float32(np.sqrt(square)) if sound[i] else np.float32(1)
        for j in range(unit.size):
            unit[j] /= length
            sums[j] = abs(unit[j]) + np.float32(0.5)
            centered[i, j] = unit[j] - origin[j]
        for j in range(unit.size):
            number = bits[j] & np.int32(0x7FFFFFFF)
            odd = (number >> np.int32(13)) & np.int32(1)
            normal = ((number + np.int32(0xFFF) + odd) >> np.int32(13)) - np.int32(0x1C000)
            below = rounded[j] - np.int32(0x3F000000)
            sign = (bits[j] >> np.int32(16)) & np.int32(0x8000)
            stored[i, j] = (normal if number >= np.int32(0x38800000) else below) | sign


@numba.njit(nogil=True, cache=True)
def coordinates(half, axes, origin, points):
    """Fill `points` with the products of each line of `half`, at length 1, and all `axes`, less the origin's.

    One line at a time is made single, in the nearest cache: nothing but the halves is read from memory.
    """
    bits = np.empty(half.shape[1], np.int32)
    single = bits.view(np.float32)
    for i in range(half.shape[0]):
        finite = _move(half[i], bits)
        for j in range(single.size):
            single[j] *= _UP
        length = max(np.float32(np.sqrt(_product(single, single))), np.float32(1e-12))
        for k in range(axes.shape[0]):
            points[i, k] = _product(single, axes[k]) / length - origin[k] if finite else np.nan


@numba.njit(nogil=True, cache=True)
def products(half, query, scores):
    """Fill `scores` with the product of each line of `half` and `query`, which is 2^112 times too large."""
    bits = np.empty(query.size, np.int32)
    single = bits.view(np.float32)
    for i in range(half.shape[0]):
        finite = _move(half[i], bits)
        scores[i] = _product(single, query) if finite else np.nan
