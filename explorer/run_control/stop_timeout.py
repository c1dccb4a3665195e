"""Determine how long a run may continue after a stop request before it is terminated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec import Struct
from PySide6.QtCore import QObject, QTimer, Signal

from explorer.event_loop.background import Background
from explorer.run_control.actions import Responsiveness, look
from explorer.run_control.poller import working
from trainer.store import RunRow, Workspace

PATIENCE_MS: Final = 15_000
"""How long a trainer may continue after a stop request before its run counts as unresponsive and gets a signal.

A trainer with long steps may continue for `STEPS` of them.
"""
STEPS: Final = 3
MOST_MS: Final = 2**31 - 1
"""The longest time that a timer of Qt takes."""
LAST_MS: Final = 12_000
"""How long the user can still cancel the termination: including the termination, no Stop takes more than 30 s."""
SAVING_MS: Final = 15_000
"""How long a checkpoint that a unresponsive trainer writes may stay as it is before the trainer counts as hanging."""


@dataclass(frozen=True)
class Unresponsive:
    """The state of a run that was asked to stop but is still active."""

    kept: int | None  # Step of its newest checkpoint; None where there is none, or the store does not say.
    left_s: float | None  # Seconds until it is terminated automatically, 0 during termination; None where it is not.
    busy: str  # The activity that delays the termination: `writing its checkpoint`, `evaluating`.


class _Request(Struct):
    """A pending stop request; `look` is the run's state when its timeout expired."""

    timer: QTimer
    look: Responsiveness | None = None
    ends: bool = False
    reminded: bool = False
    busy: str = ""


class StopTimeouts(QObject):
    """Keeps a timeout for every run that was asked to stop after the step.

    Only requests of this window lead to automatic termination, and only while this window is open: a user who
    requested the stop elsewhere, or closed the window, cannot choose to wait.
    """

    became_unresponsive = Signal(int)  # A run continues after a stop request, or its activity changed.
    overdue = Signal(int)  # A run is to be terminated.

    def __init__(self, workspace: Workspace, background: Background, parent: QObject) -> None:
        super().__init__(parent)
        self._workspace, self._background = workspace, background
        self._rows: Sequence[RunRow] = ()
        self._own: set[int] = set()
        self._by_signal: set[int] = set()
        self._requests: dict[int, _Request] = {}

    def of(self, run: int) -> Unresponsive | None:
        """Return the state of `run` if its timeout has expired, else None."""
        request = self._requests.get(run)
        if request is None or request.look is None:
            return None
        left_s = max(request.timer.remainingTime(), 0) / 1000 if request.ends else None
        return Unresponsive(request.look.kept, left_s, request.busy)

    def heard(self, run: int, *, by_signal: bool) -> None:
        """Note that this window asked `run` to stop; by signal if the store could not record the request."""
        self._own.add(run)
        if by_signal:
            self._by_signal.add(run)
        request = self._requests.get(run)
        if request is not None and request.look is not None and not request.ends:
            # Asked again after Wait: that it does not listen is known already.
            self._lose(run, request)
        self.watch(self._rows)

    def forget(self, run: int) -> None:
        """Note that this window asked `run` for something else."""
        self._by_signal.discard(run)
        self.wait(run)

    def wait(self, run: int) -> None:
        """Postpone the termination of `run` until it is asked to stop again."""
        self._own.discard(run)
        if (request := self._requests.get(run)) is not None:
            request.timer.stop()
            request.ends, request.busy = False, ""

    def end(self, run: int) -> bool:
        """Note that the run is being ended; return whether it has had a signal and time to react."""
        self._own.discard(run)
        request = self._requests.get(run)
        if request is None:
            return False
        request.timer.stop()
        return request.reminded

    def watch(self, rows: Sequence[RunRow]) -> None:
        """Start a timeout for every run asked to stop; forget runs that ended or are to continue."""
        self._rows = rows
        at_work = {row.id: row for row in rows if working(row)}
        self._own &= at_work.keys()
        self._by_signal &= at_work.keys()
        stopping = {run for run, row in at_work.items() if self._is_asked(row)}
        for run in self._requests.keys() - stopping:
            self._requests.pop(run).timer.deleteLater()
            self._own.discard(run)
        for run in stopping - self._requests.keys():
            request = _Request(QTimer(self, singleShot=True))
            request.timer.timeout.connect(partial(self._due, run, request))
            request.timer.start(patience_ms(at_work[run]))
            self._requests[run] = request

    def close(self) -> None:
        """Stop all timeouts; the requests stay in the store, and the next window shows unfulfilled ones."""
        for request in self._requests.values():
            request.timer.stop()
        self._requests.clear()
        self._own.clear()

    def _is_asked(self, row: RunRow) -> bool:
        # A trainer that is starting is ended by the request; one that had just begun hears of it like any other.
        if row.status == "starting":
            return False
        return row.asked == "stop" or row.status == "stopping" or (row.id in self._by_signal and not row.asked)

    def _due(self, run: int, request: _Request) -> None:
        if request.look is None:
            self._lose(run, request)
        else:
            self._look(run, request, self._decide)

    def _lose(self, run: int, request: _Request) -> None:
        request.ends = request.reminded = run in self._own
        self._look(run, request, self._report, remind=request.ends)

    def _look(
        self,
        run: int,
        request: _Request,
        then: Callable[[int, _Request, Responsiveness], None],
        *,
        remind: bool = False,
    ) -> None:
        self._background.run(
            self,
            look,
            self._workspace,
            run,
            remind,
            done=partial(then, run, request),
            # A store that answers nothing keeps nobody from being told, nor a trainer from being ended.
            failed=lambda _: then(run, request, Responsiveness()),
            key=f"look {run}",
            urgent=True,
        )

    def _report(self, run: int, request: _Request, look: Responsiveness) -> None:
        if self._requests.get(run) is not request:
            return
        request.look = look
        if request.ends:
            request.timer.start(LAST_MS)
        self.became_unresponsive.emit(run)

    def _decide(self, run: int, request: _Request, look: Responsiveness) -> None:
        if self._requests.get(run) is not request or not request.ends:
            return
        # Signs of life alone are no reason to wait: who gives them between steps makes steps it was told not to make.
        before, request.busy = request.busy, _busy(request.look, look)
        request.look = look
        if not request.busy:
            self.overdue.emit(run)
            return
        request.timer.start(SAVING_MS)
        # An evaluation may take an hour: that it goes on is no news.
        if request.busy != before:
            self.became_unresponsive.emit(run)


def patience_ms(row: RunRow) -> int:
    """Return how long a trainer may take to notice a stop request; it checks between steps only.

    One that pauses makes none, and listens all the time; what it estimates counts the pause as if it had trained.
    """
    left = row.total_steps - row.step
    step_ms = 1e3 * row.eta_s / left if row.eta_s and left > 0 and row.status != "paused" else 0.0
    return round(min(max(PATIENCE_MS, STEPS * step_ms), MOST_MS))


def _busy(before: Responsiveness | None, now: Responsiveness) -> str:
    """Return which delaying activity made progress between two checks; empty if none did."""
    if before is None:
        return ""
    if now.draft and now.draft != before.draft:
        return "writing its checkpoint"
    return "evaluating" if now.measured is not None and now.measured != before.measured else ""
