"""Compiled: half precision made single and back, and multiplied. Imported by `compiled` alone."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def widen(half, bits, single):
    """Fill `single`, whose memory `bits` shares, with the numbers of `half`, bit by bit; NaN stays NaN.

    Sign, exponent and fraction are moved to where single precision has them; the product corrects the exponent, of
    numbers below the normal ones, too. Infinity and NaN are mended afterwards.
    """
    for start in range(0, half.size, 1_024):
        part, to, numbers = half[start : start + 1_024], bits[start : start + 1_024], single[start : start + 1_024]
        largest = np.uint16(0)
        for i in range(part.size):
            largest = max(largest, part[i] & np.uint16(0x7FFF))
            to[i] = _moved(part[i])
        for i in range(part.size):
            numbers[i] *= np.float32(2.0**112)
        for i in range(part.size if largest >= np.uint16(0x7C00) else 0):
            if (part[i] & np.uint16(0x7C00)) == np.uint16(0x7C00):
                to[i] = _moved(part[i]) | np.int32(0x7F800000)


@numba.njit(nogil=True, cache=True)
def narrow(bits, single, half):
    """Fill `half` with the numbers of `single`, none above 1, whose memory `bits` shares: to nearest, ties to even.

    Where half precision has no normal numbers, the sum with .5 is rounded to its last digit, and its fraction is what
    is sought.
    """
    sums = np.empty(1_024, np.float32)
    rounded = sums.view(np.int32)
    for start in range(0, half.size, 1_024):
        part, to, numbers = bits[start : start + 1_024], half[start : start + 1_024], single[start : start + 1_024]
        for i in range(part.size):
            sums[i] = abs(numbers[i]) + np.float32(0.5)
        for i in range(part.size):
            number = part[i] & np.int32(0x7FFFFFFF)
            odd = (number >> np.int32(13)) & np.int32(1)
            normal = ((number + np.int32(0xFFF) + odd) >> np.int32(13)) - np.int32(0x1C000)
            below = rounded[i] - np.int32(0x3F000000)
            sign = (part[i] >> np.int32(16)) & np.int32(0x8000)
            to[i] = (normal if number >= np.int32(0x38800000) else below) | sign


@numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def products(half, query, scores):
    """Fill `scores` with the product of each line of `half` and `query`, which is 2^112 times too large.

    One line at a time is made single, in the nearest cache: nothing but the halves is read from memory.
    """
    bits = np.empty(query.size, np.int32)
    single = bits.view(np.float32)
    for i in range(half.shape[0]):
        largest = np.uint16(0)
        for j in range(query.size):
            largest = max(largest, half[i, j] & np.uint16(0x7FFF))
            bits[j] = _moved(half[i, j])
        total = np.float32(0)
        for j in range(query.size):
            total += single[j] * query[j]
        scores[i] = np.nan if largest >= np.uint16(0x7C00) else total


@numba.njit(nogil=True, cache=True, inline="always")
def _moved(half):
    number = np.int32(half)
    return ((number & np.int32(0x8000)) << np.int32(16)) | ((number & np.int32(0x7FFF)) << np.int32(13))
