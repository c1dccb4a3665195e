"""Compiled: half precision made single, brought to unit length, and multiplied. Imported by `compiled` alone."""

import numba
import numpy as np

_EXPONENT_SHIFT = np.float32(2.0**112)
"""By which a half whose bits stand where single has them is too small: the biases of the exponents are 15 and 127."""


@numba.njit(nogil=True, cache=True, inline="always")
def _single_bits(half):
    number = np.int32(half)
    return ((number & np.int32(0x8000)) << np.int32(16)) | ((number & np.int32(0x7FFF)) << np.int32(13))


@numba.njit(nogil=True, cache=True, inline="always")
def _fill_single_bits(half, bits):
    """Fill `bits` with those of the halves, where single has them; return whether all are finite."""
    largest = np.uint16(0)
    for i in range(half.size):
        largest = max(largest, half[i] & np.uint16(0x7FFF))
        bits[i] = _single_bits(half[i])
    return largest < np.uint16(0x7C00)


@numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _inner_product(row, other):
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
        finite = _fill_single_bits(part, to)
        for i in range(part.size):
            numbers[i] *= _EXPONENT_SHIFT
        for i in range(0 if finite else part.size):
            if (part[i] & np.uint16(0x7C00)) == np.uint16(0x7C00):
                to[i] = _single_bits(part[i]) | np.int32(0x7F800000)


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
        finite = _fill_single_bits(half[i], bits)
        for j in range(unit.size):
            unit[j] *= _EXPONENT_SHIFT
        square = _inner_product(unit, unit)
        sound[i] = finite and square > 0
        length = np.float32(np.sqrt(square)) if sound[i] else np.float32(1)
        for j in range(unit.size):
            unit[j] /= length
            sums[j] = abs(unit[j]) + np.float32(0.5)
            centered[i, j] = unit[j] - origin[j]
        for j in range(unit.size):
            number = bits[j] & np.int32(0x7FFFFFFF)  # without its sign
            odd = (number >> np.int32(13)) & np.int32(1)  # a tie is rounded up to an even digit
            normal = ((number + np.int32(0xFFF) + odd) >> np.int32(13)) - np.int32(0x1C000)  # 127 - 15
            subnormal = rounded[j] - np.int32(0x3F000000)  # the bits of .5
            sign = (bits[j] >> np.int32(16)) & np.int32(0x8000)
            is_normal = number >= np.int32(0x38800000)  # the bits of 2^-14
            stored[i, j] = (normal if is_normal else subnormal) | sign


@numba.njit(nogil=True, cache=True)
def coordinates(half, axes, origin, points):
    """Fill `points` with the products of each line of `half`, at length 1, and all `axes`, less the origin's.

    One line at a time is made single, in the nearest cache: nothing but the halves is read from memory.
    """
    bits = np.empty(half.shape[1], np.int32)
    single = bits.view(np.float32)
    for i in range(half.shape[0]):
        finite = _fill_single_bits(half[i], bits)
        for j in range(single.size):
            single[j] *= _EXPONENT_SHIFT
        length = max(np.float32(np.sqrt(_inner_product(single, single))), np.float32(1e-12))
        for k in range(axes.shape[0]):
            points[i, k] = _inner_product(single, axes[k]) / length - origin[k] if finite else np.nan


@numba.njit(nogil=True, cache=True)
def products(half, query, scores):
    """Fill `scores` with the product of each line of `half` and `query`, which is 2^112 times too large."""
    bits = np.empty(query.size, np.int32)
    single = bits.view(np.float32)
    for i in range(half.shape[0]):
        finite = _fill_single_bits(half[i], bits)
        scores[i] = _inner_product(single, query) if finite else np.nan
