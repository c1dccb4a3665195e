"""Batch, epochs and warm-up that suit the number of pairs: with too few steps, nothing is learned."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from trainer.config.optimizer import Optimizer

LEAST_STEPS: Final = 500
BATCHES_IN_DATA: Final = 8
"""At least so many batches are in an epoch, where a batch is not smaller than `LEAST_BATCH`."""
LEAST_BATCH: Final = 4
WARM_UP: Final = 10
"""The warm-up is at most the steps divided by this."""


def suited_optimizer(optimizer: Optimizer, pairs: int, stated: Collection[str] = ()) -> Optimizer:
    """Return the optimizer for a run from scratch on this number of pairs.

    A batch is at most an eighth of the pairs, there are at least 500 steps, and at most a tenth of them warms up.

    Args:
        optimizer: What the preset says: its batch is not enlarged, its epochs are not reduced.
        pairs: To train on, 2 at least.
        stated: Names of fields that stay as they are.
    """
    most = min(pairs, max(LEAST_BATCH, pairs // BATCHES_IN_DATA))
    if "batch_size" not in stated and optimizer.batch_size > most:
        optimizer = replace(optimizer, batch_size=1 << (most.bit_length() - 1))
    steps_per_epoch = max(1, pairs // optimizer.batch_size)
    if "epochs" not in stated and optimizer.epochs:
        optimizer = replace(optimizer, epochs=max(optimizer.epochs, -(-LEAST_STEPS // steps_per_epoch)))
    warm_up = max(1, steps_per_epoch * optimizer.epochs // WARM_UP)
    return optimizer if "warmup_steps" in stated else replace(optimizer, warmup_steps=warm_up)
