"""Safe access to untrusted databases: allowed contents, and limits on queries."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any, Final

from trainer.store import schema
from trainer.store.rows import StoreError

READ_S: Final = 20.0
"""Seconds of processor time that one reading transaction may take: hundreds of times what the longest takes."""
LONGEST_VALUE: Final = 2**28
"""Bytes of one value; SQLite's own limit is four times that."""
LONGEST_ROW: Final = 2**13
"""Bytes of a row of the curves, of which there are millions: a name has 1,000 characters at most."""
_LOOK_EVERY: Final = 200_000
"""Steps of SQLite's machine between two looks at the clock: about a millisecond."""
_OWN_OF_SQLITE: Final = ("sqlite_sequence", "sqlite_stat1", "sqlite_stat4")
_WORDS: Final = {"view": "a view", "trigger": "a trigger", "table": "a table", "index": "an index"}


def distrust(connection: sqlite3.Connection) -> None:
    """Disable code in the file: no schema functions, no schema changes, no unbounded values."""
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    if hasattr(connection, "setconfig"):  # Python 3.12 and later
        constants: Any = sqlite3
        connection.setconfig(constants.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(constants.SQLITE_DBCONFIG_TRUSTED_SCHEMA, False)


class ReadGuard:
    """Interrupts a read that uses too much CPU time; waiting does not count.

    Args:
        connection: Of the thread that uses it at the time.
        seconds: Of processor time, from `start`.
    """

    def __init__(self, connection: sqlite3.Connection, seconds: float) -> None:
        self._seconds = seconds
        self._limited, self._end = False, 0.0
        connection.set_progress_handler(self._passed, _LOOK_EVERY)

    def start(self, *, limited: bool) -> None:
        """Start counting, without a limit unless `limited`."""
        self._limited, self._end = limited, 0.0

    def _passed(self) -> int:
        if not self._limited:
            return 0
        # The clock costs more than most queries: it is read first by those that take a while.
        self._end = self._end or time.thread_time() + self._seconds
        return time.thread_time() > self._end


def check_objects(path: Path, connection: sqlite3.Connection) -> None:
    """Check that the database contains tables and indexes only.

    A view in the place of a table, or a trigger, decides what each query does and when it ends.

    Raises:
        StoreError: It holds something else; the message names it.
    """
    for kind, name, sql in _objects(connection):
        if kind not in ("table", "index"):
            raise _refusal(path, _WORDS.get(str(kind), "something unknown"), name)
        if kind == "table" and isinstance(sql, str) and sql.lstrip().upper().startswith("CREATE VIRTUAL"):
            raise _refusal(path, "a virtual table", name)


_COMPUTED: Final = (
    "SELECT m.name, x.name FROM sqlite_master m JOIN pragma_table_xinfo(m.name) x WHERE m.type = 'table' AND x.hidden"
)


def check_tables(path: Path, connection: sqlite3.Connection) -> None:
    """Check that the database contains only the tables and indexes of the schema.

    Raises:
        StoreError: It holds something else; the message names it.
    """
    tables = {*schema.metadata.tables, *_OWN_OF_SQLITE, "alembic_version"}
    indexes = {str(index.name) for table in schema.metadata.tables.values() for index in table.indexes}
    for kind, name, sql in _objects(connection):
        names = tables if kind == "table" else indexes
        # Indexes that SQLite makes for a constraint have no words of their own.
        if name not in names and not (kind == "index" and sql is None and str(name).startswith("sqlite_autoindex_")):
            raise _refusal(path, _WORDS.get(str(kind), "something unknown"), name)
    for table, column in connection.execute(_COMPUTED):
        raise _refusal(path, "a computed column", f"{table}.{column}")


def _objects(connection: sqlite3.Connection) -> list[tuple[object, object, object]]:
    return connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()


def _refusal(path: Path, what: str, name: object) -> StoreError:
    spelled = str(name).encode("unicode_escape").decode("ascii")[:80]
    return StoreError(
        f"{path} holds {what} that this program does not make ({spelled}), so it was not used. "
        "Set it aside and make a new one from the run folders: trainer doctor --rebuild."
    )
