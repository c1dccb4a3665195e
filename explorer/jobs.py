"""Starts detached trainers, asks them to stop, watches the store and announces its rows.

Facts come only through the store: what a trainer wrote while no window was open arrives the same way as what
it writes now. Nothing here ends with the window: a trainer is a process of its own session.

A run with the status `queued` waits for its turn (`trainer.queue`), which polls start as long as a window is open. The
status is in the store, so the next window, or `trainer queue run`, keeps the promise of the one that queued the run.
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
from trainer import catalog, config, launch, queue
from trainer.config.ablation import PRESET as ABLATION
from trainer.config.ablation import four_way
from trainer.problem import Problem
from trainer.store import RunRow, ScalarRow, Workspace

POLL_MS: Final = 500
PATIENCE_MS: Final = 15_000
"""How long a trainer that was asked to stop may go on before its run counts as deaf."""
IDLE_POLL_MS: Final = 2000
RECONCILE_S: Final = 2.0
STALLED_S: Final = 90.0
"""Without a sign of life for this long, a running trainer is called stalled; it gives one every two seconds."""
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
    waiting: bool = False
    snapshots: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class News:
    """What one poll found. `runs` is None when nothing in the store has changed since `Seen`."""

    seen: Seen
    runs: tuple[RunRow, ...] | None = None
    scalars: tuple[ScalarRow, ...] = ()
    snapshots: tuple[int, ...] = ()
    slots: queue.Slots | None = None


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
        alerted: A run with which something is wrong, and the kind of the alert; also those of runs already there.
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
    alerted = Signal(object, str)
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
        self._polling = self._closed = False
        self._poll_again = False
        self._reconciled_at = float("-inf")
        self._last_problem = ""
        self._writes: deque[tuple[Callable[[], Any], Done | None]] = deque()
        self._writing = False
        self._patience: dict[int, QTimer] = {}
        self._slots = queue.Slots()
        self._alerts: set[tuple[int, str, int]] = set()
        self._beats: dict[int, tuple[int, float]] = {}
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
        """Queues the two demo runs: on a computer with one device they train one after the other."""
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

    def stop(self, runs: Sequence[int], *, after: str = "step", done: Done | None = None) -> None:
        """Asks the trainers of `runs` to end after the `step` or `epoch` they are in, with a checkpoint."""
        for run in runs:
            self._write(partial(launch.stop, self._workspace, run, after=after), done)

    def ask(self, runs: Sequence[int], what: str) -> None:
        """Asks trainers to `pause`, `save` or `evaluate`; the empty word lets those that pause go on."""
        for run in runs:
            self._write(partial(self._workspace.ask, run, what))

    def kill(self, runs: Sequence[int]) -> None:
        """Ends trainers at once; what they did since their last checkpoints is lost."""
        for run in runs:
            self._force(launch.kill, run)

    def branch(self, run: int, step: int, name: str, *, done: Done | None = None) -> None:
        """Makes a run that goes on from a kept checkpoint of `run`, and queues it."""
        self._write(partial(_branch, self._workspace, run, step, name), partial(self._announce_start, done))

    # -- the queue ---------------------------------------------------------------------------------------------

    @property
    def slots(self) -> queue.Slots:
        """How many runs train at once, as of the last poll."""
        return self._slots

    def expected(self) -> dict[int, queue.Expected]:
        """When each queued run is likely to start and end."""
        return queue.forecast(self._runs, self._slots)

    def enqueue(
        self, runs: Sequence[config.Run], preset: str = "", *, parent: int | None = None, priority: int = 0,
        after: int | None = None, done: Done | None = None,
    ) -> None:  # fmt: skip
        """Queues new runs; `done` gets the first one's number."""
        make = partial(_enqueue, self._workspace, tuple(runs), preset, parent, priority, after)
        self._write(make, partial(self._announce_start, done))

    def move(self, runs: Sequence[int], place: int) -> None:
        """Puts queued runs at a place of the queue, 0 being the next; undoable."""
        before = queue.in_order(self._runs)
        order, priorities = [run.id for run in before], {run.id: run.priority for run in before}
        self.undo.push(
            _Command(
                "Move in the queue",
                redo=partial(self._write, partial(queue.move, self._workspace, tuple(runs), place)),
                undo=partial(self._write, partial(self._workspace.arrange, order, priorities)),
            )
        )

    def shift(self, runs: Sequence[int], by: int) -> None:
        """Moves queued runs up (-1) or down (+1) by one; undoable."""
        order = [run.id for run in queue.in_order(self._runs)]
        places = [order.index(run) for run in runs if run in order]
        if places:
            self.move(runs, max(0, (min(places) if by < 0 else max(places) - len(places) + 1) + by))

    def prefer(self, runs: Sequence[int], priority: int) -> None:
        """Gives queued runs a priority; higher ones start first."""
        for run in runs:
            self._write(partial(queue.prefer, self._workspace, run, priority))

    def wait_for(self, runs: Sequence[int], other: int | None) -> None:
        """Makes queued runs wait until `other` has ended."""
        for run in runs:
            self._write(partial(queue.wait_for, self._workspace, run, other))

    def choose_slots(self, **values: Any) -> None:
        """Changes how many runs train at once, or holds the queue."""
        self._write(partial(queue.choose_slots, self._workspace, **values))

    def keep_queue_going(self) -> None:
        """Leaves the queue to a process of its own, for the window closes. At once, not among the writes."""
        if queue.in_order(self._runs) and not queue.is_kept_going(self._workspace):
            queue.keep_going_detached(self._workspace)

    def end(self, run: int) -> None:
        """Ends a trainer that does not answer: a signal, and after a grace time a kill."""
        self._force(launch.end, run)

    def _force(self, function: Callable[[Workspace, int], bool], run: int) -> None:
        # Not among the writes: they would wait for the grace time.
        self._background.run(
            self,
            function,
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

    def configuration(self, run: int, *, done: Callable[[config.Run], None]) -> None:
        """Gives `done` what `run` was told to compute."""
        self._write(partial(self._workspace.config_of, run), done)

    def requeue(self, run: int) -> None:
        """Puts a run that ended early back into the queue; it goes on from its newest checkpoint."""
        self._write(partial(self._workspace.enqueue, run))

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
        """Stops polling for good; the trainers go on, and what was asked already is still written."""
        self._closed = self._polling = True
        self._timer.stop()
        # The answer of a poll under way would start the next one.
        self._background.forget(self, "poll")

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
        if self._closed:
            return
        self._last_problem = ""
        self._quiet_polls = 0 if found.runs is not None or found.scalars else self._quiet_polls + 1
        self._seen = found.seen
        self._slots = found.slots or self._slots
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
        self._tell_alerts()
        self._poll_later()

    def is_stalled(self, run: int) -> bool:
        """Whether the run's trainer has given no sign of life for `STALLED_S`, by this window's own clock."""
        row = self.run(run)
        beats, since = self._beats.get(run, (-1, 0.0))
        return row is not None and row.beats == beats and time.monotonic() - since > STALLED_S

    def _tell_alerts(self) -> None:
        """Announces what is new, once; a sitting that begins anew may announce the same again."""
        now = {}
        for run in self._runs:
            for kind, alert in run.alerts.items():
                now[run.id, kind, int(alert.get("step", 0))] = run
            # Beats are compared with this clock, never with the trainer's: clocks step.
            if run.status == "running":
                if self._beats.get(run.id, (-1, 0.0))[0] != run.beats:
                    self._beats[run.id] = run.beats, time.monotonic()
                if self.is_stalled(run.id):
                    now[run.id, "stalled", run.beats] = run
            else:
                self._beats.pop(run.id, None)
        new = now.keys() - self._alerts
        self._alerts = set(now)
        for key in sorted(new):
            self.alerted.emit(now[key], key[1])

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
        if self._closed:
            return
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
        self._background.run(
            self, function, done=partial(self._written, done), failed=self._write_failed, key="write", urgent=True
        )

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
    if reconcile and seen.waiting:
        # Also when nothing has changed: another process may have been deciding at the last poll.
        queue.start_due(workspace)
    changes = workspace.changes()
    if changes == seen.changes:
        return News(seen)
    runs = tuple(workspace.runs())
    if any(run.status == "queued" for run in runs) and queue.start_due(workspace):
        runs = tuple(workspace.runs())
    waiting = any(run.status == "queued" for run in runs)
    first = seen.scalar < 0
    scalars = () if first else tuple(workspace.scalars_after(seen.scalar, limit=SCALARS_A_POLL))
    if len(scalars) == SCALARS_A_POLL:
        changes = -1  # there is more: the next poll must not think that nothing has changed
    newest = workspace.last_scalar_id() if first else scalars[-1].id if scalars else seen.scalar
    watched = {run.id for run in runs if working(run)} | set(active)
    counts = {run: len(workspace.snapshots(run)) for run in watched}
    grown = tuple(run for run, count in counts.items() if seen.snapshots.get(run, count if first else 0) != count)
    after = Seen(changes, newest, waiting, seen.snapshots | counts)
    return News(after, runs, scalars, grown, queue.slots(workspace))


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

    The poll that follows starts it.
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


def _branch(workspace: Workspace, run: int, step: int, name: str) -> int:
    """Makes a branch and puts it into the queue; its number."""
    made = workspace.branch(run, step, name)
    workspace.enqueue(made)
    return made


def _enqueue(
    workspace: Workspace, runs: Sequence[config.Run], preset: str, parent: int | None, priority: int, after: int | None
) -> int:
    """Puts new runs into the queue; the first one's number."""
    created = []
    for run in runs:
        number = workspace.create_run(run, status="queued", preset=preset, parent=parent)
        if priority or after is not None:
            workspace.change_run(number, priority=priority, after=after)
        created.append(number)
    return created[0]


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
