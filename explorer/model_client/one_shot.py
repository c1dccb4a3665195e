"""Run each long request in its own process, so that it can be cancelled and never delays short ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from PySide6.QtCore import QObject, QTimer, Signal

from explorer.model_client.worker_process import Pending, WorkerProcess
from trainer.messages import Failure

AT_ONCE: Final = 2
"""Long questions answered side by side; further ones wait their turn."""
WAITS: Final = "waiting for its turn"
"""How the note begins that a question in the queue tells as its progress."""
STARTS: Final = "starting"
_CALLED: Final = {
    "saliency": "a saliency map is computed",
    "embed_independent": "images are embedded",
    "evaluate": "an evaluation runs",
    "read_data": "data is read",
    "measure_run": "a run is measured",
    "replay_step": "a step is replayed",
}


class OneShotProcesses(QObject):
    """Handles each request in a new process, at most `AT_ONCE` at a time, in the order received."""

    died = Signal(str, str)  # A process ended without being asked to; its name, and its last words.

    def __init__(self, command: Sequence[str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._command = tuple(command)
        self._waiting: OrderedDict[int, Pending] = OrderedDict()
        self._running: dict[int, WorkerProcess] = {}
        self._asked: dict[int, Pending] = {}
        self._reported: set[int] = set()

    def ask(self, number: int, pending: Pending) -> None:
        """Start a process for the request, now or when a slot is free."""
        self._waiting[number] = pending
        self._start_next()
        self._report_waiting_soon()

    def cancel(self, number: int) -> None:
        """End the request's process; its `failed` is called later."""
        pending = self._waiting.pop(number, None) or self._asked.get(number)
        if pending is None:
            return
        self._forget(number)
        QTimer.singleShot(0, self, lambda: _fail(pending, Failure("cancelled", "Cancelled.")))

    def close(self) -> None:
        """End all processes within a second; no callback is called afterwards."""
        self._waiting.clear()
        running, self._running = self._running, {}
        self._asked.clear()
        for process in running.values():
            process.retire()
        for process in running.values():
            process.finish_closing()

    def _start_next(self) -> None:
        while self._waiting and len(self._running) < AT_ONCE:
            number, pending = self._waiting.popitem(last=False)
            process = WorkerProcess(self._command, "process of this request", self)
            process.died.connect(self.died)
            self._running[number], self._asked[number] = process, pending
            if number in self._reported:
                self._reported.discard(number)
                QTimer.singleShot(0, self, lambda pending=pending: _note(pending, STARTS))
            process.ask(number, replace(pending, done=self._done(number), failed=self._failed(number), owner=None))

    def _done(self, number: int) -> Callable[[Any], None]:
        def done(answer: Any) -> None:
            pending = self._asked[number]
            self._forget(number)
            if pending.wanted:
                pending.done(answer)

        return done

    def _failed(self, number: int) -> Callable[[Failure], None]:
        def failed(failure: Failure) -> None:
            pending = self._asked[number]
            self._forget(number)
            # The process does not come back by itself, as the others do.
            _fail(pending, replace(failure, next="Ask again.") if failure.kind == "ended" else failure)

        return failed

    def _forget(self, number: int) -> None:
        self._asked.pop(number, None)
        process = self._running.pop(number, None)
        if process is not None:
            process.retire()
        self._start_next()
        self._report_waiting_soon()

    def _report_waiting_soon(self) -> None:
        """Report the waiting state later, because the caller does not know the request's number yet."""
        if self._waiting:
            QTimer.singleShot(0, self, self._report_waiting)

    def _report_waiting(self) -> None:
        under_way = [_CALLED.get(pending.question.ask, "a request is handled") for pending in self._asked.values()]
        for position, (number, pending) in enumerate(list(self._waiting.items())):
            self._reported.add(number)
            before = f", {position} before it" if position else ""
            _note(pending, f"{WAITS} while {' and '.join(under_way)}{before}")


def _note(pending: Pending, text: str) -> None:
    if pending.wanted and pending.progress is not None:
        pending.progress(0.0, text)


def _fail(pending: Pending, failure: Failure) -> None:
    if pending.wanted:
        pending.failed(failure)
