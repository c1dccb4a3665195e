"""Export a view's figure or data by running the view's own `trainer` command in a separate process."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from PySide6.QtCore import QObject, QProcess, Signal

from explorer.model_client.child_process import keep_safe
from trainer.messages import PROGRESS_VARIABLE, decode_progress
from trainer.untrusted import safe_subprocess, shell

ROOT: Final = Path(__file__).resolve().parents[1]
MOST_NAMED: Final = 4
MOST_LETTERS: Final = 72
"""Runs that a file is named after, and letters of all their names."""


class Export(Struct, frozen=True):
    """One export: the command (after `trainer`) and the output file."""

    command: tuple[str, ...]
    file: Path


class Exporter(QObject):
    """Runs each export in its own process; any number may run at once."""

    started = Signal(object)  # An export runs.
    progressed = Signal(object, float, str)  # A running export, the share done and a note.
    cancelled = Signal(object)  # An export that was ended because somebody asked for it.
    done = Signal(object)  # An export has written its file.
    failed = Signal(object, str)  # An export that did not, and the sentence why.

    def __init__(
        self,
        workspace: Path,
        parent: QObject | None = None,
        *,
        program: Sequence[str] = tuple(safe_subprocess.python("-m", "trainer")),
    ) -> None:
        """Create the exporter without starting a process; tests replace `trainer` with `program`."""
        super().__init__(parent)
        self._workspace, self._program = workspace, tuple(program)
        self._running: list[_Drawing] = []

    @property
    def running(self) -> tuple[Export, ...]:
        """The exports that are running."""
        return tuple(drawing.export for drawing in self._running)

    def start(self, command: Sequence[str], file: Path) -> Export:
        """Start writing `file` with `trainer *command --out file`; either `done` or `failed` follows."""
        export = Export(tuple(command), file)
        drawing = _Drawing(export, self)
        drawing.ended.connect(self._take)
        drawing.progressed.connect(self.progressed)
        self._running.append(drawing)
        arguments = [*command, "--workspace", str(self._workspace), "--out", str(file.absolute())]
        keep_safe(drawing, {PROGRESS_VARIABLE: "json"})
        drawing.start(self._program[0], [*self._program[1:], *arguments])
        self.started.emit(export)
        return export

    def cancel(self, export: Export) -> None:
        """Cancel an export; no partial file remains, because files are written atomically."""
        for drawing in [drawing for drawing in self._running if drawing.export is export]:
            self._running.remove(drawing)
            drawing.finished.connect(drawing.deleteLater)
            drawing.terminate()
            self.cancelled.emit(export)

    def close(self) -> None:
        """End all running exports without emitting signals."""
        running, self._running = self._running, []
        for drawing in running:
            drawing.kill()
            drawing.waitForFinished(2_000)

    def _take(self, drawing: _Drawing, problem: str) -> None:
        if drawing not in self._running:
            return
        self._running.remove(drawing)
        drawing.deleteLater()
        if problem:
            self.failed.emit(drawing.export, problem)
        else:
            self.done.emit(drawing.export)


class _Drawing(QProcess):
    """The process of one export.

    It listens to itself with methods: PySide 6.11 crashes where a lambda listens to an object that is being deleted.
    """

    ended = Signal(object, str)  # Itself, and what went wrong; an empty sentence when the file is there.
    progressed = Signal(object, float, str)  # Its export, the share done and a note.

    def __init__(self, export: Export, parent: QObject) -> None:
        super().__init__(parent)
        self.export = export
        self.setProcessChannelMode(QProcess.ProcessChannelMode.MergedChannels)
        self._output, self._line = "", b""
        self.readyRead.connect(self._on_output)
        self.finished.connect(self._ended)
        self.errorOccurred.connect(self._erred)

    def _on_output(self) -> None:
        *lines, self._line = (self._line + bytes(self.readAll().data())).split(b"\n")
        for line in (line.decode("utf-8", "replace") for line in lines):
            if progress := decode_progress(line):
                self.progressed.emit(self.export, *progress)
            else:
                self._output += f"{line}\n"

    def _ended(self, code: int, status: QProcess.ExitStatus) -> None:
        self._on_output()
        self._output += self._line.decode("utf-8", "replace")
        if status == QProcess.ExitStatus.NormalExit and code == 0 and self.export.file.exists():
            self.ended.emit(self, "")
        else:
            self.ended.emit(
                self, _last_words(self._output) or f"The export ended with status {code} and wrote nothing."
            )

    def _erred(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self.ended.emit(self, f"The export could not start: {self.errorString()}.")


def shell_command(command: Sequence[str], workspace: Path) -> str:
    """Return a command line for this system's shell that equals `trainer *command`, from any folder.

    In a checkout it goes through `uv run`, as the README does; installed, `trainer` is a program of its own. An
    `export` that names no file yet gets one, so that the line runs as it is.
    """
    program = ["uv", "run", "--project", str(ROOT), "trainer"] if (ROOT / "pyproject.toml").is_file() else ["trainer"]
    out = ["--out", f"{file_stem(command)}.svg"] if command[:1] == ["export"] and "--out" not in command else []
    return shell.join([*program, *command, *out, "--workspace", str(workspace)])


def file_stem(command: Sequence[str], names: Mapping[str, str] | None = None) -> str:
    """Return a file stem that names what the command draws: kind and runs or panel, such as `similarity-clip-cloob`.

    Args:
        command: Arguments of `trainer`.
        names: Number -> name of the runs; without it they are written as in the command.
    """
    kind = next((word for word in command[:2] if word != "export" and not word.startswith("-")), "export")
    after = command[command.index("--runs") + 1 :] if "--runs" in command else []
    runs = [(names or {}).get(r, r) for r in itertools.takewhile(lambda word: not word.startswith("-"), after)]
    kind = "-".join([kind, *command[command.index("--panel") + 1 :][:1]]) if "--panel" in command else kind
    return "-".join([kind, *_short(runs[:MOST_NAMED])])


def _short(names: Sequence[str]) -> list[str]:
    """Return names of runs as parts of a file name: what all begin with once, and long ones without their middle."""
    plain = [re.sub(r"[^\w-]+", "_", name).strip("_") or "run" for name in names]
    split_names = [re.split(r"(?<=[_-])", name) for name in plain]
    # What is left of a name must say something: of equal ones the last word is kept.
    alike = itertools.takewhile(lambda column: len({*column}) == 1, zip(*split_names, strict=False))
    same = min(len([*alike]), *(len(pieces) - 1 for pieces in split_names)) if len(split_names) > 1 else 0
    parts = [plain[0], *("".join(pieces[same:]) for pieces in split_names[1:])] if split_names else []
    most = MOST_LETTERS // max(1, len(parts))
    return [part if len(part) <= most else f"{part[: most // 2]}~{part[-(most // 2) :]}" for part in parts]


def _last_words(output: str) -> str:
    """Return the last line of a process's output, where a `trainer` command writes its error message."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else ""
