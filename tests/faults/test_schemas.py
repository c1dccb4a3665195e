"""Promise 6: every released schema opens; a failed or killed migration changes nothing; newer ones are refused."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from trainer.store import StoreError, Workspace
from trainer.store.schema import SCHEMA_VERSION
from trainer.store.upgrade import MIGRATIONS, known_versions, prepare, version_of

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7_200)]

RELEASED = [version for version in known_versions() if version != SCHEMA_VERSION]
"""The schemas that somebody's workspace may have."""


@pytest.fixture(params=RELEASED)
def golden(request, tmp_path: Path) -> Path:
    """Return a database of a released schema with a run and its curve, made by that release's own migrations."""
    migrations, path = tmp_path / "migrations", tmp_path / "golden" / "explorer.db"
    shutil.copytree(MIGRATIONS, migrations, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (migrations / "versions").glob("v*.py"):
        if file.name[1:5] > request.param:
            file.unlink()
    prepare(path, migrations=migrations, newest=request.param)
    with closing(sqlite3.connect(path)) as connection, connection:
        values = "'old', '0001-old', 'name = \"old\"', 'finished', 1.0"
        connection.execute(f"INSERT INTO run (name, folder, config, status, created_at) VALUES ({values})")
        connection.executemany(
            "INSERT INTO scalar (run, name, step, value, time, elapsed_s) VALUES (1, 'train/loss', ?, ?, 1.0, 1.0)",
            [(step, 1 / step) for step in range(1, 50)],
        )
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def _dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def _opens(path: Path) -> bool:
    workspace = Workspace(path.parent)
    try:
        (row,) = workspace.runs.all()
        return row.name == "old" and len(workspace.results.series(1, "train/loss")[0]) == 49 and row.priority == 0
    finally:
        workspace.close()


def _count(path: Path) -> int:
    """Return the number of statements in a migration."""
    seen = []

    def count(*arguments: object) -> None:
        seen.append(1)

    event.listen(Engine, "before_cursor_execute", count)
    try:
        prepare(path)
    finally:
        event.remove(Engine, "before_cursor_execute", count)
    return len(seen)


def _fail_at(number: int, act):
    """Call `act` before the statement with that number."""
    left = [number]

    def listener(*arguments: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            act()

    event.listen(Engine, "before_cursor_execute", listener)
    return listener


def _refuse() -> None:
    raise sqlite3.OperationalError("database or disk is full")


def _die(path: Path, number: int) -> None:
    _fail_at(number, lambda: os._exit(137))
    prepare(path)


def test_released_schemas_open_whatever_befalls_their_migration(golden, tmp_path, faults):
    before, version = _dump(golden), version_of(golden)
    copy = tmp_path / "copy" / "explorer.db"

    def fresh() -> Path:
        shutil.rmtree(copy.parent, ignore_errors=True)
        shutil.copytree(golden.parent, copy.parent)
        return copy

    statements = _count(fresh())
    assert _opens(copy)
    assert statements > 5
    good, tried = 0, range(1, statements + 1, faults.every(9))
    for number in tried:
        listener = _fail_at(number, _refuse)
        try:
            prepare(fresh())
        except (StoreError, sqlite3.Error):
            backups = list((copy.parent / "backups").glob("explorer-v*"))
            good += _dump(copy) == before and version_of(copy) == version and len(backups) <= 1
        else:
            good += 1  # A table was asked for in another way after the first failed: the migration is whole.
        finally:
            event.remove(Engine, "before_cursor_execute", listener)
        good -= not _opens(copy)
    words = "nothing changed, a backup named; opens the next time"
    faults.row(6, f"schema {version}: migration fails at each statement", words, len(tried), good)
    killed = 0
    fork = multiprocessing.get_context("fork")
    for number in tried:
        child = fork.Process(target=_die, args=(fresh(), number))
        child.start()
        child.join()
        killed += child.exitcode == 137 and _dump(copy) == before and _opens(copy)
    faults.row(6, f"schema {version}: killed at each statement of the migration", words, len(tried), killed)
    assert (good, killed) == (len(tried), len(tried))


def _names(folder: Path) -> list[str]:
    """Return the folder's files, without those that SQLite keeps for an open database."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm")))


def test_a_newer_database_is_refused_and_not_one_byte_of_it_changes(tmp_path, faults):
    tried, good = faults.times(20), 0
    for number in range(tried):
        path = tmp_path / str(number) / "explorer.db"
        prepare(path)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"UPDATE alembic_version SET version_num='{9000 + number}'")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        told, files = hashlib.sha256(path.read_bytes()).digest(), _names(path.parent)
        workspace = Workspace(path.parent)
        try:
            workspace.runs.all()
        except StoreError as error:
            same = hashlib.sha256(path.read_bytes()).digest() == told
            good += same and "newer version" in str(error) and _names(path.parent) == files
    faults.row(6, "database of a newer version", "refused in words, not one byte changed", tried, good)
    assert good == tried
