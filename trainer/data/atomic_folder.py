"""Folders that are written atomically by one process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trainer.data.pairs import DataError
from trainer.store import disk
from trainer.store.process_lock import ProcessLock
from trainer.untrusted import confined


def written_once(
    folder: Path, write: Callable[[Path], None], waiting: Callable[[], None], *, keep_unfinished: bool = False
) -> Path:
    """Return `folder`, filled by `write` unless it already is.

    `write` fills a hidden folder beside it, which then takes its name: a process that dies halfway leaves
    nothing that looks whole. Two runs started together write it once; the other waits.

    Args:
        folder: What shall exist.
        write: Fills the (empty, existing) folder it is given.
        waiting: Called every now and then while another process writes; may raise to give up.
        keep_unfinished: What a process that died or was cancelled had written is given to the next `write`, which
            goes on from there.

    Raises:
        DiskTrouble: The disk is full.
        DataError: The folder may not be written.
    """
    if folder.is_dir():
        return folder
    try:
        confined.make_folder(folder.parents[1], folder.parent.name)
        with _locked(folder.parent / f".{folder.name}.lock", waiting):
            if not folder.is_dir():
                _write(folder, write, keep_unfinished)
    except OSError as error:
        full = disk.trouble(error, "What is prepared", folder, disk.SPARE)
        if full is not None and full.full:
            raise full from error
        raise DataError(
            f"{folder} cannot be written: {error.strerror or error}. Free some space or choose another --workspace."
        ) from error
    return folder


def _write(folder: Path, write: Callable[[Path], None], keep_unfinished: bool) -> None:
    unfinished = folder.parent / f".{folder.name}.unfinished"
    if not (keep_unfinished and _is_ours(unfinished)):
        confined.remove_tree(folder.parent, unfinished.name)
        if unfinished.is_symlink():
            confined.remove(folder.parent, unfinished.name)
    unfinished.mkdir(exist_ok=keep_unfinished)
    try:
        write(unfinished)
        # Else a power cut could leave the new name on empty files. One call, as there may be 30,000 of them.
        getattr(os, "sync", lambda: None)()
        confined.replace(folder.parent, unfinished.name, folder.name)
    finally:
        if not keep_unfinished:
            confined.remove_tree(folder.parent, unfinished.name)


def _is_ours(unfinished: Path) -> bool:
    """Return whether it can be continued, without a link that would be written through."""
    if not confined.is_inside(unfinished.parent, unfinished.name):
        return False
    return not unfinished.is_dir() or all(confined.is_inside(unfinished, entry.name) for entry in unfinished.iterdir())


@contextmanager
def _locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold an OS lock, released when the process ends; the empty file stays, since removing it would race."""
    while (lock := ProcessLock.take(path, wait_s=0.5)) is None:
        waiting()
    try:
        yield
    finally:
        lock.release()
