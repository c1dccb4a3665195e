"""Any view -> figure and data: the view's own headless command, run beside the window."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QProcess, Signal

ROOT: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Export:
    """One export: the command (after `trainer`) and the file it writes."""

    command: tuple[str, ...]
    file: Path


class Exporter(QObject):
    """Runs exports as processes of their own, as many as are asked for.

    Signals:
        started: An export runs.
        done: An export has written its file.
        failed: An export that did not, and the sentence why.
    """

    started = Signal(object)
    done = Signal(object)
    failed = Signal(object, str)

    def __init__(self, workspace: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._running: dict[QProcess, Export] = {}

    @property
    def running(self) -> tuple[Export, ...]:
        """What is being drawn now."""
        return tuple(self._running.values())

    def start(self, command: Sequence[str], file: Path) -> Export:
        """Begins to write `file` with `trainer *command --out file`; one of `done` and `failed` follows."""
        export = Export(tuple(command), file)
        process = QProcess(self)
        process.setProcessChannelMode(QProcess.ProcessChannelMode.MergedChannels)
        process.finished.connect(lambda code, status, p=process: self._ended(p, code, status))
        process.errorOccurred.connect(lambda error, p=process: self._could_not_start(p, error))
        self._running[process] = export
        arguments = [*command, "--workspace", str(self._workspace), "--out", str(file)]
        process.start(sys.executable, ["-m", "trainer", *arguments])
        self.started.emit(export)
        return export

    def close(self) -> None:
        """Ends what is still running, without a word."""
        for process in list(self._running):
            del self._running[process]
            process.kill()
            process.waitForFinished(2_000)

    def _ended(self, process: QProcess, code: int, status: QProcess.ExitStatus) -> None:
        export = self._running.pop(process, None)
        output = bytes(process.readAll().data()).decode("utf-8", "replace")
        process.deleteLater()
        if export is None:
            return
        if status == QProcess.ExitStatus.NormalExit and code == 0 and export.file.is_file():
            self.done.emit(export)
        else:
            self.failed.emit(export, _last_words(output) or f"The export ended with status {code} and wrote nothing.")

    def _could_not_start(self, process: QProcess, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            export = self._running.pop(process, None)
            process.deleteLater()
            if export is not None:
                self.failed.emit(export, f"The export could not start: {process.errorString()}.")


def shell_command(command: Sequence[str], workspace: Path) -> str:
    """A line for a POSIX shell that does the same as `trainer *command`, from any folder.

    In a checkout it goes through `uv run`, as the README does; installed, `trainer` is a program of its own. An
    `export` that names no file yet gets one, so that the line runs as it is.
    """
    program = ["uv", "run", "--project", str(ROOT), "trainer"] if (ROOT / "pyproject.toml").is_file() else ["trainer"]
    out = ["--out", f"{file_stem(command)}.svg"] if command[:1] == ["export"] and "--out" not in command else []
    return shlex.join([*program, *command, *out, "--workspace", str(workspace)])


def file_stem(command: Sequence[str]) -> str:
    """A file name (without suffix) that says what the command draws: its kind and its runs, `similarity-1-2`."""
    words = [w for w in command[:2] if w.isidentifier() and w != "export"] or ["export"]
    if "--runs" in command:
        start = list(command).index("--runs") + 1
        runs = []
        for word in command[start:]:
            if word.startswith("--"):
                break
            runs.append("".join(c if c.isalnum() else "-" for c in word))
        words += runs[:4]
    return "-".join(words[:1] + words[-len(words) + 1 :] if len(words) > 1 else words)


def _last_words(output: str) -> str:
    """The last line a process wrote: a `trainer` command ends with its sentence."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else ""
