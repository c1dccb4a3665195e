"""Ownership of a workspace: `workspace.json` records which user made it, and where.

A workspace of another user, or a copy, is *look only* until it is made one's own: rows that a stranger has written must
not train, download or delete anything here, and a copy must not train twice what its original does. So is one that
cannot be written, and one whose files belong to another user of the system, whatever its words say.

The file names nobody: it holds codes that only this user can compute (HMAC-SHA-256 with `owner_key`), so one who was
given a workspace learns no path from it and can make none that looks like ours. A workspace that was renamed keeps its
folder's number in the file system, a copy does not; one that was put back at its old place (from a backup) is known by
its path.

Workspaces from before this file existed cannot tell whose they are: such a one is look only as soon as it holds a run.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sqlite3
import time
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal

from trainer.config import default_paths
from trainer.store import on_demand, owner_key
from trainer.store.database_access import access_of, address, has_files_of_another, is_writable
from trainer.store.files import write_text
from trainer.untrusted import shell
from trainer.untrusted.documents import BadDocument, decode

NAME: Final = "workspace.json"
_MOST: Final = 1 << 16
_FORMAT: Final = 2
_MOST_PLACES: Final = 64
"""Codes of former places that are kept."""

State = Literal[
    "new", "mine", "moved", "copy", "other user", "other key", "no key", "read only", "unknown",
    "unreadable", "sample", "mirror",
]  # fmt: skip

_WHY: Final[dict[State, str]] = {
    "copy": "it is a copy of another workspace",
    "other user": "its files belong to another user of this computer",
    "other key": "it was made on another computer, by another user, or before your own key was lost",
    "no key": "your own key cannot be used",
    "read only": "it cannot be written",
    "mirror": "it mirrors a workspace of another computer",
    "sample": "it is the sample that comes with the application",
    "unknown": "its author is unknown",
    "unreadable": f"its {NAME} cannot be read",
}
_ADOPT: Final = "trainer doctor --adopt --workspace"


@dataclass(frozen=True)
class Maker:
    """The contents of `workspace.json`."""

    owner: str  # Code of the user who made the workspace.
    made_at: float  # When, in seconds since 1970.
    path: str  # Code of where it lies.
    folder: str  # Code of its folder's number in the file system.
    former: tuple[str, ...] = ()  # Codes of where it lay before, oldest first.


def state_of(folder: Path, database: Path) -> State:
    """Return the workspace's ownership relative to this user, without writing anything.

    `new`: there is no run and no word of whose it is. `moved`: it is mine and was renamed since.
    """
    if default_paths.is_sample(folder):
        return "sample"
    if on_demand.is_mirror(folder):
        return "mirror"
    state = _look(folder, database)
    # It is signed before its first run is made: another thread or process may have done both between two looks.
    state = _look(folder, database) if state == "unknown" else state
    return "read only" if state != "other user" and not is_writable(database) else state


def _look(folder: Path, database: Path) -> State:
    file = folder / NAME
    if has_files_of_another(database) or any(_is_of_another(folder / name) for name in (NAME, "runs")):
        return "other user"
    try:
        key = owner_key.existing_key()
        maker = decode(folder / NAME, Maker, _MOST)
    except FileNotFoundError:
        return "unknown" if os.path.lexists(file) or _holds_runs(folder, database) else "new"
    except owner_key.NoKey:
        return "no key"
    except (OSError, BadDocument):
        return "unreadable"
    if key is None or not _is_code(maker.owner, key, "owner"):
        return "other key"
    current = _maker(folder, key)
    if maker.path == current.path:
        return "mine"
    return "moved" if maker.folder == current.folder else "copy"


def _is_of_another(path: Path) -> bool:
    try:
        return owner_key.is_of_another(path.lstat())
    except OSError:
        return False


def why_look_only(state: State) -> str:
    """Return why a workspace in this state is read-only, as part of a sentence; empty if it is not."""
    return _WHY.get(state, "")


def next_step(state: State, folder: Path) -> str:
    """Return what makes a look-only workspace in this state one's own, as a sentence."""
    quoted = shell.quote(str(folder))
    if state == "sample":
        return "Train your own in another workspace, which opens without --sample."
    if state == "mirror":
        return "Open it on the computer where it lies, or train in a workspace of this one."
    if state in ("other user", "read only"):
        return f"Copy it to a folder of your own, then make the copy yours: {_ADOPT} COPY."
    if state == "no key":
        return owner_key.trouble()
    return f"Make it yours first: {_ADOPT} {quoted}"


def sign(folder: Path) -> None:
    """Record this user as the workspace's owner; the folder must exist.

    Raises:
        NoKey: This user's key cannot be kept or used.
    """
    maker = _maker(folder, owner_key.owner_key())
    earlier = _own(folder)
    if earlier is not None:
        paths = dict.fromkeys((*earlier.former, earlier.path))
        maker = replace(maker, former=tuple(code for code in paths if code != maker.path)[-_MOST_PLACES:])
    document = {"format": _FORMAT, **asdict(maker)}
    write_text(folder / NAME, json.dumps(document, indent=1) + "\n")


def was_at(folder: Path, path: Path) -> bool:
    """Return whether the workspace, or the one that it is a copy of, lay at `path` when this user had signed it."""
    maker = _own(folder)
    return maker is not None and _code(owner_key.owner_key(), f"path {path}") in (*maker.former, maker.path)


def _own(folder: Path) -> Maker | None:
    """Return what this user has recorded of the workspace; None if it is somebody else's."""
    try:
        maker, key = decode(folder / NAME, Maker, _MOST), owner_key.existing_key()
    except (OSError, BadDocument, owner_key.NoKey):
        return None
    return maker if key is not None and _is_code(maker.owner, key, "owner") else None


def _maker(folder: Path, key: bytes) -> Maker:
    resolved = folder.resolve()
    state = resolved.stat()
    return Maker(
        owner=_code(key, "owner"),
        made_at=time.time(),
        path=_code(key, f"path {resolved}"),
        folder=_code(key, f"folder {state.st_dev} {state.st_ino}"),
    )


def seal(text: str) -> str:
    """Return a code of the words that only this user can compute, to recognize own files.

    Raises:
        NoKey: This user's key cannot be kept or used.
    """
    return _code(owner_key.owner_key(), f"seal {text}")


def is_seal(code: object, text: str) -> bool:
    """Return whether `seal` made this code of the words; anybody may have written it."""
    try:
        key = owner_key.existing_key()
    except owner_key.NoKey:
        return False
    return key is not None and _is_code(code, key, f"seal {text}")


def _is_code(code: object, key: bytes, text: str) -> bool:
    return isinstance(code, str) and code.isascii() and hmac.compare_digest(code, _code(key, text))


def _code(key: bytes, text: str) -> str:
    message = f"contrastive-explorer {text}".encode("utf-8", "surrogateescape")
    return hmac.new(key, message, hashlib.sha256).hexdigest()


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
        access = access_of(database)
        if access == "copy":
            return True
        uri = address(database, "live" if access == "write" else access)
        with closing(sqlite3.connect(uri, uri=True, timeout=10.0)) as connection:
            # A view called `run` might never end.
            kinds = dict(connection.execute("SELECT name, type FROM sqlite_master WHERE name = 'run'"))
            if not kinds:
                return False
            return kinds != {"run": "table"} or connection.execute("SELECT 1 FROM run LIMIT 1").fetchone() is not None
    except (OSError, sqlite3.Error):
        return True
