"""A child process as a QProcess, and the protocol of its listener."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import shiboken6
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Slot

from trainer.untrusted import safe_subprocess


class Listener(Protocol):
    """Receives the events of a child process on the GUI thread."""

    def on_started(self, child: ChildProcess) -> None:
        """Handle that the process has started."""

    def on_output(self, child: ChildProcess) -> None:
        """Handle output of the process."""

    def on_errors(self, child: ChildProcess) -> None:
        """Handle output on stderr."""

    def on_failed_start(self, child: ChildProcess) -> None:
        """Handle that the program does not exist."""

    def on_finished(self, child: ChildProcess) -> None:
        """Handle that the process has exited."""


def keep_safe(process: QProcess, more: Mapping[str, str] | None = None) -> None:
    """Set the environment and working folder of `trainer.untrusted.safe_subprocess` on a process before it starts."""
    environment = QProcessEnvironment()
    for name, value in safe_subprocess.environment(more).items():
        environment.insert(name, value)
    process.setProcessEnvironment(environment)
    process.setWorkingDirectory(safe_subprocess.NEUTRAL)


class ChildProcess(QProcess):
    """A process that reports its events to its parent while both exist.

    It listens to itself with slots of its own. When Qt destroys it with its parent, Qt ends the program and says so
    from inside the destructor; slots of this class are gone by then, a function of Python would still be called, and
    would find a process that is deleted already.
    """

    def __init__(self, command: Sequence[str], parent: QObject) -> None:
        """Create the process without starting it; `parent` is a `Listener`."""
        super().__init__(parent)
        keep_safe(self, {"PYTHONFAULTHANDLER": "1"})
        self.setProgram(command[0])
        self.setArguments(list(command[1:]))
        self.started.connect(self._begin)
        self.readyReadStandardOutput.connect(self._hear)
        self.readyReadStandardError.connect(self._read_stderr)
        self.errorOccurred.connect(self._err)
        self.finished.connect(self._end)

    def _listener(self) -> Listener | None:
        if not shiboken6.isValid(self):
            return None
        parent = self.parent()
        return parent if parent is not None and shiboken6.isValid(parent) else None  # type: ignore[return-value]

    @Slot()
    def _begin(self) -> None:
        if listener := self._listener():
            listener.on_started(self)

    @Slot()
    def _hear(self) -> None:
        if listener := self._listener():
            listener.on_output(self)

    @Slot()
    def _read_stderr(self) -> None:
        if listener := self._listener():
            listener.on_errors(self)

    @Slot(QProcess.ProcessError)
    def _err(self, error: QProcess.ProcessError) -> None:
        # Every other error is followed by `finished`.
        if error == QProcess.ProcessError.FailedToStart and (listener := self._listener()):
            listener.on_failed_start(self)

    @Slot(int, QProcess.ExitStatus)
    def _end(self, _code: int, _status: QProcess.ExitStatus) -> None:
        if listener := self._listener():
            listener.on_finished(self)
