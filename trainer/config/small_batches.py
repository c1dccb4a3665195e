"""What CLOOB as published does in small batches, said before anything trains."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from trainer.config import Cloob, Run
from trainer.config.suited_optimizer import suited_optimizer

ENOUGH: Final = 32
"""The least batch in which it was not seen to collapse."""
MEASURED: Final = "On 93 photos batches of 8 left image embeddings 3 to 7 directions, those of 32 left 53 to 70."
"""Measured with 5 seeds each: `assets/docs/measurements/cloob-share.md`."""


def small_batch_of_cloob(run: Run) -> str:
    """Return what to expect of CLOOB in so small a batch of own pairs, and what to set; empty for others."""
    objective = run.objective
    if not isinstance(objective, Cloob) or objective.retrieval_share <= 0.5 or run.data.is_drawn:
        return ""
    batch = run.optimizer.batch_size
    advice = f"choose {ENOUGH}, or a retrieval share of 0.5"
    return f"CLOOB may collapse with batches of {batch}: {advice}." if batch < ENOUGH else ""


def in_larger_batches(run: Run, pairs: int | None) -> Run:
    """Return the run in batches in which CLOOB was not seen to collapse, where it may in its own.

    Its epochs grow to what suits these batches, unless it has fewer than suit its own. It stays as it is where its
    batches are large enough or there are too few pairs.

    Args:
        pairs: To train on; None where they are not counted.
    """
    if not small_batch_of_cloob(run) or pairs is None or pairs < ENOUGH:
        return run
    is_suited = suited_optimizer(run.optimizer, pairs).epochs == run.optimizer.epochs
    stated = ("batch_size",) if is_suited else ("batch_size", "epochs")
    return replace(run, optimizer=suited_optimizer(replace(run.optimizer, batch_size=ENOUGH), pairs, stated))


def longer_run(run: Run, pairs: int, objectives: Iterable[Any] = ()) -> Run:
    """Return the run with the steps that suit its pairs, in batches in which none of the objectives may collapse.

    Args:
        pairs: To train on, 2 at least.
        objectives: Of all arms of its experiment; its own is among them in any case.
    """
    longer = replace(run, optimizer=suited_optimizer(run.optimizer, pairs))
    for objective in (run.objective, *objectives):
        longer = replace(longer, optimizer=in_larger_batches(replace(longer, objective=objective), pairs).optimizer)
    return longer
