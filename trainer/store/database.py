"""Access to `explorer.db`: read and write transactions, with SQLite's errors as messages."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, CursorResult, Engine, Executable, create_engine, event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool
from sqlalchemy.util import LRUCache

from trainer.store import disk, guard
from trainer.store.database_access import Access, address
from trainer.store.database_file import check_schema, create_database
from trainer.store.rows import DatabaseBusy, DatabaseGone, StoreError, TooLong, ValueRefused

BUSY_MS: Final = 10_000
_A_CHANGE: Final = 2**18
"""Bytes that a change of a row and its `run.json` take at most, about."""
_DIALECT: Final = create_engine("sqlite://").dialect
"""Of all databases: by its identity SQLAlchemy finds what it has compiled; compiling a query takes a millisecond."""
_COMPILED: Final = LRUCache[Any, Any](500)
MOST_TEXT: Final = 1 << 26
"""Characters of all rows of a query: thirty times what 2,000 runs have."""
_REFUSED: Final = (275, 1299, 3091)
"""SQLITE_CONSTRAINT_CHECK, _NOTNULL and _DATATYPE: the value cannot be, whatever the other rows hold."""

# The driver would store the bytes of numpy's numbers, which no STRICT column of numbers takes.
for _kind in {np.dtype(code).type for code in "?bBhHiIlLqQefd"}:
    sqlite3.register_adapter(_kind, _kind.item)


class Database:
    """An open database; safe to use from several threads and processes at once.

    Should the file be replaced (rebuilt, restored from a backup), the new one is used from then on.

    Raises:
        StoreError: The file is damaged, has another schema, or cannot be written.

    Args:
        path: The file; it is made when there is none.
        wait_ms: How long writers wait for each other.
        access: How it is opened where it cannot be written.

    Attributes:
        wait_ms: The same; it may be changed.
    """

    def __init__(self, path: Path, *, wait_ms: int = BUSY_MS, access: Access = "write") -> None:
        self.path = path
        self.wait_ms = wait_ms
        self._access = access
        with sentences(path):
            (create_database if access == "write" else check_schema)(path)
            self._number = _number_of(path)
        self._engine = _engine(address(path, access), lambda: self.wait_ms)
        self._watching: sqlite3.Connection | None = None
        self._watch_lock = threading.Lock()

    def _check_same(self) -> None:
        """Use the file that has the database's name now: what is written to a removed one, nobody finds.

        Raises:
            DatabaseGone: There is none.
        """
        number = _number_of(self.path)
        if number == self._number:
            return
        if number is None:
            if not self.path.parent.is_dir():
                raise DatabaseGone(
                    f"{self.path.parent} was moved, renamed or removed while it was in use. Open it where it lies now: "
                    "--workspace DIR."
                )
            raise DatabaseGone(
                f"{self.path} was removed while it was in use. Put it back, or make a new one from the run "
                "folders: trainer doctor --rebuild."
            )
        with self._watch_lock:
            (create_database if self._access == "write" else check_schema)(self.path)
            self._engine.dispose()
            self._stop_watching()
            self._number = number

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a read transaction, which sees a consistent state and takes no write lock."""
        with sentences(self.path):
            self._check_same()
            with self._engine.connect() as connection:
                yield connection

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Connection]:
        """Open a write transaction, committed at the end of the block and rolled back on an exception.

        Args:
            durable: Survives a power cut once the block has ended (synchronous FULL); else the last second may not.

        Raises:
            DatabaseBusy: Other writers held the database longer than this one waits.
        """
        with sentences(self.path):
            self._check_same()
            with self._engine.connect() as connection:
                # IMMEDIATE: a deferred transaction that reads first fails at once when another writer came between.
                connection.execution_options(store_begin="BEGIN IMMEDIATE", store_sync="FULL" if durable else "NORMAL")
                with connection.begin():
                    yield connection

    def changes(self) -> int:
        """Return a number that changes with every commit by any process; costs microseconds."""
        with sentences(self.path):
            self._check_same()
            with self._watch_lock:
                if self._watching is None:
                    # data_version tells of *other* connections' commits: this one is kept apart and never writes.
                    uri = address(self.path, self._access)
                    self._watching = sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=BUSY_MS / 1000)
                    guard.distrust(self._watching)
                # Another file, and one that is opened anew, count from the beginning: their number tells them apart.
                return hash((self._number, int(self._watching.execute("PRAGMA data_version").fetchone()[0])))

    def quick_check(self) -> str:
        """Return `ok`, or what SQLite finds wrong with the file."""
        with sentences(self.path), self._engine.connect() as connection:
            connection.execution_options(store_limited=False)  # as long as the file is
            return "; ".join(connection.exec_driver_sql("PRAGMA quick_check(5)").scalars())

    def close(self) -> None:
        """Close every connection that is not in use."""
        self._engine.dispose()
        with self._watch_lock:
            self._stop_watching()

    def _stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.close()
            self._watching = None


def _number_of(path: Path) -> tuple[int, int] | None:
    """Return the number of a file in its file system; None if there is none."""
    try:
        state = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return state.st_dev, state.st_ino


def _engine(uri: str, wait_ms: Callable[[], int]) -> Engine:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, check_same_thread=False)

    options = {"compiled_cache": _COMPILED}
    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, execution_options=options)
    engine.dialect = _DIALECT

    @event.listens_for(engine, "connect")
    def _on_connect(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
        # Leave BEGIN to us: the driver's own habit splits schema changes from their transaction.
        connection.isolation_level = None
        guard.distrust(connection)
        connection.execute("PRAGMA foreign_keys=ON")
        record.info["limit"] = guard.ReadGuard(connection, guard.READ_S)

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        # What is written is ours; only reading is as long as others made it.
        limited = options.get("store_limited", "store_begin" not in options)
        connection.info["limit"].start(limited=limited)
        settings = wait_ms(), options.get("store_sync", "NORMAL")
        if connection.info.get("settings") != settings:  # they stay set: asking again costs as much as a small query
            connection.exec_driver_sql(f"PRAGMA busy_timeout={settings[0]}")
            connection.exec_driver_sql(f"PRAGMA synchronous={settings[1]}")
            connection.info["settings"] = settings
        connection.exec_driver_sql(options.get("store_begin", "BEGIN"))

    return engine


def fetch(connection: Connection, query: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Any]:
    """Return all rows of a query; invalid UTF-8 is replaced, not raised as an error.

    Raises:
        TooLong: All texts together are longer than any workspace's.
    """
    try:
        return _all(connection.execute(query, values or {}))
    except OperationalError as error:
        if "decode" not in str(error.orig):
            raise
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.text_factory = lambda content: content.decode("utf-8", "replace")
    try:
        return _all(connection.execute(query, values or {}))
    finally:
        driver.text_factory = str


def fetch_value(connection: Connection, query: Executable) -> Any:
    """Return the single value of a query; None if there is no row."""
    return next((row[0] for row in fetch(connection, query)), None)


def _all(result: CursorResult[Any]) -> Sequence[Any]:
    rows, left = [], MOST_TEXT
    for row in result:
        left -= sum([len(value) for value in row if value.__class__ is str or value.__class__ is bytes])
        if left < 0:
            result.close()
            raise TooLong(
                f"The database holds rows with more than {MOST_TEXT:,} characters, which this program never writes. "
                "Rebuild it from the run folders: trainer doctor --rebuild."
            )
        rows.append(row)
    return rows


def is_too_long(error: BaseException) -> bool:
    """Return whether reading failed because a value, or all of them together, are longer than is read."""
    cause = getattr(error, "orig", error)
    return isinstance(error, TooLong) or getattr(cause, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_TOOBIG


def fetch_columns(connection: Connection, query: Executable, longest: int = guard.LONGEST_ROW) -> list[list[Any]]:
    """Return the columns of a query with many rows, without creating an object per row.

    Raises:
        DataError: A row, or a value that decides whether it is returned, has more than `longest` bytes.
    """
    driver: Any = connection.connection.driver_connection
    before = driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
    try:
        return _columns(connection, query)
    finally:
        driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before)


def _columns(connection: Connection, query: Executable) -> list[list[Any]]:
    result = connection.execute(query)
    width, cursor = len(result.keys()), result.cursor
    assert cursor is not None
    try:
        rows = cursor.fetchall()
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
        rows = [tuple(row) for row in fetch(connection, query)]
    finally:
        result.close()
    return [list(map(itemgetter(index), rows)) for index in range(width)]


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """Convert errors of SQLite and files that are not bugs to a `StoreError` with the next step."""
    try:
        yield
    except OSError as error:
        trouble = disk.trouble(error, "The run's row", path, _A_CHANGE)
        if trouble is not None and trouble.full:
            raise trouble from error
        where, why = error.filename or path, error.strerror or error
        raise StoreError(f"{where} cannot be used: {why}. Check the disk and its rights, then try again.") from error
    except OverflowError as error:  # the driver's, of whole numbers past 64 bits
        raise _refused(path, error) from error
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        problem = _problem(path, cause)
        if problem is None:
            raise
        raise problem from error


def _problem(path: Path, cause: BaseException | None) -> StoreError | None:
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return DatabaseBusy(f"{path} is in use by another program. Close what holds it, or try again in a moment.")
    if getattr(cause, "sqlite_errorcode", 0) in _REFUSED or "binding parameter" in str(cause):
        return _refused(path, cause)
    if code == sqlite3.SQLITE_FULL:
        return disk.trouble(OSError(errno.ENOSPC, "full"), "The database", path, _A_CHANGE)
    if isinstance(cause, sqlite3.OperationalError) and "decode" in str(cause):
        code = sqlite3.SQLITE_CORRUPT
    texts = {
        sqlite3.SQLITE_INTERRUPT: f"A query of {path} did not end in {guard.READ_S:.0f} s of computing and was "
        "ended. Is the database this program's own? Make a new one from the run folders: trainer doctor --rebuild.",
        sqlite3.SQLITE_CONSTRAINT: f"{path} does not take this change ({cause}): a row of it is damaged. "
        "Rebuild it from the run folders: trainer doctor --rebuild.",
        sqlite3.SQLITE_ERROR: f"{path} is not as this program made it ({cause}). "
        "Rebuild it from the run folders: trainer doctor --rebuild.",
        sqlite3.SQLITE_TOOBIG: f"{path} holds a value that is too long. "
        "Rebuild it from the run folders: trainer doctor --rebuild.",
        sqlite3.SQLITE_READONLY: f"{path} may not be written. Allow writing, or choose another --workspace.",
        sqlite3.SQLITE_CANTOPEN: f"{path} cannot be opened. Check that its folder exists and may be written.",
        sqlite3.SQLITE_IOERR: f"The disk of {path} does not answer ({cause}). Check that it is connected.",
        sqlite3.SQLITE_CORRUPT: f"{path} is damaged. Rebuild it from the run folders: trainer doctor --rebuild.",
        sqlite3.SQLITE_NOTADB: f"{path} is not a database. Rebuild it from the run folders: trainer doctor --rebuild.",
    }
    return StoreError(texts[code]) if code in texts else None


def _refused(path: Path, cause: BaseException | None) -> ValueRefused:
    return ValueRefused(
        f"{path} does not take a value ({cause}), so nothing of this change was stored. "
        "See what is damaged: trainer doctor."
    )
