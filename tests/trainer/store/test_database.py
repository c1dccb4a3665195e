import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import select, text
from sqlalchemy.sql.compiler import SQLCompiler

from trainer.store import DatabaseBusy
from trainer.store.database import Database
from trainer.store.schema import metadata

FULL, NORMAL = 2, 1


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "explorer.db", wait_ms=30)
    yield database
    database.close()


def test_job_state_is_written_durably_and_curves_are_not(database):
    for durable, level in ((True, FULL), (False, NORMAL), (True, FULL)):
        with database.write(durable=durable) as connection:
            assert connection.execute(text("PRAGMA synchronous")).scalar() == level
            assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1
            assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"


def test_readers_neither_take_nor_wait_for_the_write_lock(database):
    with closing(sqlite3.connect(database.path, isolation_level=None, timeout=0)) as other:
        with database.read() as connection:
            assert connection.execute(text("SELECT count(*) FROM run")).scalar() == 0
            other.execute("BEGIN IMMEDIATE")
            other.execute("INSERT INTO setting (name, value) VALUES ('a', '')")
        with database.read() as connection:
            assert connection.execute(text("SELECT count(*) FROM setting")).scalar() == 0
        with pytest.raises(DatabaseBusy, match="in use by another program"), database.write():
            pass
        other.execute("COMMIT")
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM setting")).scalar() == 1


def test_a_write_that_fails_leaves_nothing(database):
    insert = text("INSERT INTO setting (name, value) VALUES ('a', '')")

    def fail() -> None:
        with database.write() as connection:
            connection.execute(insert)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM setting")).scalar() == 0


def test_a_query_is_compiled_once_for_all_databases(tmp_path, monkeypatch):
    query = select(metadata.tables["run"].c.id)
    for name in ("first", "other"):
        database = Database(tmp_path / name / "explorer.db")
        with database.read() as connection:
            assert connection.execute(query).all() == []
        database.close()
        monkeypatch.delattr(SQLCompiler, "visit_select", raising=False)
