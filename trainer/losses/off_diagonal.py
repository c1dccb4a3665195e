"""The masked log-sum-exp that the leave-one-out objectives share."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor


def off_diagonal_logsumexp(logits: Float[Tensor, "n n"]) -> Float[Tensor, " n"]:
    """Log-sum-exp of every row with its diagonal entry left out; -inf where a row has no other entry."""
    matched = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    return torch.logsumexp(logits.masked_fill(matched, -math.inf), dim=1)


def needs_two(pairs: int, loss: str) -> None:
    """Refuses a batch of one.

    Raises:
        ValueError: Fewer than 2 pairs: with the match left out nothing is left to contrast with.
    """
    if pairs < 2:
        raise ValueError(f"{loss} needs at least 2 pairs: with the match left out, a single pair has no negatives")
