"""Backups of the database in `backups/`, at most one per day: the last seven days, and one of each of four weeks.

A copy is made while others write (SQLite's backup API) and checked before it gets its name. The runs themselves are
in their folders; what only the database holds are selections, settings and layouts.
"""

from __future__ import annotations

import datetime
import re
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainer.store.database_file import copy_verified, version_of
from trainer.store.files import make_folder, sweep_drafts, sync_folder, write_atomically
from trainer.store.process_lock import ProcessLock
from trainer.store.rows import StoreError
from trainer.store.schema import SCHEMA_VERSION
from trainer.untrusted import confined

FOLDER: Final = "backups"
DAYS: Final = 7
WEEKS: Final = 4
_LOCK: Final = "backup.lock"
_NAME: Final = re.compile(r"explorer-(\d{4}-\d\d-\d\d)\.db")


@dataclass(frozen=True)
class Backup:
    """A copy of the database."""

    day: datetime.date  # When it was made.
    path: Path  # The file.
    size: int  # In bytes.


def backups(database: Path) -> list[Backup]:
    """Return the daily copies of a database, newest first."""
    copies = []
    for path in (database.parent / FOLDER).glob("explorer-*.db"):
        match = _NAME.fullmatch(path.name)
        try:
            if match and path.is_file() and not path.is_symlink():
                copies.append(Backup(datetime.date.fromisoformat(match[1]), path, path.stat().st_size))
        except (ValueError, OSError):  # no day of any calendar, or just thinned
            continue
    return sorted(copies, key=lambda backup: backup.day, reverse=True)


def make_daily(database: Path, today: datetime.date) -> Path | None:
    """Copy the database unless it was copied today, remove old copies, and return the new one.

    Raises:
        StoreError: The database is damaged; every copy stays.
        OSError: The disk is full or gone.
    """
    folder = database.parent / FOLDER
    target = folder / f"explorer-{today.isoformat()}.db"
    if target.exists() or not database.exists():
        return None
    make_folder(folder)
    lock = ProcessLock.take(folder / _LOCK, wait_s=0.0)
    if lock is None:
        return None  # another process makes it at this moment
    try:
        if target.exists():
            return None
        sweep_drafts(folder)
        copy_verified(database, target)
        copies = backups(database)
        keep = kept([backup.day for backup in copies])
        for backup in copies:
            if backup.day not in keep:
                confined.remove(backup.path.parent, backup.path.name)
    finally:
        lock.release()
    return target


def kept(days: Sequence[datetime.date]) -> set[datetime.date]:
    """Return the days whose copies are kept: the newest seven, and the newest of four weeks.

    The weeks are those that end before the seven.
    """
    newest = sorted(set(days), reverse=True)
    daily, older = newest[:DAYS], newest[DAYS:]
    weeks: dict[tuple[int, int], datetime.date] = {}
    for day in older:
        year, week, _ = day.isocalendar()
        weeks.setdefault((year, week), day)
    return {*daily, *list(weeks.values())[:WEEKS]}


def choose(database: Path, day: str) -> Backup:
    """Return the copy of a day (`2026-11-23`); the newest for an empty string.

    Raises:
        StoreError: There is none; the message names those there are.
    """
    copies = backups(database)
    for backup in copies:
        if day in ("", backup.day.isoformat()):
            return backup
    days = ", ".join(backup.day.isoformat() for backup in copies) or "none"
    raise StoreError(f"There is no backup of {day or 'any day'}. Backups here: {days}.")


def put_back(database: Path, backup: Backup) -> Path | None:
    """Replace the database by a copy and return where the old one is kept in `backups/`; None if there was none.

    Nobody may have the database open.

    Raises:
        StoreError: The copy is damaged, or of another version of this program; then nothing was changed.
    """
    _check_whole(backup)
    aside = None
    if database.exists():
        aside = database.parent / FOLDER / f"{database.stem}-replaced-{time.strftime('%Y%m%d-%H%M%S')}.db"
        for ending in ("", "-wal", "-shm"):
            part = database.with_name(database.name + ending)
            if part.exists():
                confined.replace(database.parent, part.name, f"{FOLDER}/{aside.name}{ending}")
        sync_folder(aside.parent)
    write_atomically(database, lambda draft: confined.copy(backup.path, draft.parent, draft.name), private=True)
    return aside


def _check_whole(backup: Backup) -> None:
    try:
        uri = f"{backup.path.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            sound = connection.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
        version = version_of(backup.path)
    except sqlite3.DatabaseError:
        sound, version = False, None
    if not sound:
        raise StoreError(f"The backup {backup.path} is damaged. Nothing was changed; choose one of another day.")
    if version != SCHEMA_VERSION:
        raise StoreError(f"The backup {backup.path} is of another version of this program. Nothing was changed.")
