"""How a database is opened where this process may or should not write: a read-only disk, a CD, another user's folder.

SQLite wants to write beside every database in WAL mode, even to read it. Where it cannot, there are three ways: with
the log and the index that a living writer keeps beside it; as a file that nobody changes; or as a copy.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final, Literal

from trainer.config import default_paths
from trainer.store.owner_key import is_of_another
from trainer.store.rows import StoreError
from trainer.untrusted import confined

Access = Literal["write", "live", "immutable", "copy"]

_PARAMETERS: Final[dict[Access, str]] = {
    "write": "mode=rw",  # never made anew: one that was removed is told
    "live": "mode=ro",
    "immutable": "mode=ro&immutable=1",
    "copy": "mode=ro",
}


def is_writable(path: Path) -> bool:
    """Return whether the database may be written, or made where there is none; some disks take nothing.

    That of the sample workspace may not, wherever the application is installed.
    """
    if default_paths.is_sample(path.parent):
        return False
    above = next((folder for folder in path.parents if folder.exists()), path.parent)
    if not above.is_dir():
        return True  # who makes it is told what is in its way
    return os.access(above, os.W_OK | os.X_OK) and (not path.exists() or os.access(path, os.W_OK))


def has_files_of_another(path: Path) -> bool:
    """Return whether the database, its folder or what SQLite would read next to it belongs to another user."""
    for file in (path.parent, path, *(path.with_name(path.name + ending) for ending in ("-wal", "-journal"))):
        with contextlib.suppress(OSError):  # it is not there; what may not be looked at is told by who reads it
            if is_of_another(file.lstat()):
                return True
    return False


def access_of(path: Path) -> Access:
    """Return how the database at `path` can be opened now; `write` only where all of it is this user's.

    `live`: another process writes it, and what it wrote is seen. `immutable`: nobody had it open; should its `stamp`
    change, open it anew. `copy`: its newest rows are in a log that SQLite reads only where it can write.
    """
    if is_writable(path) and not has_files_of_another(path):
        return "write"
    log, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    if not log.exists() or log.stat().st_size == 0:
        return "immutable"
    # For root SQLite makes the log a file of the database's owner: a stranger's would then be one's own.
    return "live" if os.access(index, os.R_OK) and log.lstat().st_uid == path.lstat().st_uid else "copy"


def address(path: Path, access: Access) -> str:
    """Return the URI by which SQLite opens the database in this way."""
    return f"{path.absolute().as_uri()}?{_PARAMETERS[access]}"


def stamp(path: Path) -> tuple[object, ...]:
    """Return what differs once a database that cannot be written here was changed elsewhere, or has another access."""
    access = access_of(path)
    if access in ("write", "live"):
        return (access,)
    states: list[object] = [access]
    for file in (path, path.with_name(f"{path.name}-wal")):
        try:
            state = file.stat()
        except OSError:
            states.append(None)
        else:
            states.append((state.st_ino, state.st_size, state.st_mtime_ns))
    return tuple(states)


def copy_with_log(path: Path, target: Path) -> None:
    """Copy a database and its log to where SQLite can write.

    Raises:
        StoreError: Another process changed it meanwhile.
    """
    for _ in range(3):
        before = stamp(path)
        for ending in ("", "-wal"):
            source = path.with_name(path.name + ending)
            if source.exists():
                confined.copy(source, target.parent, target.name + ending)
        if stamp(path) == before:
            return
    raise StoreError(f"{path} changes while it is read, and its folder cannot be written. Try again in a moment.")
