"""In which order the pairs are seen: a function of (seed, epoch), so a resumed run sees what it would have seen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Int

from trainer.data.pairs import DataError


def steps_per_epoch(n: int, *, batch_size: int) -> int:
    """Whole batches in an epoch of `n` pairs.

    Raises:
        DataError: There is not one.
    """
    if n < batch_size:
        raise DataError(
            f"A batch of {batch_size:,} needs more than the {n:,} training pairs there are. "
            f"Set optimiser.batch_size to at most {n:,}, or add pairs."
        )
    return n // batch_size


def batches(n: int, batch_size: int, seed: int, epoch: int) -> Iterator[Int[np.ndarray, " batch"]]:
    """Rows of each whole batch of one epoch, every row at most once; the incomplete last batch is left out.

    Raises:
        DataError: The pairs do not fill one batch.
    """
    steps = steps_per_epoch(n, batch_size=batch_size)
    order = np.random.default_rng([seed, epoch, _PURPOSE]).permutation(n)
    return iter(order[: steps * batch_size].reshape(steps, batch_size))


_PURPOSE = 0x0D3E
"""Keeps the order independent of other generators seeded with (seed, epoch)."""
