"""Starts detached trainers, asks them to stop, watches the store and announces its rows.

Facts come only through the store: what a trainer wrote while no window was open arrives the same way as what
it writes now. Nothing here ends with the window: a trainer is a process of its own session.

A run with the status `queued` waits for its turn: the oldest one is started as soon as no run is active. The
status is in the store, so the next window keeps the promise of the one that queued the run.
"""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

from explorer.background import Background
from trainer import catalog, config, launch
from trainer.config.ablation import PRESET as ABLATION
from trainer.config.ablation import four_way
from trainer.problem import Problem
from trainer.store import RunRow, ScalarRow, Workspace

POLL_MS: Final = 500
PATIENCE_MS: Final = 15_000
"""How long a trainer that was asked to stop may go on before its run counts as deaf."""
IDLE_POLL_MS: Final = 2000
RECONCILE_S: Final = 2.0
IDLE_AFTER: Final = 6
"""Polls without news, and without an active run, after which polling slows down."""
SCALARS_A_POLL: Final = 50_000

DEMO: Final = (("clip-scenes", "CLIP demo"), ("cloob-scenes", "CLOOB demo"))
"""Preset and name of the demo runs, in the order they train: together they would each take twice as long."""

Done = Callable[[Any], None]


@dataclass(frozen=True)
class Seen:
    """What the window knows already, so that a poll reads only what is newer."""

    changes: int = -1
    scalar: int = -1
    snapshots: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class News:
    """What one poll found. `runs` is None when nothing in the store has changed since `Seen`."""

    seen: Seen
    runs: tuple[RunRow, ...] | None = None
    scalars: tuple[ScalarRow, ...] = ()
    snapshots: tuple[int, ...] = ()


class Jobs(QObject):
    """The one place where the window and the trainers meet.

    Every write to the store happens off the GUI thread, one after the other in the order asked; the rows that
    come of it are announced by the next poll, which follows at once.

    Attributes:
        undo: Rename and delete are pushed here.

    Signals:
        runs_changed: All runs that are not deleted, oldest first, as a list of `RunRow`.
        scalars_arrived: New `ScalarRow`s, in the order they were logged. Those already in the store when the
            window opened are not announced: read them with `Workspace.series`.
        snapshots_changed: The run that has a snapshot more (or fewer).
        run_ended: A run that was active at the last poll and is no more.
        started: The run that was just created or resumed.
        went_deaf: A run whose trainer was asked to stop and has not ended for `PATIENCE_MS`: `end` would end it.
        deleted: The runs just deleted, so that a banner can offer to undo.
        failed: A sentence: what could not be done, why, and what to do next.
    """

    runs_changed = Signal(list)
    scalars_arrived = Signal(list)
    snapshots_changed = Signal(int)
    run_ended = Signal(object)
    started = Signal(int)
    went_deaf = Signal(object)
    deleted = Signal(list)
    failed = Signal(str)

    def __init__(
        self, workspace: Workspace, background: Background, undo: QUndoStack, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.undo = undo
        self._workspace = workspace
        self._background = background
        self._runs: tuple[RunRow, ...] = ()
        self._seen = Seen()
        self._quiet_polls = 0
        self._polling = False
        self._poll_again = False
        self._reconciled_at = float("-inf")
        self._last_problem = ""
        self._writes: deque[tuple[Callable[[], Any], Done | None]] = deque()
        self._writing = False
        self._patience: dict[int, QTimer] = {}
        self._timer = QTimer(self, singleShot=True, timeout=self.poll)

    @property
    def runs(self) -> tuple[RunRow, ...]:
        """All runs that are not deleted, oldest first, as of the last poll."""
        return self._runs

    def run(self, run: int) -> RunRow | None:
        """The row of `run` as of the last poll; None if there is none (any more)."""
        return next((row for row in self._runs if row.id == run), None)

    # -- what a person asks for --------------------------------------------------------------------------------

    def start(self, run: config.Run, preset: str = "", *, done: Done | None = None) -> None:
        """Creates `run` in the store and starts its trainer; `done` gets its id."""
        self._write(partial(_create_and_launch, self._workspace, run, preset), partial(self._announce_start, done))

    def start_demo(self) -> None:
        """Creates the two demo runs; the first starts now, the second when no run is active any more."""
        self._write(partial(_create_demo, self._workspace), partial(self._announce_start, None))

    def start_ablation(self, levels: Sequence[float], template: config.Run | None = None) -> None:
        """Queues the four objectives of CLOOB's ablation at each co-occurrence; one trains after the other.

        Args:
            levels: Values of `data.cooccurrence`, as far as the data has it.
            template: All but the objective; None for the preset of the demo's CLIP.
        """
        self._write(
            partial(_create_ablation, self._workspace, tuple(levels), template), partial(self._announce_start, None)
        )

    def stop(self, runs: Sequence[int]) -> None:
        """Asks the trainers of `runs` to end after the step they are in, with a checkpoint."""
        for run in runs:
            self._write(partial(_stop, self._workspace, run))

    def end(self, run: int) -> None:
        """Ends a trainer that does not answer: a signal, and after a grace time a kill."""
        # Not among the writes: they would wait for the grace time.
        self._background.run(
            self,
            launch.end,
            self._workspace,
            run,
            done=partial(self._ended_by_force, run),
            failed=lambda error: self.failed.emit(_sentence(error)),
            key=f"end {run}",
        )

    def is_deaf(self, run: int) -> bool:
        """Whether the run's trainer has gone on for `PATIENCE_MS` after it was asked to stop."""
        return run in self._patience and not self._patience[run].isActive()

    def resume(self, runs: Sequence[int]) -> None:
        """Starts trainers that go on from the newest checkpoints of `runs`."""
        for run in runs:
            self._write(partial(_resume, self._workspace, run), partial(self._announce_start, None))

    def duplicate(self, run: int, *, done: Callable[[config.Run], None]) -> None:
        """Gives `done` the configuration of `run` under a name that is free."""
        taken = {row.name for row in self._runs}
        self._write(partial(_copy_of, self._workspace, run, taken), done)

    def rename(self, run: int, name: str) -> None:
        """Renames `run`; undoable."""
        row = self.run(run)
        if row is None or row.name == name:
            return
        self.undo.push(
            _Command(
                f"Rename {row.name}",
                redo=partial(self._write, partial(self._workspace.rename, run, name)),
                undo=partial(self._write, partial(self._workspace.rename, run, row.name)),
            )
        )

    def delete(self, runs: Sequence[int]) -> None:
        """Takes `runs` out of every view; their folders stay, so it is undoable. Active runs are refused."""
        rows = [row for row in self._runs if row.id in set(runs)]
        busy = [row.name for row in rows if working(row)]
        if busy:
            self.failed.emit(f"{', '.join(busy)} is still training. Stop it first, then delete it.")
        rows = [row for row in rows if not working(row)]
        if not rows:
            return
        ids = tuple(row.id for row in rows)
        self.undo.push(
            _Command(
                f"Delete {rows[0].name}" if len(rows) == 1 else f"Delete {len(rows)} runs",
                redo=partial(self._write, partial(_each, self._workspace.delete, ids)),
                undo=partial(self._write, partial(_each, self._workspace.restore, ids)),
            )
        )
        self.deleted.emit(rows)

    def set_note(self, run: int, note: str) -> None:
        """Keeps a person's remark with `run`."""
        self._write(partial(self._workspace.set_note, run, note))

    # -- watching the store ------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Starts polling: at once, then every 500 ms, more slowly while nothing runs and nothing changes."""
        self.poll()

    def close(self) -> None:
        """Stops polling; the trainers go on."""
        self._timer.stop()
        self._polling = True

    def poll(self) -> None:
        """Asks the store for news, off the GUI thread; while one poll is under way a second follows it."""
        if self._polling:
            self._poll_again = True
            return
        self._timer.stop()
        self._polling, self._poll_again = True, False
        now = time.monotonic()
        reconcile = now - self._reconciled_at >= RECONCILE_S
        if reconcile:
            self._reconciled_at = now
        active = tuple(row.id for row in self._runs if working(row))
        self._background.run(
            self,
            news,
            self._workspace,
            self._seen,
            active,
            reconcile,
            done=self._take,
            failed=self._poll_failed,
            key="poll",
            urgent=True,
        )

    def _take(self, found: News) -> None:
        self._last_problem = ""
        self._quiet_polls = 0 if found.runs is not None or found.scalars else self._quiet_polls + 1
        self._seen = found.seen
        ended = self._ended(found.runs) if found.runs is not None else []
        if found.runs is not None and found.runs != self._runs:
            self._runs = found.runs
            self._be_patient()
            self.runs_changed.emit(list(found.runs))
        if found.scalars:
            self.scalars_arrived.emit(list(found.scalars))
        for run in found.snapshots:
            self.snapshots_changed.emit(run)
        for row in ended:
            self.run_ended.emit(row)
        self._poll_later()

    def _be_patient(self) -> None:
        """Gives every run that was asked to stop its time; forgets those that ended or are to go on after all."""
        asked = {row.id for row in self._runs if working(row) and (row.asked == "stop" or row.status == "stopping")}
        for run in self._patience.keys() - asked:
            self._patience.pop(run).deleteLater()
        for run in asked - self._patience.keys():
            timer = QTimer(self, singleShot=True, interval=PATIENCE_MS)
            timer.timeout.connect(partial(self._lose_patience, run))
            self._patience[run] = timer
            timer.start()

    def _lose_patience(self, run: int) -> None:
        row = self.run(run)
        if row is not None:
            self.went_deaf.emit(row)

    def _ended_by_force(self, run: int, gone: bool) -> None:
        row = self.run(run)
        if not gone and row is not None:
            self.failed.emit(f"The trainer of {row.name} could not be ended: it is not the process this run started.")
        self.poll()

    def _ended(self, runs: Sequence[RunRow]) -> list[RunRow]:
        before = {row.id for row in self._runs if working(row)}
        return [row for row in runs if row.id in before and not working(row)]

    def _poll_failed(self, error: Exception) -> None:
        """Says once what is wrong with the store and keeps trying: a disk may come back."""
        problem = _sentence(error)
        if problem != self._last_problem:
            self._last_problem = problem
            self.failed.emit(problem)
        self._quiet_polls = IDLE_AFTER
        self._poll_later()

    def _poll_later(self) -> None:
        self._polling = False
        idle = self._quiet_polls >= IDLE_AFTER and not any(working(row) for row in self._runs)
        self._timer.start(0 if self._poll_again else IDLE_POLL_MS if idle else POLL_MS)

    # -- writing, one after the other --------------------------------------------------------------------------

    def _write(self, function: Callable[[], Any], done: Done | None = None) -> None:
        self._writes.append((function, done))
        self._write_next()

    def _write_next(self) -> None:
        if self._writing or not self._writes:
            return
        self._writing = True
        function, done = self._writes.popleft()
        self._background.run(self, function, done=partial(self._written, done), failed=self._write_failed, key="write", urgent=True)

    def _written(self, done: Done | None, answer: Any) -> None:
        self._writing = False
        self._quiet_polls = 0
        if done is not None:
            done(answer)
        self.poll()
        self._write_next()

    def _write_failed(self, error: Exception) -> None:
        self._writing = False
        self.failed.emit(_sentence(error))
        self.poll()
        self._write_next()

    def _announce_start(self, done: Done | None, run: int) -> None:
        self.started.emit(run)
        if done is not None:
            done(run)


class _Command(QUndoCommand):
    """An undoable act made of two functions; Qt calls the first when the command is pushed."""

    def __init__(self, text: str, *, redo: Callable[[], None], undo: Callable[[], None]) -> None:
        super().__init__(text)
        self._redo, self._undo = redo, undo

    def redo(self) -> None:
        self._redo()

    def undo(self) -> None:
        self._undo()


# -- off the GUI thread ----------------------------------------------------------------------------------------


def working(run: RunRow) -> bool:
    """Whether a process works on the run, as far as its row knows; a queued run still waits for one."""
    return run.active and run.status != "queued"


def news(workspace: Workspace, seen: Seen, active: Sequence[int], reconcile: bool) -> News:
    """What the store holds that `seen` does not; marks dead runs and starts the next queued one on the way.

    Args:
        workspace: Where to look.
        seen: What the last poll knew.
        active: Runs whose snapshots may have grown.
        reconcile: Whether to compare the rows with the locks of their processes, too.
    """
    if reconcile:
        workspace.reconcile()
    changes = workspace.changes()
    if changes == seen.changes:
        return News(seen)
    runs = tuple(workspace.runs())
    if start_next(workspace, runs) is not None:
        runs = tuple(workspace.runs())
    first = seen.scalar < 0
    scalars = () if first else tuple(workspace.scalars_after(seen.scalar, limit=SCALARS_A_POLL))
    if len(scalars) == SCALARS_A_POLL:
        changes = -1  # there is more: the next poll must not think that nothing has changed
    newest = workspace.last_scalar_id() if first else scalars[-1].id if scalars else seen.scalar
    watched = {run.id for run in runs if working(run)} | set(active)
    counts = {run: len(workspace.snapshots(run)) for run in watched}
    grown = tuple(run for run, count in counts.items() if seen.snapshots.get(run, count if first else 0) != count)
    return News(Seen(changes, newest, seen.snapshots | counts), runs, scalars, grown)


def start_next(workspace: Workspace, runs: Sequence[RunRow]) -> int | None:
    """Starts the oldest queued run if no run is active; its id, or None."""
    queued = [run for run in runs if run.status == "queued"]
    if not queued or any(working(run) for run in runs):
        return None
    launch.start_detached(workspace, queued[0].id)
    return queued[0].id


def demo_runs() -> list[tuple[str, config.Run]]:
    """Preset name and run of both demo runs, in training order."""
    return [(preset, dataclasses.replace(catalog.preset(preset), name=name)) for preset, name in DEMO]


def free_name(name: str, taken: set[str]) -> str:
    """`name copy`, or `name copy 2` and so on: the first that no run has."""
    stem = f"{name} copy"
    if stem not in taken:
        return stem
    return next(f"{stem} {n}" for n in range(2, len(taken) + 3) if f"{stem} {n}" not in taken)


def _create_and_launch(workspace: Workspace, run: config.Run, preset: str) -> int:
    config.check(run)
    created = workspace.create_run(run, preset=preset)
    launch.start_detached(workspace, created)
    return created


def _create_demo(workspace: Workspace) -> int:
    """Queues all demo runs; the first one's id.

    The poll that follows starts it. Only polls start queued runs: one comes after the other, so none is started twice.
    """
    created = [workspace.create_run(run, status="queued", preset=preset) for preset, run in demo_runs()]
    return created[0]


def _create_ablation(workspace: Workspace, levels: Sequence[float], template: config.Run | None) -> int:
    """Queues the runs of the ablation; the first one's id. The poll that follows starts it."""
    template = template or catalog.preset("clip-scenes")
    created = []
    for level in levels:
        data = template.data
        if isinstance(data, config.Scenes):
            data = dataclasses.replace(data, cooccurrence=level)
        for run in four_way(dataclasses.replace(template, data=data)):
            created.append(workspace.create_run(run, status="queued", preset=ABLATION))
    return created[0]


def _stop(workspace: Workspace, run: int) -> None:
    """Asks a trainer to stop; a run that still waits for one leaves the queue."""
    if workspace.run(run).status == "queued":
        workspace.change_run(run, status="stopped", reason="Taken out of the queue before it started.")
    else:
        launch.stop(workspace, run)


def _resume(workspace: Workspace, run: int) -> int:
    launch.start_detached(workspace, run)
    return run


def _copy_of(workspace: Workspace, run: int, taken: set[str]) -> config.Run:
    original = workspace.config_of(run)
    return dataclasses.replace(original, name=free_name(original.name, taken))


def _each(function: Callable[[int], None], runs: Sequence[int]) -> None:
    for run in runs:
        function(run)


def _sentence(error: Exception) -> str:
    """A Problem's own words; any other error is ours, and says so."""
    return str(error) if isinstance(error, Problem) else f"{type(error).__name__}: {error}. This is a bug; see the log."
