"""The process that draws previews of figures while the export dialog is open: the newest question is answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QCoreApplication, QObject, QProcess, QTimer, Signal

from explorer.model_client.child_process import ChildProcess
from trainer.untrusted import safe_subprocess
from trainer.untrusted.files import parse_json

DELAY_MS: Final = 150
"""After the last change: not every letter and click is drawn."""
GRACE_MS: Final = 2_000
_ENDED: Final = "The preview has ended unexpectedly. Close this dialog and open it again."


class FigurePreviews(QObject):
    """Draws with `trainer preview`; an answer to an older question is left out."""

    drawn = Signal(str, object)  # File of the picture and what is known of the figure, a dictionary: size and parts.
    failed = Signal(str)  # A sentence why there is no picture.
    busy_changed = Signal(bool)  # Whether a picture is on its way.

    def __init__(
        self,
        workspace: Path,
        parent: QObject | None = None,
        *,
        program: Sequence[str] = tuple(safe_subprocess.python("-m", "trainer")),
    ) -> None:
        """Start the process, which imports what it needs meanwhile."""
        super().__init__(parent)
        self._number, self._command, self._output = 0, [""], b""
        self._in_flight = self._closed = False
        self._sent = 0
        self._timer = QTimer(self, singleShot=True, interval=DELAY_MS, timeout=self._send)
        self._process = ChildProcess([*program, "preview", "--workspace", str(workspace)], self)
        self._process.start()

    def ask(self, command: Sequence[str]) -> None:
        """Draw this command soon, unless another one follows."""
        self._number += 1
        self._command = list(command)
        self.busy_changed.emit(True)
        self._timer.start()

    def close(self) -> None:
        """End the process without waiting for it: it reads the end of its input, or is killed a little later."""
        if self._closed:
            return
        self._closed = True
        self._timer.stop()
        self.blockSignals(True)
        # The dialog goes now; this object stays until its process has ended.
        self.setParent(QCoreApplication.instance())
        self._process.closeWriteChannel()
        QTimer.singleShot(GRACE_MS, self._process, self._process.kill)
        if self._process.state() == QProcess.ProcessState.NotRunning:
            self.deleteLater()

    def _send(self) -> None:
        # One question at a time: what was asked meanwhile and is old by then is never drawn.
        if self._in_flight or self._sent == self._number:
            return
        if self._process.state() == QProcess.ProcessState.NotRunning:
            self._fail(_ENDED)
            return
        self._in_flight = True
        self._sent = self._number
        line = json.dumps({"number": self._number, "command": self._command})
        self._process.write(f"{line}\n".encode())

    def on_started(self, child: ChildProcess) -> None:
        """Nothing: questions wait in its pipe."""

    def on_output(self, child: ChildProcess) -> None:
        """Take the lines that are whole."""
        self._output += bytes(child.readAllStandardOutput().data())
        *lines, self._output = self._output.split(b"\n")
        for line in lines:
            self._take(line)

    def on_errors(self, child: ChildProcess) -> None:
        """Drop what libraries say; problems come as answers."""
        child.readAllStandardError()

    def on_failed_start(self, child: ChildProcess) -> None:
        """Say that there are no previews."""
        self._fail(f"The preview could not start: {child.errorString()}.")

    def on_finished(self, child: ChildProcess) -> None:
        """Go, or say that the process should not have ended."""
        if self._closed:
            self.deleteLater()
            return
        self._fail(_ENDED)

    def _fail(self, reason: str) -> None:
        self._in_flight = False
        self.busy_changed.emit(False)
        self.failed.emit(reason)

    def _take(self, line: bytes) -> None:
        try:
            answer: dict[str, Any] = parse_json(line.decode("utf-8", "replace"))
        except ValueError:
            return
        self._in_flight = False
        if answer.get("number") != self._number:
            self._send()
            return
        self.busy_changed.emit(False)
        if problem := answer.get("problem"):
            self.failed.emit(str(problem))
        else:
            self.drawn.emit(str(answer.get("file", "")), answer.get("figure") or {})
