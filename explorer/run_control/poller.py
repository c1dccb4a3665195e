"""Poll the store for changes, off the GUI thread."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from trainer.experiments.run_style import RunStyle, styles_of
from trainer.scheduling import experiments, queue
from trainer.scheduling.unresponsive import why_silent
from trainer.store import RunRow, ScalarRow, StoreError, Workspace
from trainer.store.elsewhere import may_train_elsewhere
from trainer.untrusted import shell

SCALARS_A_POLL: Final = 50_000
_ROW_S: Final = 0.5
"""How long the folder of a run that is being made may be there before its row."""


class PollState(Struct, frozen=True):
    """What the window already knows, so that a poll reads only newer data."""

    changes: int = -1
    scalar: int = -1
    waiting: bool = False
    snapshots: dict[int, int] = field(default_factory=dict)
    followers: dict[int, float] = field(default_factory=dict)
    """Run that trains elsewhere -> when a process that mirrors it was last started."""


class PollResult(Struct, frozen=True):
    """The result of one poll."""

    seen: PollState
    runs: tuple[RunRow, ...] | None = None  # None when nothing in the store has changed since `PollState`.
    scalars: tuple[ScalarRow, ...] = ()
    snapshots: tuple[int, ...] = ()
    slots: queue.QueueSlots | None = None
    look_only: str = ""  # Why nothing may train in this workspace; empty when it is the user's own.
    # Run -> why its living trainer does not answer, and what to do; None where nobody looked.
    silent: dict[int, str] | None = None
    lost: str = ""  # What it means that run folders have no row, as a sentence; the first poll looks for them.
    # How each run is drawn, with those that can be restored; empty where `runs` is None.
    styles: dict[int, RunStyle] = field(default_factory=dict)


def working(run: RunRow) -> bool:
    """Return whether a process works on the run according to its row; a queued run has none yet."""
    return run.active and run.status != "queued"


def news(
    workspace: Workspace, seen: PollState, active: Sequence[int], reconcile: bool, may_start: bool = True
) -> PollResult:
    """Return what is new in the store since `seen`; also mark dead runs and start the next queued one.

    Args:
        seen: What the last poll knew.
        active: Runs whose snapshots may have grown, and whose trainers may not answer.
        reconcile: Whether to compare the rows with the locks of their processes, too.
        may_start: Whether queued runs may start.
    """
    look_only, silent = workspace.look_only, None
    if reconcile:
        workspace.reconcile()
        _keep_following(workspace, active, seen.followers)
        silent = {run: reason for run in active if (reason := why_silent(workspace, run))}
    if may_start and reconcile and seen.waiting:
        # Also when nothing has changed: another process may have been deciding at the last poll.
        queue.start_due(workspace)
    changes = workspace.changes()
    if changes == seen.changes:
        return PollResult(seen, look_only=look_only, silent=silent)
    runs = tuple(workspace.runs.all())
    # An experiment that goes on may have nothing in the queue until its last run has ended.
    going = experiments.is_going(workspace)
    if may_start and (going or any(run.status == "queued" for run in runs)) and queue.start_due(workspace):
        runs = tuple(workspace.runs.all())
    waiting = going or any(run.status == "queued" for run in runs)
    first = seen.scalar < 0
    scalars = () if first else tuple(workspace.results.scalars_after(seen.scalar, limit=SCALARS_A_POLL))
    if len(scalars) == SCALARS_A_POLL:
        changes = -1  # there is more: the next poll must not think that nothing has changed
    newest = workspace.results.last_scalar_id() if first else scalars[-1].id if scalars else seen.scalar
    # Where the runs of another computer are mirrored, snapshots arrive of runs that have ended.
    watched = {run.id for run in runs if working(run) or look_only} | set(active)
    count_of = workspace.results.snapshot_counts()  # at once: thousands of runs may be watched
    counts = {run: count_of.get(run, 0) for run in watched}
    grown = tuple(run for run, count in counts.items() if seen.snapshots.get(run, count if first else 0) != count)
    after = PollState(changes, newest, waiting, seen.snapshots | counts, seen.followers)
    lost = _lost(workspace) if first and not look_only else ""
    slots, styles = queue.slots(workspace), styles_of(workspace)
    return PollResult(after, runs, scalars, grown, slots, look_only, silent, lost, styles)


def _lost(workspace: Workspace) -> str:
    """Return what it means that run folders have no row; empty where each has one."""
    before = workspace.runs.unlisted()
    if not before:
        return ""
    # Not above: the window is painted before SQLAlchemy is loaded.
    from trainer.store.run_table import lost_words

    time.sleep(_ROW_S)
    folders = [name for name in workspace.runs.unlisted() if name in before]
    return lost_words(folders, shell.quote(str(workspace.folder))) if folders else ""


def _keep_following(workspace: Workspace, active: Sequence[int], tried: dict[int, float]) -> None:
    """Start the processes that mirror runs of other computers, where this computer was restarted."""
    with contextlib.suppress(StoreError):
        away = [row for row in map(workspace.runs.get, active) if may_train_elsewhere(row.folder)]
        if away:
            from trainer.places.follower import keep_following

            keep_following(workspace, away, tried)
