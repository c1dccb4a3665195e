"""In-memory files that pass pixels between two processes and are removed with them."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trainer.untrusted import confined

PREFIX: Final = "contrastive-explorer-pictures-"
_SHARE: Final = 64
"""A scratch file lies in memory if so many of its size would."""
_YOUNG_S: Final = 60.0
"""A file younger than this may be about to be locked by who made it."""


@contextlib.contextmanager
def scratch_file(size: int) -> Iterator[Path]:
    """Provide a temporary file of this many zeros, in memory if the system has a folder for that.

    The first removes those of processes that were killed.
    """
    folder = Path(_memory_folder(size) or tempfile.gettempdir())
    _tidied(folder)
    number, name = tempfile.mkstemp(prefix=PREFIX, dir=folder)
    try:
        _lock(number)
        with confined.open_file(folder, Path(name).name, "rb+") as file:
            confined.cut(file, size)
        yield Path(name)
    finally:
        os.close(number)
        confined.remove(folder, Path(name).name)


@functools.cache
def _tidied(folder: Path) -> None:
    remove_left_behind(folder)


def remove_left_behind(folder: Path) -> None:
    """Remove scratch files of dead processes, whose locks are free."""
    for path in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _YOUNG_S:
                with path.open("rb") as file:
                    if _lock(file.fileno()):
                        confined.remove(folder, path.name)


def _memory_folder(size: int) -> str | None:
    """Return an in-memory folder unless the file could fill it, since containers have little of it."""
    folder = "/dev/shm"
    with contextlib.suppress(OSError):
        if os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > _SHARE * size:
            return folder
    return None


if os.name == "nt":

    def _lock(number: int) -> bool:
        return True  # an open file cannot be removed there

else:
    import fcntl

    def _lock(number: int) -> bool:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
