"""Start and stop detached trainers, watch the store and announce its rows.

Facts come only through the store: what a trainer wrote while no window was open arrives the same way as what
it writes now. Nothing here ends with the window: a trainer is a process of its own session.

A run with the status `queued` waits for its turn (`trainer.scheduling.queue`), which polls start as long as a window is
open. The status is in the store, so the next window, or `trainer queue run`, keeps the promise of the one that queued
the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QUndoStack

from explorer.event_loop.background import Background
from explorer.run_control import actions
from explorer.run_control.poller import PollResult, PollState, news, working
from explorer.run_control.stop_timeout import StopTimeouts, Unresponsive
from explorer.run_control.write_queue import Undoable, WriteQueue
from trainer.config import default_paths
from trainer.errors import reason_words
from trainer.experiments.run_style import RunStyle
from trainer.scheduling import experiments, launch, queue
from trainer.store import RunRow, Workspace

__all__ = ["Jobs", "working"]

POLL_MS: Final = 500
IDLE_POLL_MS: Final = 2000
RECONCILE_S: Final = 2.0
STALLED_S: Final = 90.0
"""Without a sign of life for this long, a running trainer is called stalled; it gives one every two seconds."""
NOTICE_S: Final = 10.0
"""How long a window shows what waits in the queue before the first of it starts."""
BACKUP_MS: Final = 60_000
"""How long a window is open before it makes the day's backup of the database."""
BACKUP_AGAIN_MS: Final = 3_600_000
"""How often it looks whether a new day has come."""
IDLE_AFTER: Final = 6
"""Polls without news, and without an active run, after which polling slows down."""

Done = Callable[[Any], object]


class Jobs(QObject):
    """The only interface between the window and the trainers.

    Every write to the store happens off the GUI thread, one after the other in the order asked; the rows that
    come of it are announced by the next poll, which follows at once.

    Attributes:
        undo: Rename and delete are pushed here.
        styles: How each run of the workspace is drawn, in all views.
    """

    runs_changed = Signal(list)  # All runs that are not deleted, oldest first, as a list of `RunRow`.
    # New `ScalarRow`s, in the order they were logged. Those already in the store when the window opened are not
    # announced: read them with `Workspace.series`.
    scalars_arrived = Signal(list)
    snapshots_changed = Signal(int)  # The run that has a snapshot more (or fewer).
    run_ended = Signal(object)  # A run that was active at the last poll and is no more.
    # A trainer that was asked to stop still runs; `unresponsive` tells when it is terminated.
    became_unresponsive = Signal(object)
    deleted = Signal(list)  # The runs just deleted, so that a banner can offer to undo.
    # A run with which something is wrong, and the kind of the alert; also those of runs already there.
    alerted = Signal(object, str)
    silence_changed = Signal()  # Trainers that live do not answer, or answer again; `silent` tells which.
    failed = Signal(str)  # A sentence: what could not be done, why, and what to do next.
    # How many queued runs start, and in how many seconds; again each second until they do, then 0 runs.
    starts_soon = Signal(int, int)
    look_only_changed = Signal(str)  # Why nothing may train in this workspace; empty once it is the user's own.
    adopted = Signal(int)  # It has just been made the user's own; how many runs wait in its queue, which is then held.

    def __init__(
        self, workspace: Workspace, background: Background, undo: QUndoStack, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.undo = undo
        self._workspace = workspace
        self._background = background
        self._runs: tuple[RunRow, ...] = ()
        self.styles: dict[int, RunStyle] = {}
        self._seen = PollState()
        self._quiet_polls = 0
        self._polling = self._closed = False
        self._poll_again = False
        self.reconciled_at = float("-inf")
        self._last_problem = ""
        self._writes = WriteQueue(background, self)
        self._writes.written.connect(self._written)
        self._writes.failed.connect(self.failed)
        self.stop_timeouts = StopTimeouts(workspace, background, self)
        self.stop_timeouts.became_unresponsive.connect(self._report_unresponsive)
        self.stop_timeouts.overdue.connect(self.end)
        self._forced: dict[int, float | None] = {}
        self._slots = queue.QueueSlots()
        self._look_only = ""
        self._is_read = False
        self._silent: dict[int, str] = {}
        self._alarms = AlertsSeen()
        self._notice = Notice(NOTICE_S)
        self._countdown = QTimer(self, interval=1_000, timeout=self._count_down)
        self._backup = QTimer(self, singleShot=True, timeout=self._back_up)
        self.poll_timer = QTimer(self, singleShot=True, timeout=self.poll)

    @property
    def runs(self) -> tuple[RunRow, ...]:
        """All runs that are not deleted, oldest first, as of the last poll."""
        return self._runs

    @property
    def is_read(self) -> bool:
        """Whether the runs have been read; before that, an empty list means nothing."""
        return self._is_read

    def run(self, run: int) -> RunRow | None:
        """Return the row of `run` as of the last poll; None if it does not exist."""
        return next((row for row in self._runs if row.id == run), None)

    def name_of(self, run: int) -> str:
        """Return the short name of `run`; `run 3` of one that does not exist."""
        row = self.run(run)
        return row.short_name if row is not None else f"run {run}"

    def refused(self) -> bool:
        """Say why nothing may be made in this workspace, and return whether that is so."""
        if self._look_only:
            self.failed.emit(self._workspace.refusal)
        return bool(self._look_only)

    @property
    def look_only(self) -> str:
        """The reason why this workspace is read-only, as of the last poll; empty if it is not."""
        return self._look_only

    @property
    def read_only_reason(self) -> str:
        """The same as the hint of a control that is disabled for it."""
        if not self._look_only:
            return ""
        is_sample = default_paths.is_sample(self._workspace.folder)
        return "The sample is read-only" if is_sample else f"This workspace is read-only: {self._look_only}"

    def adopt(self) -> None:
        """Adopt a read-only workspace as the user's own."""
        self._write(self._workspace.adopt, self.adopted.emit)

    # -- what a person asks for --------------------------------------------------------------------------------

    def do(self, action: Callable[..., Any], *arguments: Any, done: Done | None = None, **options: Any) -> None:
        """Call `action` with the workspace and these arguments, after all earlier ones; `done` takes its result.

        The actions of a person are those of `run_control.actions`, `scheduling.queue` and `scheduling.experiments`.
        """
        self._write(partial(action, self._workspace, *arguments, **options), done)

    def stop(self, runs: Sequence[int], *, after: str = "step", done: Done | None = None) -> None:
        """Ask the trainers of `runs` to stop after the current `step` or `epoch` and to save a checkpoint.

        One that goes on after the step is ended by itself, unless `let_go_on` calls that off; who asks for an epoch has
        accepted that it takes long.
        """
        for run in runs:
            sent = partial(self._stop_sent, run, after, done)
            self._write(partial(launch.stop, self._workspace, run, after=after), sent)

    def ask(self, runs: Sequence[int], what: str) -> None:
        """Ask trainers to `pause`, `save` or `evaluate`; an empty string resumes paused ones."""
        for run in runs:
            self.stop_timeouts.forget(run)
            self._write(partial(self._workspace.runs.ask, run, what))

    def kill(self, runs: Sequence[int]) -> None:
        """Kill trainers; their work since the last checkpoints is lost."""
        for run in runs:
            self.stop_timeouts.end(run)
            self._force(launch.kill, run)

    # -- the queue ---------------------------------------------------------------------------------------------

    @property
    def slots(self) -> queue.QueueSlots:
        """The number of runs that may train at once, as of the last poll."""
        return self._slots

    def expected(self) -> dict[int, queue.Expected]:
        """Return when each queued run is expected to start and end."""
        return queue.forecast(self._runs, self._slots)

    def ends(self) -> dict[int, float | None]:
        """Return in how many seconds each active run is expected to end; None where that is unknown."""
        expected = self.expected()
        active = [run for run in self._runs if run.active]
        return {run.id: expected[run.id].end_s if run.id in expected else run.eta_s for run in active}

    def move(self, runs: Sequence[int], position: int) -> None:
        """Move queued runs to a position in the queue, 0 being next; undoable."""
        before = queue.in_order(self._runs)
        order, priorities = [run.id for run in before], {run.id: run.priority for run in before}
        self.undo.push(
            Undoable(
                "Move in the queue",
                redo=partial(self._write, partial(queue.move, self._workspace, tuple(runs), position)),
                undo=partial(self._write, lambda: self._workspace.runs.arrange(order, priorities)),
            )
        )

    def shift(self, runs: Sequence[int], by: int) -> None:
        """Move queued runs up (-1) or down (+1) by one; undoable."""
        order = [run.id for run in queue.in_order(self._runs)]
        positions = [order.index(run) for run in runs if run in order]
        if positions:
            self.move(runs, max(0, (min(positions) if by < 0 else max(positions) - len(positions) + 1) + by))

    def keep_queue_going(self) -> None:
        """Hand the queue to a separate process as the window closes; runs immediately, not in the write queue."""
        waiting = queue.in_order(self._runs) or (self._runs and experiments.is_going(self._workspace))
        if waiting and not queue.is_kept_going(self._workspace):
            queue.keep_going_detached(self._workspace)

    def rest_queue(self) -> None:
        """End the separate process that runs the queue as the window closes; runs immediately."""
        queue.rest(self._workspace)

    def end(self, run: int) -> None:
        """Terminate a trainer that does not respond: a signal, then a kill after a grace period."""
        row, reminded = self.run(run), self.stop_timeouts.end(run)
        if row is not None:
            self._forced[run] = row.session_at
        # What has been told by a signal already has had its time.
        self._force(partial(launch.end, grace_s=0.0) if reminded else launch.end, run, urgent=reminded)

    def let_go_on(self, runs: Sequence[int]) -> None:
        """Let trainers that were asked to stop take as long as they need; they are no longer killed automatically."""
        for run in runs:
            self.stop_timeouts.wait(run)

    def unresponsive(self, run: int) -> Unresponsive | None:
        """Return the state of a run that was asked to stop but is still active; None for other runs."""
        return self.stop_timeouts.of(run)

    def was_forced(self, row: RunRow) -> bool:
        """Return whether this window has ended, or is about to end, the run's session in `row`."""
        return row.id in self._forced and self._forced[row.id] == row.session_at

    def _stop_sent(self, run: int, after: str, done: Done | None, by_signal: bool) -> None:
        row = self.run(run)
        # The training of another program stops when its loop looks, and is never ended from here.
        if after == "step" and not (row is not None and row.is_companion):
            self.stop_timeouts.heard(run, by_signal=by_signal)
        else:
            self.stop_timeouts.forget(run)
        if done is not None:
            done(None)

    def _report_unresponsive(self, run: int) -> None:
        if (row := self.run(run)) is not None:
            self.became_unresponsive.emit(row)

    def _force(self, function: Callable[[Workspace, int], bool], run: int, *, urgent: bool = False) -> None:
        # Not among the writes: they would wait for the grace time.
        self._background.run(
            self,
            function,
            self._workspace,
            run,
            done=partial(self._ended_by_force, run),
            failed=partial(self._not_ended, run),
            key=f"end {run}",
            urgent=urgent,
        )

    def rename(self, run: int, name: str) -> None:
        """Rename `run`; undoable."""
        row = self.run(run)
        if row is None or row.name == name:
            return
        self.undo.push(
            Undoable(
                f"Rename {row.short_name}",
                redo=partial(self._write, lambda: self._workspace.runs.rename(run, name)),
                undo=partial(self._write, lambda: self._workspace.runs.rename(run, row.name)),
            )
        )

    def delete(self, runs: Sequence[int], *, restored: Callable[[], object] = lambda: None) -> None:
        """Delete `runs` from all views but keep their folders, so that it can be undone; active runs are refused."""
        rows = [row for row in self._runs if row.id in set(runs)]
        busy = [row.short_name for row in rows if working(row)]
        if busy:
            self.failed.emit(f"{', '.join(busy)} is still training. Stop it first, then delete it.")
        rows = [row for row in rows if not working(row)]
        if not rows:
            return
        ids = tuple(row.id for row in rows)
        self.undo.push(
            Undoable(
                f"Delete {rows[0].short_name}" if len(rows) == 1 else f"Delete {len(rows)} runs",
                redo=partial(self._write, partial(actions.each, self._workspace.delete, ids)),
                undo=partial(
                    self._write, lambda: actions.each(self._workspace.runs.restore, ids), lambda _: restored()
                ),
            )
        )
        self.deleted.emit(rows)

    def tag(self, runs: Sequence[int], add: Sequence[str], remove: Sequence[str]) -> None:
        """Add and remove tags of `runs`; undoable."""
        before = {row.id: row.tags for row in self._runs if row.id in set(runs)}
        store = self._workspace.runs

        def undo() -> None:
            for run, tags in before.items():
                store.change(run, tags=tags)

        self.undo.push(
            Undoable(
                "Tag a run" if len(before) == 1 else f"Tag {len(before)} runs",
                redo=partial(self._write, partial(store.tag, tuple(before), tuple(add), tuple(remove))),
                undo=partial(self._write, undo),
            )
        )

    def archive(self, runs: Sequence[int], *, back: bool = False) -> None:
        """Put `runs` away, or take them `back`; undoable."""
        store, ids = self._workspace.runs, tuple(runs)
        archive, unarchive = partial(store.archive, ids), partial(store.unarchive, ids)
        text = f"{'Take back' if back else 'Archive'} {len(ids)} run{'s' * (len(ids) != 1)}"
        redo, undo = (unarchive, archive) if back else (archive, unarchive)
        self.undo.push(Undoable(text, redo=partial(self._write, redo), undo=partial(self._write, undo)))

    # -- watching the store ------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Start polling: immediately, then every 500 ms, or less often while nothing runs or changes."""
        self._backup.start(BACKUP_MS)
        self.poll()

    def emit_again(self) -> None:
        """Emit `runs_changed` with the runs of the last poll, if there was one, for those who connected later."""
        if self._is_read:
            self.runs_changed.emit(list(self._runs))

    def close(self) -> None:
        """Stop polling for good; trainers continue, and pending writes are completed."""
        self._closed = self._polling = True
        self.poll_timer.stop()
        self._countdown.stop()
        self._backup.stop()
        self.stop_timeouts.close()
        # The answer of a poll under way would start the next one.
        self._background.forget(self, "poll")

    def poll(self) -> None:
        """Poll the store off the GUI thread; a request during a poll starts another one after it."""
        if self._polling:
            self._poll_again = True
            return
        self.poll_timer.stop()
        self._polling, self._poll_again = True, False
        now = time.monotonic()
        reconcile = now - self.reconciled_at >= RECONCILE_S
        if reconcile:
            self.reconciled_at = now
        active = tuple(row.id for row in self._runs if working(row))
        self._background.run(
            self,
            news,
            self._workspace,
            self._seen,
            active,
            reconcile,
            self._notice.is_over(now),
            done=self._take,
            failed=self._poll_failed,
            key="poll",
            urgent=True,
        )

    def _take(self, poll: PollResult) -> None:
        if self._closed:
            return
        self._last_problem = ""
        self._quiet_polls = 0 if poll.runs is not None or poll.scalars else self._quiet_polls + 1
        self._seen = poll.seen
        self._slots = poll.slots or self._slots
        if poll.look_only != self._look_only:
            self._look_only = poll.look_only
            self.look_only_changed.emit(poll.look_only)
        if poll.lost:
            self.failed.emit(poll.lost)
        ended = self._ended(poll.runs) if poll.runs is not None else []
        if poll.runs is not None and (poll.runs != self._runs or not self._is_read):
            self._runs, self._is_read, self.styles = poll.runs, True, poll.styles
            self.stop_timeouts.watch(poll.runs)
            self.runs_changed.emit(list(poll.runs))
        if poll.silent is not None and poll.silent != self._silent:
            self._silent = poll.silent
            self.silence_changed.emit()
        if poll.scalars:
            self.scalars_arrived.emit(list(poll.scalars))
        for run in poll.snapshots:
            self.snapshots_changed.emit(run)
        for row in ended:
            self.run_ended.emit(row)
        # What trains on another computer gives its signs of life there.
        if not self._notice.begun and poll.runs is not None:
            self._notice.begin(any(row.status == "queued" for row in poll.runs), time.monotonic())
            self._countdown.start()
        if self._countdown.isActive():
            self._count_down()
        for run, kind in self._alarms.new(() if self._look_only else self._runs, STALLED_S):
            self.alerted.emit(run, kind)
        self._poll_later()

    def _back_up(self) -> None:
        self._backup.start(BACKUP_AGAIN_MS)
        # Nothing to tell when it fails: a damaged database and a full disk are told by those who use them.
        self._background.run(
            self, self._workspace.back_up_daily, done=lambda _: None, failed=lambda _: None, key="backup"
        )

    def _count_down(self) -> None:
        """Announce which run starts soon, and let it start after the notice period."""
        now = time.monotonic()
        if self._notice.is_over(now):
            self._countdown.stop()
            self.starts_soon.emit(0, 0)
            self.reconciled_at = float("-inf")
            if not self._polling:
                self.poll()
            return
        due = [] if self._look_only else queue.due(self._runs, self._slots)
        self.starts_soon.emit(len(due), math.ceil(self._notice.left(now)))

    @property
    def silent(self) -> dict[int, str]:
        """Run -> why its trainer does not respond, and what to do."""
        return dict(self._silent)

    def is_stalled(self, run: int) -> bool:
        """Return whether the run's trainer has sent no heartbeat for `STALLED_S`, by this window's own clock."""
        row = self.run(run)
        return row is not None and self._alarms.is_stalled(row, STALLED_S)

    def _ended_by_force(self, run: int, gone: bool) -> None:
        row = self.run(run)
        if not gone and row is not None:
            self._go_on_after_all(run)
            self.failed.emit(
                f"The trainer of {row.short_name} could not be ended: it is not the process this run started."
            )
        self.poll()

    def _not_ended(self, run: int, error: Exception) -> None:
        self._go_on_after_all(run)
        self.failed.emit(reason_words(error))

    def _go_on_after_all(self, run: int) -> None:
        """Cancel the countdown of a run that could not be ended; Stop tries again."""
        self.stop_timeouts.wait(run)
        self._forced.pop(run, None)

    def _ended(self, runs: Sequence[RunRow]) -> list[RunRow]:
        before = {row.id for row in self._runs if working(row)}
        return [row for row in runs if row.id in before and not working(row)]

    def _poll_failed(self, error: Exception) -> None:
        """Report a store error once and keep polling, because a disk may return."""
        if self._closed:
            return
        problem = reason_words(error)
        if problem != self._last_problem:
            self._last_problem = problem
            self.failed.emit(problem)
        self._quiet_polls = IDLE_AFTER
        self._poll_later()

    def _poll_later(self) -> None:
        self._polling = False
        idle = self._quiet_polls >= IDLE_AFTER and not any(working(row) for row in self._runs)
        self.poll_timer.start(0 if self._poll_again else IDLE_POLL_MS if idle else POLL_MS)

    # -- writing, one after the other --------------------------------------------------------------------------

    def _write(self, function: Callable[[], Any], done: Done | None = None) -> None:
        self._writes.add(function, done)

    def _written(self) -> None:
        self._quiet_polls = 0
        self.poll()


class Notice:
    """Delays the queue's start until the user has had time to see and pause it.

    Args:
        seconds: How long what waits is shown first.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: float | None = None

    @property
    def begun(self) -> bool:
        """Whether the waiting runs are known."""
        return self._until is not None

    def begin(self, waiting: bool, now: float) -> None:
        """Start the notice period if runs are waiting; later calls have no effect."""
        if self._until is None:
            self._until = now + self._seconds if waiting else now

    def left(self, now: float) -> float:
        """Return the seconds until the queue may start; the full period until `begin`."""
        return self._seconds if self._until is None else max(0.0, self._until - now)

    def is_over(self, now: float) -> bool:
        """Return whether the queue may start runs."""
        return self._until is not None and now >= self._until


class AlertsSeen:
    """The alerts already shown, and each trainer's last heartbeat by this window's own clock."""

    def __init__(self) -> None:
        self._known: set[tuple[int, str, int]] = set()
        self._beats: dict[int, tuple[int, float]] = {}

    def is_stalled(self, row: RunRow, after_s: float) -> bool:
        """Return whether the run's trainer has sent no heartbeat for that long."""
        beats, since = self._beats.get(row.id, (-1, 0.0))
        return row.beats == beats and time.monotonic() - since > after_s

    def new(self, runs: Sequence[RunRow], after_s: float) -> list[tuple[RunRow, str]]:
        """Return runs and alert kinds not shown yet; a new session of a run may repeat an alert."""
        now = {}
        for run in runs:
            for kind, alert in run.alerts.items():
                now[run.id, kind, int(alert.get("step", 0))] = run
            # Beats are compared with this clock, never with the trainer's: clocks step.
            if run.status == "running":
                if self._beats.get(run.id, (-1, 0.0))[0] != run.beats:
                    self._beats[run.id] = run.beats, time.monotonic()
                if self.is_stalled(run, after_s):
                    now[run.id, "stalled", run.beats] = run
            else:
                self._beats.pop(run.id, None)
        new, self._known = now.keys() - self._known, set(now)
        return [(now[key], key[1]) for key in sorted(new)]
