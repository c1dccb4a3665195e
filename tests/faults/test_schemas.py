"""Promise 6: a database of another schema is refused, and not one byte of it changes."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from trainer.store import StoreError, Workspace
from trainer.store.database_file import create_database

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7_200)]


def _names(folder: Path) -> list[str]:
    """Return the folder's files, without those that SQLite keeps for an open database."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm")))


def test_a_database_of_another_schema_is_refused_and_not_one_byte_of_it_changes(tmp_path, faults):
    attempts, good = faults.times(20), 0
    for number in range(attempts):
        path = tmp_path / str(number) / "explorer.db"
        create_database(path)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"UPDATE alembic_version SET version_num='{9000 + number}'")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        digest, files = hashlib.sha256(path.read_bytes()).digest(), _names(path.parent)
        workspace = Workspace(path.parent)
        try:
            workspace.runs.all()
        except StoreError as error:
            same = hashlib.sha256(path.read_bytes()).digest() == digest
            good += same and f"has schema {9000 + number}" in str(error) and _names(path.parent) == files
    faults.row(6, "database of another schema", "refused in words, not one byte changed", attempts, good)
    assert good == attempts
