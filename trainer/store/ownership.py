"""Ownership of a workspace: `workspace.json` records which computer and user created it, and where.

A workspace of another computer or user, or a copy, is *look only* until it is made one's own: rows that a stranger
has written must not train, download or delete anything here, and a copy must not train twice what its original does.

The file names nobody: it holds codes that only this computer and user can compute (HMAC-SHA-256, keyed by the
computer's number and the user's), so one who was given a workspace learns no path from it and can make none that
looks like ours. A workspace that was renamed keeps its folder's number in the file system, a copy does not; one that
was put back at its old place (from a backup) is known by its path.

Workspaces from before this file existed cannot tell whose they are: such a one is look only as soon as it holds a run.
"""

from __future__ import annotations

import functools
import getpass
import hashlib
import hmac
import json
import os
import platform
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal

from trainer.store.files import write_text
from trainer.untrusted import safe_subprocess
from trainer.untrusted.files import read_text

NAME: Final = "workspace.json"
_MOST: Final = 1 << 16
_FORMAT: Final = 1
_MOST_PLACES: Final = 64
"""Codes of former places that are kept."""

State = Literal["new", "mine", "moved", "copy", "other user", "other computer", "unknown", "unreadable"]

_WHY: Final[dict[State, str]] = {
    "copy": "it is a copy of another workspace",
    "other user": "another user of this computer made it",
    "other computer": "it was made on another computer",
    "unknown": "it does not say which computer made it",
    "unreadable": f"its {NAME} cannot be read",
}


@dataclass(frozen=True)
class Maker:
    """The contents of `workspace.json`.

    Attributes:
        computer: Code of the computer that made the workspace.
        user: Code of its user there.
        made_at: When, in seconds since 1970.
        path: Code of where it lies.
        folder: Code of its folder's number in the file system.
        former: Codes of where it lay before, oldest first.
    """

    computer: str
    user: str
    made_at: float
    path: str
    folder: str
    former: tuple[str, ...] = ()


def state_of(folder: Path, database: Path) -> State:
    """Return the workspace's ownership relative to this computer and user, without writing anything.

    `new`: there is no run and no word of whose it is. `moved`: it is mine and was renamed since.
    """
    state = _look(folder, database)
    # It is signed before its first run is made: another thread or process may have done both between two looks.
    return _look(folder, database) if state == "unknown" else state


def _look(folder: Path, database: Path) -> State:
    file = folder / NAME
    try:
        known = _read(folder)
        here = _maker(folder)
    except FileNotFoundError:
        return "unknown" if os.path.lexists(file) or _holds_runs(folder, database) else "new"
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return "unreadable"
    if known.computer != here.computer:
        return "other computer"
    if known.user != here.user:
        return "other user"
    if known.path == here.path:
        return "mine"
    return "moved" if known.folder == here.folder else "copy"


def why_look_only(state: State) -> str:
    """Return why a workspace in this state is read-only, as part of a sentence; empty if it is not."""
    return _WHY.get(state, "")


def sign(folder: Path) -> None:
    """Record this computer and user as the workspace's owner; the folder must exist."""
    maker = _maker(folder)
    known = _own(folder)
    if known is not None:
        places = dict.fromkeys((*known.former, known.path))
        maker = replace(maker, former=tuple(place for place in places if place != maker.path)[-_MOST_PLACES:])
    document = {"format": _FORMAT, **asdict(maker)}
    write_text(folder / NAME, json.dumps(document, indent=1) + "\n")


def was_at(folder: Path, place: Path) -> bool:
    """Return whether the workspace, or the one that it is a copy of, lay at `place` when this user had signed it."""
    known = _own(folder)
    if known is None:
        return False
    return _code(_key(), f"path {place}") in (*known.former, known.path)


def _own(folder: Path) -> Maker | None:
    """Return what this user has recorded of the workspace on this computer; None if it is somebody else's."""
    try:
        known = _read(folder)
        here = _maker(folder)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return known if (known.computer, known.user) == (here.computer, here.user) else None


def _read(folder: Path) -> Maker:
    document = json.loads(read_text(folder / NAME, _MOST))
    values = {name: document[name] for name in Maker.__dataclass_fields__ if name != "former"}
    former = document.get("former", [])
    return Maker(**values, former=tuple(str(code) for code in former) if isinstance(former, list) else ())


def _maker(folder: Path) -> Maker:
    key = _key()
    place = folder.resolve()
    there = place.stat()
    return Maker(
        computer=_code(_computer().encode(), "computer"),
        user=_code(key, "user"),
        made_at=time.time(),
        path=_code(key, f"path {place}"),
        folder=_code(key, f"folder {there.st_dev} {there.st_ino}"),
    )


def seal(words: str) -> str:
    """Return a code of the words that only this computer and user can compute, to recognize own files."""
    return _code(_key(), f"seal {words}")


def _key() -> bytes:
    return f"{_computer()}\0{_user()}".encode()


def _code(key: bytes, words: str) -> str:
    message = f"contrastive-explorer {words}".encode("utf-8", "surrogateescape")
    return hmac.new(key, message, hashlib.sha256).hexdigest()


def _user() -> str:
    if hasattr(os, "getuid"):
        return str(os.getuid())
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # nobody here is called so
        return ""


@functools.cache
def _computer() -> str:
    """Return an id unique to this computer; its host name if the system has none."""
    return _number_of_the_system() or platform.node()


def _number_of_the_system() -> str:
    try:
        if sys.platform == "win32":
            import winreg

            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"SOFTWARE\Microsoft\Cryptography") as key:
                return str(winreg.QueryValueEx(key, "MachineGuid")[0])
        if sys.platform == "darwin":
            command = ["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"]
            output = safe_subprocess.run(command, timeout=5).stdout.decode("utf-8", "replace")
            return next((line.split('"')[3] for line in output.splitlines() if "IOPlatformUUID" in line), "")
    except (OSError, IndexError, subprocess.SubprocessError):
        return ""
    for file in (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id")):
        try:
            number = file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if number and number != "uninitialized":
            return number
    return ""


def _holds_runs(folder: Path, database: Path) -> bool:
    """Return whether the database or the folder has runs; True if the database is unreadable."""
    try:
        if any((folder / "runs").iterdir()):
            return True
    except (FileNotFoundError, NotADirectoryError):
        pass
    try:
        if not database.exists() or database.stat().st_size == 0:
            return False
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)) as connection:
            # A view called `run` might never end.
            kinds = dict(connection.execute("SELECT name, type FROM sqlite_master WHERE name = 'run'"))
            if not kinds:
                return False
            return kinds != {"run": "table"} or connection.execute("SELECT 1 FROM run LIMIT 1").fetchone() is not None
    except (OSError, sqlite3.Error):
        return True
