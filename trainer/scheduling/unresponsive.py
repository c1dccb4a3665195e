"""Detect live trainers that do not respond, and advise what to do. Imports no torch."""

from __future__ import annotations

import os
import time
from typing import Final

from trainer.scheduling import launch
from trainer.store import RunRow, StoreError, Workspace
from trainer.store.process_lock import is_stopped

PATIENCE_S: Final = 30.0
"""How long a trainer may go without a sign of life; it gives one every two seconds between steps."""
STEPS: Final = 5
"""One whose steps take long may take so many of them."""
BEFORE_S: Final = 90.0
"""How long before its first step, while it loads its model."""


def why_silent(workspace: Workspace, run: int) -> str:
    """Return why the run's live trainer does not respond, and what to do; empty if it does or is not alive.

    A workspace of another computer has its processes there: of them nothing is known.
    """
    if workspace.look_only:
        return ""
    try:
        row = workspace.runs.get(run)
        trainer = launch.trainer_of(workspace, run) if row.active and row.status != "queued" else None
    except StoreError:
        return ""
    if trainer is None:
        return ""
    if is_stopped(trainer):
        again = "Continue it where it was suspended" if os.name == "nt" else f"Continue it: kill -CONT {trainer.pid}"
        return (
            f"Its process {trainer.pid} is suspended (SIGSTOP, Ctrl+Z or a debugger) and does nothing. "
            f"{again}; or end it: trainer stop {run} --force."
        )
    silent_s = _silent_s(row)
    if silent_s <= _patience_s(row):
        return ""
    return (
        f"Its process {trainer.pid} is alive but has not responded for {silent_s:.0f} s: it may be in a long "
        "step, its disk or device may hang, or another program may hold the database. "
        f"Wait, or end it: trainer stop {run} --force."
    )


def _silent_s(row: RunRow) -> float:
    # By the clock of the day, for one look has no other; once the clock has stepped, the next sign of life mends it.
    return time.time() - row.heartbeat_at if row.status in ("running", "stopping") and row.heartbeat_at else 0.0


def _patience_s(row: RunRow) -> float:
    left = row.total_steps - row.step
    if row.step <= 0:
        return BEFORE_S
    return max(PATIENCE_S, STEPS * row.eta_s / left) if row.eta_s and left > 0 else PATIENCE_S
