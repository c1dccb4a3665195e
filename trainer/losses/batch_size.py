"""Batch-size check of the leave-one-out objectives."""

from __future__ import annotations


def needs_two(pairs: int, loss: str) -> None:
    """Raise ValueError for a batch of one.

    Raises:
        ValueError: Fewer than 2 pairs: with the match left out nothing is left to contrast with.
    """
    if pairs < 2:
        raise ValueError(f"{loss} needs at least 2 pairs: with the match left out, a single pair has no negatives")
