"""How every other process is started: its words, environment and working folder. Imports no torch.

Python puts the current folder first on its path, and a `json.py` that lies there would be run. So every Python of ours
is told not to (`-P`), every process that it starts in turn (`PYTHONSAFEPATH`), and none works in the folder that the
person happens to be in: paths that are passed on are absolute.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

NEUTRAL: Final = sys.base_prefix
"""Working folder of what we start: that of Python itself, whose code is run anyway."""

_ROOT: Final = Path(__file__).resolve().parents[2]
_INSTALLED: Final = ("site-packages", "dist-packages")


def python(*words: str) -> list[str]:
    """The command of this Python with these words, its path free of the current folder."""
    return [sys.executable, "-P", *words]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a process that we start: this one's, `more`, and what keeps the current folder's code out."""
    path = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    # Run in a checkout that is not installed, a child finds the package where this process found it.
    if _ROOT.name not in _INSTALLED and str(_ROOT) not in path:
        path.append(str(_ROOT))
    safe = {"PYTHONSAFEPATH": "1"}
    if os.name == "nt":
        safe["NoDefaultCurrentDirectoryInExePath"] = "1"
    return os.environ | safe | ({"PYTHONPATH": os.pathsep.join(path)} if path else {}) | dict(more or {})


def find(name: str) -> str | None:
    """The absolute path of a program on the PATH; never one of the current folder, nor by a relative entry."""
    folders = [entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(entry)]
    found = shutil.which(name, path=os.pathsep.join(folders)) if folders else None
    return found if found is not None and Path(found).parent in map(Path, folders) else None


def typed_path(words: str) -> str:
    """What a person typed, made absolute where it names something that is there; a name of the hub stays one."""
    try:
        path = Path(words).expanduser()
        return str(path.absolute()) if words.strip() and path.exists() else words
    except (OSError, ValueError, RuntimeError):
        return words
