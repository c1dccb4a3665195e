"""The only code that starts other processes: arguments, environment and working folder. Imports no torch.

Python puts the current folder first on its path, and a `json.py` that lies there would be run. So every Python of ours
is told not to (`-P`), every process that it starts in turn (`PYTHONSAFEPATH`), and none works in the folder that the
person happens to be in: paths that are passed on are absolute.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

NEUTRAL: Final = sys.base_prefix
"""Working folder of what we start: that of Python itself, whose code is run anyway."""

_ROOT: Final = Path(__file__).resolve().parents[2]
_INSTALLED: Final = ("site-packages", "dist-packages")
_FEW_THREADS: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""For a process with little memory: every heap and every stack counts to its limit, used or not."""


def python(*words: str) -> list[str]:
    """Return a command that runs this Python without the current folder on its path."""
    return [sys.executable, "-P", *words]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a child process: this one's, `more`, and settings that exclude local code."""
    named = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    # Python runs the `sitecustomize.py` of every folder on its path: also of the current one, where `.` names it.
    here = _current_folder()
    path = [entry for entry in named if entry == str(_ROOT) or os.path.realpath(entry) != here]
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


def start_helper(module: str, *words: str, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a helper that reads untrusted files, with few threads, connected by pipes.

    Args:
        module: Run with `python -m`.
        words: Its arguments.
        errors: Where it says why it ended.

    Raises:
        OSError: There is no room for another process.
    """
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
    hidden = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    more = _FEW_THREADS | {"PYTHONUNBUFFERED": "1"}
    return start(python("-m", module, *words), more=more, creationflags=hidden, **pipes)


def run(
    command: Sequence[str], *, more: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Run a process to completion and return its result.

    Args:
        command: Program and words; paths in it are absolute.
        more: Environment beyond that of this process.
        options: Of `subprocess.run`, but for environment and working folder.

    Raises:
        OSError: There is no such program, or no room for another process.
        subprocess.SubprocessError: As `subprocess.run`.
    """
    return subprocess.run(list(command), env=environment(more), cwd=NEUTRAL, **options)


def _current_folder() -> str:
    try:
        return os.path.realpath(".")
    except OSError:  # it is gone
        return ""


def find(name: str) -> str | None:
    """Return the absolute path of a program on the PATH, ignoring the current folder and relative entries."""
    folders = [entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(entry)]
    found = shutil.which(name, path=os.pathsep.join(folders)) if folders else None
    return found if found is not None and Path(found).parent in map(Path, folders) else None


def typed_path(words: str) -> str:
    """Return a typed path made absolute if it exists; a hub name stays unchanged."""
    try:
        path = Path(words).expanduser()
        return str(path.absolute()) if words.strip() and path.exists() else words
    except (OSError, ValueError, RuntimeError):
        return words
