"""The database file: made once, whole and stamped; one of another schema is refused."""

import hashlib
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests import forked_code
from trainer.store import StoreError, Workspace
from trainer.store.database_file import create_database, version_of
from trainer.store.schema import SCHEMA_VERSION, metadata

pytestmark = pytest.mark.slow


def _tables(path: Path) -> list[tuple[str, str, list[str]]]:
    """Return type, name and words of each table and index, in alphabetic order: the words' order says nothing."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return sorted((kind, name, sorted(re.split(r'[\s,()"]+', sql))) for kind, name, sql in rows)


def test_the_stamp_belongs_to_these_tables(tmp_path):
    """Whoever changes the tables changes the stamp, and then the digest here."""
    path = tmp_path / "explorer.db"
    create_database(path)
    digest = hashlib.sha256(repr(_tables(path)).encode()).hexdigest()
    assert (SCHEMA_VERSION, digest[:16]) == ("0011", "b6865c4a1bd5cb82")
    assert version_of(path) == SCHEMA_VERSION
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        made = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type='table'"))
    assert all("AUTOINCREMENT" in made[table] and "CHECK" in made[table] for table in ("run", "scalar"))
    assert all("STRICT" in made[table] for table in metadata.tables)


@pytest.mark.parametrize("stamp", ["0009", "9999", "unknown"])
def test_a_database_of_another_schema_is_refused_and_not_one_byte_changes(workspace, tiny, stamp):
    workspace.runs.create(tiny)
    workspace.close()
    path = workspace.database_file
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM alembic_version")
        if stamp != "unknown":
            connection.execute("INSERT INTO alembic_version VALUES (?)", (stamp,))
    before, files = path.read_bytes(), {file.name for file in workspace.folder.iterdir()}
    with pytest.raises(StoreError, match=f"has schema {stamp}.* reads schema {SCHEMA_VERSION} .*--workspace"):
        workspace.runs.all()
    assert path.read_bytes() == before
    assert {file.name for file in workspace.folder.iterdir() if "-" not in file.name} <= files
    with pytest.raises(StoreError, match="has schema"):
        Workspace(workspace.folder).rebuild()
    assert path.read_bytes() == before


def test_processes_that_open_a_new_workspace_at_once_agree(tmp_path):
    code = "import sys, pathlib; from trainer.store import Workspace as W; W(pathlib.Path(sys.argv[1])).runs.all()"
    opens = [subprocess.Popen(forked_code.command(code, str(tmp_path / "space"))) for _ in range(3)]
    assert [process.wait() for process in opens] == [0, 0, 0]


def test_the_documentation_tells_every_table():
    """Users read the database with their own programs."""
    page = Path(__file__).parents[3] / "assets" / "docs" / "reference" / "database.md"
    assert set(re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)) == {*metadata.tables}


def test_the_documentation_tells_every_file_of_a_run(charted):
    page = (Path(__file__).parents[3] / "assets" / "docs" / "reference" / "file-formats.md").read_text(encoding="utf-8")
    files = {file.name for file in charted.runs.get(1).folder.rglob("*") if file.is_file()}
    assert {"image.npy", "items.parquet", "manifest.json"} <= files
    assert [
        name for name in sorted(files - {"alive.lock"}) if f"`{name}`" not in page and f"/{name}`" not in page
    ] == []
