"""Atomic file operations: write a draft, fsync, rename, fsync the folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from trainer.errors import UserError
from trainer.store import crash_points
from trainer.untrusted import confined

_PATIENCE_S: Final = 2.0 if os.name == "nt" else 0.0
"""How long a move waits for readers: on Windows a scanner, or a window that maps a snapshot, is in its way."""


def make_folders(path: Path) -> None:
    """Create the folder and its parents; a new one is private to its owner.

    Raises:
        FileNotFoundError: It lies in one that `confined.never_make` was told of and that is gone.
    """
    confined.check_not_moved(path)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_atomically(path: Path, write: Callable[[Path], None], *, private: bool = False) -> None:
    """Write `path` atomically and durably: a power failure leaves the complete new or old file.

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


@contextlib.contextmanager
def told_if_unwritable(
    path: Path, advice: str = "Choose another place.", error_type: type[UserError] = UserError
) -> Iterator[None]:
    """Raise an error for people, with `advice`, where the path cannot be written."""
    try:
        yield
    except OSError as error:
        raise error_type(f"{path} cannot be written: {error.strerror or error}. {advice}".rstrip()) from error


def write_for_user(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file or folder where a person asked for it, with `write_atomically`, and the folders above it.

    Raises:
        UserError: It cannot be written.
    """
    with told_if_unwritable(path):
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path.absolute(), write)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text in a workspace with `write_atomically`."""
    write_atomically(path, lambda draft: draft.write_bytes(text.encode("utf-8")) and None, private=True)


def make_folder(path: Path) -> None:
    """Create the folder durably; its parent must exist."""
    if path.is_symlink() or not path.is_dir():
        confined.make_folder(path.parent, path.name)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the folder's entries survive a power cut; not needed on Windows."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep_drafts(folder: Path, *, keep: str = "") -> None:
    """Remove drafts but `keep` left in `folder` by killed writers; only for a folder that nobody writes to."""
    if folder.is_symlink():
        return
    for draft in folder.glob(".tmp-*"):
        if draft.name != keep:
            remove(draft)


def _sync_tree(path: Path) -> None:
    if path.is_dir():
        for child in path.iterdir():
            _sync_tree(child)
        sync_folder(path)
        return
    with confined.open_file(path.parent, path.name, "rb+") as file:
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
        confined.move(aside, path)
        raise
    remove(aside)


def _move(source: Path, target: Path) -> None:
    """Call `confined.move`, retrying while another process reads or maps the target."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            confined.move(source, target)
        except PermissionError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.02)
        else:
            return


def remove(path: Path) -> None:
    """Remove a file or folder, or a link without its target; no error if nothing exists."""
    if path.is_dir() and not path.is_symlink():
        confined.remove_folder(path)
    else:
        confined.remove(path.parent, path.name)
