"""What CLOOB as published does in small batches, said before anything trains."""

from __future__ import annotations

from typing import Final

from trainer.config import Cloob, Data, Optimizer, Run
from trainer.config.suited_optimizer import suited_optimizer

ENOUGH: Final = 32
"""The least batch in which it was not seen to collapse."""
COLLAPSES: Final = (
    "CLOOB in small batches may collapse: on 93 photos batches of 8 left image embeddings 3 to 7 directions, those of "
    "32 left 53 to 70. Choose a batch size of 32, or a retrieval share of 0.5."
)
"""Measured with 5 seeds each: `assets/docs/measurements/cloob-share.md`."""


def small_batch_of_cloob(run: Run) -> str:
    """Return what to expect of CLOOB in so small a batch of own pairs, and what to set; empty for others."""
    objective = run.objective
    if not isinstance(objective, Cloob) or objective.retrieval_share <= 0.5 or run.data.is_drawn:
        return ""
    return COLLAPSES if run.optimizer.batch_size < ENOUGH else ""


def small_batch_on(data: Data, pairs: int) -> str:
    """Return the same of CLOOB as published with the batch that suits this number of pairs to train on."""
    return small_batch_of_cloob(
        Run(data=data, objective=Cloob(), optimizer=suited_optimizer(Optimizer(), max(2, pairs)))
    )
