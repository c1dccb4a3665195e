"""One server process: started on first use, restarted when it dies, ended with the window."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import shiboken6
from PySide6.QtCore import QObject, QProcess, QTimer, Signal

from explorer.model_client.child_process import ChildProcess
from trainer.messages import Cancel, Failure, MessageError, Question, WarmUp, decode_answer, encode

State = Literal["cold", "warming", "warm", "busy", "gone"]

FIRST_PAUSE_MS: Final = 250
LONGEST_PAUSE_MS: Final = 30_000
DEATHS_ALLOWED: Final = 4
"""Deaths in a row, without an answer between them, before it waits for the next question to be started again."""
CANCEL_GRACE_MS: Final = 5_000
CLOSE_GRACE_MS: Final = 400
LINES_KEPT: Final = 50


@dataclass(frozen=True)
class Pending:
    """A request without a response yet, and its callbacks."""

    question: Question
    done: Callable[[Any], None]
    failed: Callable[[Failure], None]
    progress: Callable[[float, str], None] | None = None
    owner: QObject | None = None

    @property
    def wanted(self) -> bool:
        """Whether a receiver of the response still exists."""
        return self.owner is None or shiboken6.isValid(self.owner)


class WorkerProcess(QObject):
    """A child process that speaks JSON lines, and its pending requests."""

    # `cold` before the first start, `warming` until it is ready, `warm` while idle, `busy` while it answers,
    # `gone` when it died too often.
    state_changed = Signal(str)
    died = Signal(str, str)  # It ended without being asked to; its name, and its last words.

    def __init__(self, command: Sequence[str], name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._command, self._name = list(command), name
        self._process: ChildProcess | None = None
        self._pending: dict[int, Pending] = {}
        self._cancelled: set[int] = set()
        self._given_up: set[ChildProcess] = set()
        self._warm_up: tuple[int, WarmUp] | None = None
        self._output, self._errors = b"", b""
        self._last_words: deque[str] = deque(maxlen=LINES_KEPT)
        self._deaths = 0
        self._closed = False
        self.state: State = "cold"
        self._again = QTimer(self, singleShot=True, timeout=self._start)

    @property
    def has_warm_up(self) -> bool:
        """Whether a warm-up request is set for the next start."""
        return self._warm_up is not None

    @property
    def last_words(self) -> list[str]:
        """The newest lines of stderr, oldest first."""
        return list(self._last_words)

    def warm_up(self, number: int, question: WarmUp) -> None:
        """Load what `question` names, now and after every restart."""
        self._warm_up = (number, question)
        self.ask(number, Pending(question, _ignore, _ignore))

    def ask(self, number: int, pending: Pending) -> None:
        """Send the request, or keep it until the process has started."""
        if self._closed:
            return
        self._pending[number] = pending
        if self._running:
            self._send(number, pending.question)
        elif self._process is None and not self._again.isActive():
            self._deaths = 0
            self._start()
        self._announce()

    def cancel(self, number: int, *, by_ending: bool) -> None:
        """Cancel one request; `by_ending` ends the process and resends its other requests."""
        if number not in self._pending:
            return
        is_next = next(iter(self._pending)) == number
        pending = self._pending.pop(number)
        QTimer.singleShot(0, self, lambda: self._fail(pending, Failure("cancelled", "Cancelled.")))
        if self._running and by_ending and is_next:
            self._restart()
        elif self._running:
            self._send(0, Cancel(target=number))
            self._cancelled.add(number)
            QTimer.singleShot(CANCEL_GRACE_MS, self, lambda: self._end_if_stuck(number))
        self._announce()

    def retire(self) -> None:
        """End the process without waiting for it, and delete this object once it has exited."""
        self.begin_closing()
        process = self._process
        if process is None or process.state() == QProcess.ProcessState.NotRunning:
            self.deleteLater()
            return
        process.finished.connect(self.deleteLater)
        process.kill()

    def begin_closing(self) -> None:
        """Ask the process to exit and accept nothing more from it."""
        self._closed = True
        self._again.stop()
        self._pending.clear()
        if self._process is not None:
            self._process.closeWriteChannel()

    def finish_closing(self) -> None:
        """Wait for the process to exit, and kill it if it does not."""
        for given_up in tuple(self._given_up):
            given_up.waitForFinished(CLOSE_GRACE_MS)
        process, self._process = self._process, None
        if process is None:
            return
        for push in (lambda: None, process.terminate, process.kill):
            push()
            if process.state() == QProcess.ProcessState.NotRunning or process.waitForFinished(CLOSE_GRACE_MS):
                break
        self._set_state("cold")

    # -- the life of the process -------------------------------------------------------------------------------

    @property
    def _running(self) -> bool:
        return self._process is not None and self._process.state() == QProcess.ProcessState.Running

    def _start(self) -> None:
        if self._closed or self._process is not None:
            return
        process = ChildProcess(self._command, self)
        self._process, self._output, self._errors = process, b"", b""
        self._cancelled.clear()
        if self._warm_up is not None and self._warm_up[0] not in self._pending:
            number, question = self._warm_up
            warm_up = {number: Pending(question, _ignore, _ignore)}
            # A model answers faster once it is warm; a projection may not need what is compiled for UMAP.
            self._pending = self._pending | warm_up if question.projections else warm_up | self._pending
        process.start()
        self._announce()

    def _is_current(self, child: ChildProcess) -> bool:
        """Return whether `child` is the current process; events of an abandoned one are ignored."""
        return child is self._process and not self._closed

    def on_started(self, child: ChildProcess) -> None:
        """Send the waiting requests."""
        if self._is_current(child):
            for number, pending in self._pending.items():
                self._send(number, pending.question)

    def on_failed_start(self, child: ChildProcess) -> None:
        """Handle a failed start like an immediate exit."""
        if self._is_current(child):
            self._last_words.append(child.errorString())
            self.on_finished(child)

    def on_finished(self, child: ChildProcess) -> None:
        """Fail the pending requests and restart the process after a pause."""
        self._given_up.discard(child)
        if not self._is_current(child):
            return
        self.on_output(child)
        self.on_errors(child)
        if not self._is_current(child):
            return  # whoever took its last answer has closed this
        self._last_words.append(self._errors.decode("utf-8", errors="replace"))
        self._forget_process()
        last_line = next((line for line in reversed(self._last_words) if line.strip()), "no message")
        self.died.emit(f"The {self._name}", "\n".join(self._last_words))
        failure = Failure(
            "ended", f"The {self._name} ended: {last_line}.", "It restarts automatically; then try again."
        )
        lost, self._pending = self._pending, {}
        self._deaths += 1
        if self._deaths <= DEATHS_ALLOWED:
            self._again.start(min(FIRST_PAUSE_MS * 2 ** (self._deaths - 1), LONGEST_PAUSE_MS))
        self._announce()
        for pending in lost.values():
            self._fail(pending, failure)

    def _restart(self) -> None:
        """Restart the process without counting a failure; pending requests are sent to the new one."""
        # Kept until it has really ended: Qt warns of a process that is destroyed while it runs.
        self._given_up.add(self._process)
        self._process.kill()
        self._process = None
        self._start()

    def _end_if_stuck(self, number: int) -> None:
        if number in self._cancelled and self._running:
            self._restart()

    def _forget_process(self) -> None:
        self._process.deleteLater()
        self._process = None

    # -- lines -------------------------------------------------------------------------------------------------

    def _send(self, number: int, question: Question) -> None:
        self._process.write(encode(number, question).encode() + b"\n")

    def on_output(self, child: ChildProcess) -> None:
        """Read complete lines."""
        if not self._is_current(child):
            return
        *lines, self._output = (self._output + child.readAllStandardOutput().data()).split(b"\n")
        for line in lines:
            self._take(line)

    def on_errors(self, child: ChildProcess) -> None:
        """Keep the newest lines."""
        if not self._is_current(child):
            return
        # Cut at line ends, so that a character split between two reads stays whole.
        *lines, self._errors = (self._errors + child.readAllStandardError().data()).split(b"\n")
        self._last_words.extend(line.decode("utf-8", errors="replace").rstrip() for line in lines)

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            number = message["id"]
        except (ValueError, KeyError, TypeError):
            self._last_words.append(line.decode("utf-8", errors="replace"))
            return
        if "progress" not in message:
            self._cancelled.discard(number)
        pending = self._pending.get(number)
        if pending is None:
            return
        if "progress" in message:
            if pending.progress is not None and pending.wanted:
                pending.progress(float(message["progress"]), str(message.get("note", "")))
            return
        del self._pending[number]
        self._deaths = 0
        self._announce()
        if "answer" not in message:
            self._fail(pending, Failure(**message["error"]))
        elif pending.wanted:
            self._give(pending, message["answer"])

    def _give(self, pending: Pending, document: Any) -> None:
        try:
            answer = decode_answer(pending.question, document)
        except MessageError as error:
            again = "This is a bug in the application."
            self._fail(pending, Failure("bug", f"The {self._name} sent an unexpected answer: {error}.", again))
            return
        pending.done(answer)

    def _fail(self, pending: Pending, failure: Failure) -> None:
        if pending.wanted and not self._closed:
            pending.failed(failure)

    # -- state -------------------------------------------------------------------------------------------------

    def _announce(self) -> None:
        if self._process is None:
            idle: State = "cold" if self._warm_up is None else "gone"
            self._set_state("warming" if self._again.isActive() else idle)
        elif any(isinstance(pending.question, WarmUp) for pending in self._pending.values()):
            self._set_state("warming")
        else:
            self._set_state("busy" if self._pending else "warm")

    def _set_state(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self.state_changed.emit(state)


def _ignore(_: object) -> None:
    """Ignore a response that is no longer needed."""
