"""How fast finished runs trained: what a new run will take, and how many seeds of CLIP and CLOOB are proposed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from trainer import config
from trainer.errors import UserError
from trainer.store import Workspace
from trainer.store.elsewhere import place_of

_NEWEST: Final = 20
_FARTHEST: Final = 8
"""Times of a batch to which a pace is not carried over: a smaller one no longer fills the device."""

SEEDS_FOR_VERDICT: Final = 3
"""Seeds that an experiment has at least that is to decide; two decide next to nothing."""
_LONGEST_S: Final = 3_600
SEEDS_RULE: Final = f"A verdict needs {SEEDS_FOR_VERDICT} seeds. 1 is proposed where they would take more than an hour."


class Pace(Struct, frozen=True):
    """What a step of a finished run took."""

    label: str
    run: config.Run
    step_s: float  # Seconds of a step, evaluations and checkpoints included.


def finished_paces(workspace: Workspace) -> tuple[Pace, ...]:
    """Return the paces of the newest runs that finished on this computer, the newest first. For a thread."""
    rows = [row for row in workspace.runs.all() if row.status == "finished" and row.trained_s > 0 and row.step]
    paces = []
    for row in [row for row in reversed(rows) if not place_of(row)][:_NEWEST]:
        with suppress(UserError, OSError):  # a run that cannot be read tells nothing
            paces.append(Pace(row.short_name, workspace.runs.config_of(row.id), row.trained_s / row.step))
    return tuple(paces)


def pace_like(run: config.Run, paces: Sequence[Pace]) -> Pace | None:
    """Return the pace of a run with the same towers, batch, device and processes, best of the same objective.

    Without one it is that of the nearest batch, taken to cost as much a pair; its label says of which batch it is.
    """
    alike = [pace for pace in paces if _work(pace.run) == _work(run)]
    batch = run.optimizer.batch_size
    apart = {id(pace): abs(math.log(pace.run.optimizer.batch_size / batch)) for pace in alike}
    near = [pace for pace in alike if apart[id(pace)] <= math.log(_FARTHEST)]
    of = run.objective
    # A sort is stable: the newest stays first of those that are as near.
    near.sort(key=lambda pace: (apart[id(pace)], pace.run.objective.kind != of.kind))
    pace = next((pace for pace in near if pace.run.objective.family == of.family), None)
    if pace is None or pace.run.optimizer.batch_size == batch:
        return pace
    other = pace.run.optimizer.batch_size
    return Pace(f"{pace.label} (batch {other:,})", pace.run, pace.step_s * batch / other)


def _work(run: config.Run) -> tuple[object, ...]:
    return run.model, run.device, run.ranks, run.data.kind


def estimated_steps(run: config.Run, pairs: int) -> int:
    """Return the number of training steps on `pairs` pairs; only whole batches count in each epoch."""
    return pairs // run.optimizer.batch_size * run.optimizer.epochs


def estimated_s(run: config.Run, pairs: int, pace: Pace) -> float:
    """Return how many seconds a training on `pairs` pairs takes at the pace of an earlier run."""
    return estimated_steps(run, pairs) * pace.step_s


def paces_of_both(run: config.Run, paces: Sequence[Pace]) -> list[Pace]:
    """Return the paces of CLIP and of CLOOB trained like `run`; none where one is not known."""
    runs = [dataclasses.replace(run, objective=objective) for objective in (config.Clip(), config.Cloob())]
    like = [pace for each in runs if (pace := pace_like(each, paces)) is not None]
    return like if len(like) == len(runs) else []


def proposed_seeds(run: config.Run, pairs: int | None, paces: Sequence[Pace]) -> int:
    """Return with how many seeds each CLIP and CLOOB train on `pairs` pairs unless somebody says it: `SEEDS_RULE`."""
    like = paces_of_both(run, paces)
    each_s = sum(estimated_s(run, pairs, pace) for pace in like) if pairs is not None else 0.0
    return 1 if SEEDS_FOR_VERDICT * each_s > _LONGEST_S else SEEDS_FOR_VERDICT
