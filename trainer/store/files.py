"""Files that are whole or not there: write beside, fsync, rename, fsync the folder."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from trainer.store import crash_points
from trainer.untrusted import confined

_PATIENCE_S: Final = 2.0 if os.name == "nt" else 0.0
"""How long a move waits for readers: on Windows a scanner, or a window that maps a snapshot, is in its way."""


def make_folders(path: Path) -> None:
    """The folder and those it lies in are there when this returns; a new one is for its owner alone.

    Raises:
        FileNotFoundError: It lies in one that `confined.never_make` was told of and that is gone.
    """
    confined.check_not_moved(path)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_atomically(path: Path, write: Callable[[Path], None], *, private: bool = False) -> None:
    """After it returns, `path` holds what `write` made, even if the power fails; before, it held the old or nothing.

    Args:
        path: File or folder to appear; its parent must exist.
        write: Makes the file or folder at the path it is given, which keeps the ending of `path`'s name.
        private: A file is for its owner alone, as those of a workspace are; else as the system has it.
    """
    draft = path.with_name(f".tmp-{os.getpid()}-{secrets.token_hex(4)}-{path.name}")
    kind = path.name if path.suffix else path.parent.name
    try:
        crash_points.point(f"{kind}.begun")
        write(draft)
        if private:
            draft.chmod(0o600)
        crash_points.point(f"{kind}.written")
        _sync_tree(draft)
        crash_points.point(f"{kind}.synced")
        _replace(draft, path)
        crash_points.point(f"{kind}.renamed")
    except BaseException:
        remove(draft)
        raise
    sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """`write_atomically` for a text in UTF-8, in a workspace."""
    write_atomically(path, lambda draft: draft.write_bytes(text.encode("utf-8")) and None, private=True)


def make_folder(path: Path) -> None:
    """The folder is there when this returns, even after a power cut; its parent must exist."""
    if path.is_symlink() or not path.is_dir():
        confined.make_folder(path.parent, path.name)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes the folder's entries survive a power cut; Windows needs and knows no such call."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep_drafts(folder: Path) -> None:
    """Removes what killed writers left half done directly in `folder`; only for a folder nobody writes to."""
    if folder.is_symlink():
        return
    for draft in folder.glob(".tmp-*"):
        remove(draft)


def _sync_tree(path: Path) -> None:
    if path.is_dir():
        for child in path.iterdir():
            _sync_tree(child)
        sync_folder(path)
        return
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _replace(draft: Path, path: Path) -> None:
    if not path.is_dir():
        _move(draft, path)
        return
    # A folder that is not empty cannot be replaced in one call: step aside, move in, clear away.
    aside = path.with_name(f".tmp-old-{secrets.token_hex(4)}-{path.name}")
    _move(path, aside)
    try:
        _move(draft, path)
    except OSError:
        os.replace(aside, path)
        raise
    remove(aside)


def _move(source: Path, target: Path) -> None:
    """`os.replace`, tried for a while where a file that somebody reads or maps cannot be moved."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            os.replace(source, target)
        except PermissionError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.02)
        else:
            return


def remove(path: Path) -> None:
    """The file or folder is gone; a link goes, what it points to stays. No error where nothing is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
