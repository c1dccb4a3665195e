"""The database as a file: created once, refused where its schema is another one, and copied while others write."""

from __future__ import annotations

import functools
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import create_mock_engine
from sqlalchemy.dialects import sqlite

from trainer.store import guard
from trainer.store.database_access import access_of, address
from trainer.store.files import make_folders, sync_folder
from trainer.store.rows import StoreError
from trainer.store.schema import SCHEMA_VERSION, metadata
from trainer.untrusted import confined
from trainer.untrusted.files import check_ordinary

_BUSY_S: Final = 10.0


def create_database(path: Path) -> None:
    """Create the database at `path` in WAL mode if it is missing or empty.

    Raises:
        StoreError: It has another schema, leads elsewhere, or holds what this program does not make; then not one byte
            of it is changed.
    """
    make_folders(path.parent)
    if check_schema(path):
        return
    confined.open_file(path.parent, path.name, "ab").close()  # for its owner alone; what SQLite adds, too
    _set_wal(path)
    _create(path)


def check_schema(path: Path) -> bool:
    """Check that a database may be opened, without changing anything; return False if it is missing or empty.

    Raises:
        StoreError: It has another schema, leads elsewhere, or holds what this program does not make.
    """
    for ending in ("", "-wal", "-shm", "-journal"):
        try:
            confined.inside(path.parent, path.name + ending)
        except confined.NotConfined as error:
            raise StoreError(f"The database is not opened: of {error.filename}, {error.strerror}.") from error
    version = version_of(path)
    if version not in (None, SCHEMA_VERSION):
        raise StoreError(
            f"{path} has schema {version}, and this version of Contrastive Explorer reads schema {SCHEMA_VERSION} "
            "only. Nothing was changed. Open it with the version that made it, or choose another --workspace."
        )
    return version is not None


def version_of(path: Path) -> str | None:
    """Return the schema version of a database; None if it is missing or empty. Changes nothing.

    Raises:
        StoreError: It is of another program, or claims the schema of today and holds what this program does not make.
    """
    if not path.exists():
        return None
    check_ordinary(path)
    if path.stat().st_size == 0:
        return None
    with _only_reading(path) as connection:
        guard.check_objects(path, connection)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        if "alembic_version" not in tables:
            if tables:
                raise StoreError(f"{path} is a database of another program. Choose another --workspace.")
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        version = str(row[0])[:40] if row else "unknown"
        if version == SCHEMA_VERSION:
            guard.check_tables(path, connection)
        return version


@contextmanager
def _only_reading(path: Path) -> Iterator[sqlite3.Connection]:
    access = access_of(path)
    uri = address(path, "live" if access == "write" else access)
    with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S)) as connection:
        connection.text_factory = lambda content: content.decode("utf-8", "replace")
        guard.distrust(connection)
        yield connection


def copy_verified(path: Path, target: Path) -> None:
    """Copy a database while others may write; `target` exists only once the copy is complete.

    Raises:
        StoreError: The database is damaged.
    """
    draft = target.with_name(f".tmp-{target.name}")
    # SQLite would follow a link at that name, and make the file readable to all.
    confined.open_file(draft.parent, draft.name, "wb").close()
    try:
        # A plain copy of a live WAL database is often damaged; the backup API's never is.
        uri = address(path, access_of(path))
        with (
            closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S)) as source,
            closing(sqlite3.connect(draft)) as copy,
        ):
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
            sound = copy.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
            counted = _counts(copy).keys() == _counts(source).keys()
        if not (sound and counted):
            raise StoreError(f"{path} is damaged, so it was not changed. Rebuild it: trainer doctor --rebuild.")
        with confined.open_file(draft.parent, draft.name, "rb+") as file:
            os.fsync(file.fileno())
        confined.replace(target.parent, draft.name, target.name)
    finally:
        confined.remove(target.parent, draft.name)
    sync_folder(target.parent)


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    quoted = [(name, name.replace('"', '""')) for name in names]
    return {n: connection.execute(f'SELECT count(*) FROM "{q}"').fetchone()[0] for n, q in quoted}  # noqa: S608


def _set_wal(path: Path) -> None:
    deadline = time.monotonic() + _BUSY_S
    while True:
        with closing(sqlite3.connect(path, timeout=_BUSY_S)) as connection:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError:
                # Changing the mode does not wait for other openers by itself.
                if time.monotonic() > deadline:
                    raise
        time.sleep(0.02)


def _create(path: Path) -> None:
    """Create all tables and their stamp at once: two openers take turns, and a fault leaves no half schema."""
    with closing(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)) as connection:
        guard.distrust(connection)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            return  # another process was faster
        for statement in _schema():
            connection.execute(statement)
        connection.execute("INSERT INTO alembic_version VALUES (?)", (SCHEMA_VERSION,))
        connection.execute("COMMIT")


@functools.cache
def _schema() -> tuple[str, ...]:
    """Return the statements that create the tables; SQLAlchemy takes longer to write them than SQLite to run them."""
    statements = [
        "CREATE TABLE alembic_version "
        "(version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    ]
    dialect = sqlite.dialect()
    engine = create_mock_engine("sqlite://", lambda made, *_: statements.append(str(made.compile(dialect=dialect))))
    metadata.create_all(engine, checkfirst=False)
    return tuple(statements)
