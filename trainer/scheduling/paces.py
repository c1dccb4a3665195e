"""How fast finished runs trained, for what a new run will take."""

from __future__ import annotations

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
