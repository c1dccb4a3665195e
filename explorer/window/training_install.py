"""The process that installs torch for the window: `trainer install`, its progress, and a pause."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

from PySide6.QtCore import QObject, Signal

from explorer.model_client.child_process import ChildProcess
from trainer.untrusted import safe_subprocess

State = Literal["idle", "running", "paused", "failed", "done"]

_PROGRESS: Final = re.compile(r"^\s*(\d+) ?% (.*)$")
_END_MS: Final = 2_000


class TrainingInstall(QObject):
    """Runs the installation once at a time.

    Attributes:
        share, note: How far it is.
        reason: Why it failed, a sentence.
        words: Everything that it wrote, for a report.
    """

    changed = Signal()  # State or progress are another now.

    def __init__(self, parent: QObject | None = None, *, program: Sequence[str] | None = None) -> None:
        """Create it without starting anything; `program` replaces `trainer install` in tests."""
        super().__init__(parent)
        self._program = list(program or safe_subprocess.python("-m", "trainer", "install"))
        self._process: ChildProcess | None = None
        self._rest = b""
        self.state: State = "idle"
        self.share, self.note, self.reason, self.words = 0.0, "", "", ""

    @property
    def busy(self) -> bool:
        """Whether the process is there, working or paused."""
        return self._process is not None

    def start(self, arguments: Sequence[str]) -> None:
        """Start installing; what an earlier try has downloaded is not downloaded again."""
        if self.busy:
            return
        self.share, self.note, self.reason, self.words, self._rest = 0.0, "starting", "", "", b""
        self._process = ChildProcess([*self._program, *arguments], self)
        self._process.start()
        self._become("running")

    def pause(self) -> None:
        """Stop the process and what it started where they are."""
        if self.state == "running":
            self._each(lambda process: process.suspend())
            self._become("paused")

    def resume(self) -> None:
        """Let them go on."""
        if self.state == "paused":
            self._each(lambda process: process.resume())
            self._become("running")

    def cancel(self) -> None:
        """End them; what was downloaded is kept for the next try."""
        process, self._process = self._process, None
        if process is None:
            return
        self._each(lambda child: child.kill(), process)
        process.waitForFinished(_END_MS)
        process.deleteLater()
        self._become("idle")

    def on_started(self, child: ChildProcess) -> None:
        """Nothing to do: its first line tells."""

    def on_output(self, child: ChildProcess) -> None:
        """Ignore the result: the exit status says it."""
        child.readAllStandardOutput()

    def on_errors(self, child: ChildProcess) -> None:
        """Take the lines of progress; the others are words for a report."""
        if child is not self._process:
            return
        *lines, self._rest = (self._rest + child.readAllStandardError().data()).split(b"\n")
        for line in lines:
            self._take(line.decode("utf-8", "replace").rstrip())
        self.changed.emit()

    def on_failed_start(self, child: ChildProcess) -> None:
        """Report why the process could not be started."""
        if child is self._process:
            self._process = None
            self.reason = f"The installation could not be started: {child.errorString()}."
            child.deleteLater()
            self._become("failed")

    def on_finished(self, child: ChildProcess) -> None:
        """Report how it ended."""
        if child is not self._process:
            return
        self.on_errors(child)
        self._process = None
        child.deleteLater()
        good = child.exitStatus() == ChildProcess.ExitStatus.NormalExit and child.exitCode() == 0
        if not good:
            said = [line for line in self.words.splitlines() if line.strip()]
            last = said[-1] if said else f"It ended with status {child.exitCode()} and said nothing."
            self.reason = last.removeprefix("trainer install: ")
        self._become("done" if good else "failed")

    def _take(self, line: str) -> None:
        if match := _PROGRESS.match(line):
            self.share, self.note = int(match[1]) / 100, match[2]
        elif line:
            self.words += f"{line}\n"

    def _each(self, act: Callable[..., object], process: ChildProcess | None = None) -> None:
        for child in list(_family((process or self._process).processId())):  # type: ignore[union-attr]
            with contextlib.suppress(_gone()):
                act(child)

    def _become(self, state: State) -> None:
        self.state = state
        self.changed.emit()


def _gone() -> type[Exception]:
    import psutil

    return psutil.Error


def _family(pid: int) -> Iterator[object]:
    """Yield the process and what it started; the parent first, so that it starts nothing meanwhile."""
    import psutil

    try:
        parent = psutil.Process(pid)
        yield parent
        yield from parent.children(recursive=True)
    except psutil.Error:
        return
