"""The only code that starts other processes: arguments, environment, working folder and output. Imports no torch.

Python puts the current folder first on its path, and a `json.py` that lies there would be run. So every Python of ours
is told not to (`-P`), every process that it starts in turn (`PYTHONSAFEPATH`), and none works in the folder that the
person happens to be in: paths that are passed on are absolute.

What another process prints is bounded while it is read, both pipes at once: one that never stops talking would take all
memory, and one whose errors nobody reads would wait forever.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

NEUTRAL: Final = sys.base_prefix
"""Working folder of what we start: that of Python itself, whose code is run anyway."""

MOST_OUTPUT: Final = 1 << 24
"""Bytes of each pipe that `run` reads before it ends the process."""

_AT_ONCE: Final = 1 << 16
_ROOT: Final = Path(__file__).resolve().parents[2]
_INSTALLED: Final = ("site-packages", "dist-packages")
_FEW_THREADS: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""For a process with little memory: every heap and every stack counts to its limit, used or not."""


def python(*arguments: str) -> list[str]:
    """Return a command that runs this Python without the current folder on its path."""
    return [sys.executable, "-P", *arguments]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a child process: this one's, `more`, and settings that exclude local code."""
    named = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    # Python runs the `sitecustomize.py` of every folder on its path: also of the current one, where `.` names it.
    current = _current_folder()
    path = [entry for entry in named if entry == str(_ROOT) or os.path.realpath(entry) != current]
    # Run in a checkout that is not installed, a child finds the package where this process found it.
    if _ROOT.name not in _INSTALLED and str(_ROOT) not in path:
        path.append(str(_ROOT))
    safe = {"PYTHONSAFEPATH": "1"}
    if os.name == "nt":
        safe["NoDefaultCurrentDirectoryInExePath"] = "1"
    return os.environ | safe | ({"PYTHONPATH": os.pathsep.join(path)} if path else {}) | dict(more or {})


def start(command: Sequence[str], *, more: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that runs concurrently.

    Args:
        command: Program and words; paths in it are absolute.
        more: Environment beyond that of this process.
        options: Of `subprocess.Popen`, but for environment and working folder.

    Raises:
        OSError: There is no such program, or no room for another process.
    """
    return subprocess.Popen(list(command), env=environment(more), cwd=NEUTRAL, **options)


def start_helper(module: str, *arguments: str, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a helper that reads untrusted files, with few threads, connected by pipes.

    Raises:
        OSError: There is no room for another process.
    """
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
    hidden = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    more = _FEW_THREADS | {"PYTHONUNBUFFERED": "1"}
    return start(python("-m", module, *arguments), more=more, creationflags=hidden, **pipes)


class OutputTooLong(subprocess.SubprocessError):
    """A process printed more than may be read from it, and was ended."""


class PipeReader:
    """Reads a pipe to its end on a thread, so that its writer never waits, and retains its last bytes alone.

    Args:
        pipe: Closed at its end.
        most: Bytes that are retained.
        on_overflow: Called once where the pipe holds more; nothing is read after it. None: the first bytes are dropped.
    """

    def __init__(self, pipe: IO[bytes], most: int, on_overflow: Callable[[], None] | None = None) -> None:
        self._pipe, self._most, self._on_overflow = pipe, most, on_overflow
        self._content = bytearray()
        self.overflowed = False
        self._thread = threading.Thread(target=self._read, name="pipe", daemon=True)
        self._thread.start()

    def content(self, timeout_s: float | None = None) -> bytes:
        """Return what was retained, after waiting for the end of the pipe."""
        self._thread.join(timeout_s)
        return bytes(self._content[-self._most :])

    @property
    def ended(self) -> bool:
        """Whether the pipe is at its end."""
        return not self._thread.is_alive()

    def _read(self) -> None:
        with self._pipe, contextlib.suppress(OSError, ValueError):
            while part := os.read(self._pipe.fileno(), _AT_ONCE):
                self._content += part
                if len(self._content) <= self._most:
                    continue
                self.overflowed = True
                if self._on_overflow is not None:
                    self._on_overflow()
                    return
                del self._content[: -self._most]


def run(
    command: Sequence[str],
    *,
    more: Mapping[str, str] | None = None,
    input: bytes = b"",
    timeout: float | None = None,
    most: int = MOST_OUTPUT,
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[bytes]:
    """Run a process to completion and return its status and what it printed.

    Args:
        command: Program and words; paths in it are absolute.
        more: Environment beyond that of this process.
        timeout: Seconds after which it is ended, with all that it started.
        most: Bytes of each of its two outputs after which it is ended.
        check: Whether a status other than 0 is an error.
        options: Of `subprocess.Popen`, but for environment, working folder and pipes.

    Raises:
        OSError: There is no such program, or no room for another process.
        OutputTooLong: It printed more than `most`.
        subprocess.TimeoutExpired: It, or what holds its pipes, did not end in time.
        subprocess.CalledProcessError: Its status is not 0, and `check`.
    """
    # A session of its own: Ctrl-C in a terminal is for the command that waits here, and what it started ends with it.
    own_session = {} if os.name == "nt" else {"start_new_session": True}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = start(command, more=more, bufsize=0, **pipes, **own_session, **options)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    readers = [PipeReader(pipe, most, lambda: end_session(process)) for pipe in (process.stdout, process.stderr)]
    threading.Thread(target=_feed, args=(process.stdin, input), name="pipe", daemon=True).start()
    deadline = None if timeout is None else time.monotonic() + timeout
    try:
        output, errors = (reader.content(_left(deadline)) for reader in readers)
        if any(not reader.ended for reader in readers):
            raise subprocess.TimeoutExpired(command, timeout or 0.0, output, errors)
        process.wait(_left(deadline))
    except BaseException:
        end_session(process)
        process.wait()
        raise
    if any(reader.overflowed for reader in readers):
        raise OutputTooLong(f"{Path(command[0]).name} printed more than {most / 2**20:.3g} MiB")
    if check and process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command), output, errors)
    return subprocess.CompletedProcess(list(command), process.returncode, output, errors)


def end_session(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session, and what it started in it."""
    with contextlib.suppress(OSError):
        # What was not waited for keeps its number: the group is no other's.
        if os.name != "nt" and process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()


def _feed(pipe: IO[bytes], content: bytes) -> None:
    with contextlib.suppress(OSError, ValueError), pipe:
        left = memoryview(content)
        while left:
            left = left[pipe.write(left) :]


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _current_folder() -> str:
    try:
        return os.path.realpath(".")
    except OSError:  # it is gone
        return ""


def find(name: str) -> str | None:
    """Return the absolute path of a program on the PATH, ignoring the current folder and relative entries."""
    folders = [entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(entry)]
    executable = shutil.which(name, path=os.pathsep.join(folders)) if folders else None
    return executable if executable is not None and Path(executable).parent in map(Path, folders) else None


def typed_path(text: str) -> str:
    """Return a typed path made absolute if it exists; a hub name stays unchanged."""
    try:
        path = Path(text).expanduser()
        return str(path.absolute()) if text.strip() and path.exists() else text
    except (OSError, ValueError, RuntimeError):
        return text
