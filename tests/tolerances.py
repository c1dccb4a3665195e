"""Tolerances of floats from the precision, the length of sums and the condition of what is computed."""

import math
from typing import Final

import torch

FACTOR: Final = 4
"""Room above the estimate: other processors and libraries add in other orders."""


def rounding(dtype: torch.dtype, length: int, condition: float = 1.0) -> float:
    """Return the relative error to allow for a sum of `length` products that were rounded in `dtype`.

    Sums in blocks, as matrix products make them, err by about eps * (1 + log2(length)): Higham, Accuracy and Stability
    of Numerical Algorithms, 2002, section 4.2.

    Args:
        dtype: Of the least precise operands.
        length: Terms that are added.
        condition: By how much errors of the inputs grow, such as the scale of logits before an exponential.
    """
    return FACTOR * torch.finfo(dtype).eps * (1 + math.log2(max(length, 1))) * max(condition, 1.0)
