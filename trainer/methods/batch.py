"""What a step learns from."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Pairs on the training device; row k of both members is pair k."""

    images: Float[Tensor, "n 3 s s"]
    """Cropped and normalised."""
    tokens: Int[Tensor, "n length"]
