import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from trainer.__main__ import main
from trainer.config import Run
from trainer.store import LookOnly, StoreError, Workspace
from trainer.store.schema import FORMER_TABLES, SCHEMA_VERSION, metadata
from trainer.store.upgrade import MIGRATIONS, known_versions, prepare, version_of

pytestmark = pytest.mark.slow

NEXT = '''
"""A later schema."""
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{down}"


def upgrade() -> None:
    with op.batch_alter_table("run") as batch:
        batch.add_column(sa.Column("mood", sa.Text(), nullable=False, server_default="calm"))
    {then}
'''


@pytest.fixture
def later(tmp_path: Path):
    """Return a copy of the migrations with one more, which ends in the given statement."""

    def write(then: str = "pass") -> Path:
        folder = tmp_path / "migrations"
        shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "versions" / "v9999_next.py").write_text(NEXT.format(down=SCHEMA_VERSION, then=then))
        return folder

    return write


@pytest.fixture
def filled(workspace: Workspace, tiny) -> Path:
    workspace.runs.create(tiny)
    workspace.close()
    return workspace.database_file


def _columns(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[1] for row in connection.execute("PRAGMA table_info(run)")}


def _words(path: Path) -> dict[str, list[str]]:
    """Return table or index -> the words of its SQL in alphabetic order: that of constraints says nothing."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(SCHEMA_VERSION,)]
    return {name: sorted(re.split(r'[\s,()"]+', words)) for name, words in rows}


def test_migrations_make_exactly_the_tables_of_the_schema_and_so_does_a_new_database(tmp_path):
    path, steps = tmp_path / "new.db", tmp_path / "steps"
    shutil.copytree(MIGRATIONS, steps, ignore=shutil.ignore_patterns("__pycache__"))
    prepare(path, migrations=steps)
    prepare(tmp_path / "at once.db")
    assert _words(path) == _words(tmp_path / "at once.db")
    with create_engine(f"sqlite:///{path}").connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        made = dict(connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type='table'").all())
    for table in ("run", "scalar"):
        assert "AUTOINCREMENT" in made[table]
        assert "CHECK" in made[table]

    assert all("STRICT" in words for name, words in made.items() if name in metadata.tables)


def test_the_newest_version_is_the_head_of_the_migrations():
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == SCHEMA_VERSION
    assert known_versions()[0] == SCHEMA_VERSION


def test_a_newer_database_is_refused_and_not_one_byte_changes(filled, workspace):
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("UPDATE alembic_version SET version_num='9999'")
        connection.commit()
    before = filled.read_bytes()
    with pytest.raises(StoreError, match="newer version"):
        workspace.runs.all()
    assert filled.read_bytes() == before
    assert not (workspace.folder / "backups").exists()
    assert version_of(filled) == "9999"


def test_an_older_database_is_backed_up_then_migrated(filled, later):
    prepare(filled, migrations=later(), newest="9999")
    assert version_of(filled) == "9999"
    assert "mood" in _columns(filled)
    (backup,) = (filled.parent / "backups").iterdir()
    assert backup.name.startswith(f"explorer-v{SCHEMA_VERSION}-")
    assert version_of(backup) == SCHEMA_VERSION
    assert "mood" not in _columns(backup)
    with closing(sqlite3.connect(filled)) as new, closing(sqlite3.connect(backup)) as old:
        assert new.execute("SELECT name FROM run").fetchall() == old.execute("SELECT name FROM run").fetchall()


def test_a_migration_that_fails_changes_nothing_and_names_the_backup(filled, later):
    with closing(sqlite3.connect(filled)) as connection:
        before = list(connection.iterdump())
    with pytest.raises(StoreError, match=r"It was not changed; a copy is at .*backups"):
        prepare(filled, migrations=later('op.execute("INSERT INTO nowhere VALUES (1)")'), newest="9999")
    with closing(sqlite3.connect(filled)) as connection:
        assert list(connection.iterdump()) == before
    assert version_of(filled) == SCHEMA_VERSION
    assert Workspace(filled.parent).runs.get(1).name == "tiny"


def test_processes_that_open_a_new_workspace_at_once_agree(tmp_path):
    import subprocess
    import sys

    code = "import sys, pathlib; from trainer.store import Workspace as W; W(pathlib.Path(sys.argv[1])).runs.all()"
    opens = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "space")]) for _ in range(3)]
    assert [process.wait() for process in opens] == [0, 0, 0]


def test_a_workspace_of_the_first_schema_keeps_its_runs(tmp_path):
    path = tmp_path / "space" / "explorer.db"
    first = tmp_path / "first"
    shutil.copytree(MIGRATIONS, first, ignore=shutil.ignore_patterns("__pycache__", "v000[2-9]*", "v00[1-9]*"))
    prepare(path, migrations=first, newest="0001")
    with closing(sqlite3.connect(path)) as connection, connection:
        values = "'old', '0001-old', 'name = \"old\"', 'finished', 1.0"
        connection.execute(f"INSERT INTO run (name, folder, config, status, created_at) VALUES ({values})")
    workspace = Workspace(path.parent)
    (row,) = workspace.runs.all()
    assert (row.name, row.device, row.priority, row.place, row.alerts) == ("old", "", 0, None, {})
    assert workspace.setting("queue", "unset") == "unset"
    # From before there was a word of whose it is: read as a copy, and brought up to date once it is made mine.
    assert version_of(path) == "0001"
    assert [file.name for file in path.parent.iterdir() if "-" not in file.name] == ["explorer.db"]
    with pytest.raises(LookOnly):
        workspace.results.add_evaluation(1, 1, "scenes", "renderings", {"acc1": 0.5})
    workspace.adopt()  # from before there was a word of whose it is
    workspace.set_setting("queue", {"cpu": 2})
    assert workspace.setting("queue") == {"cpu": 2}
    workspace.close()
    assert [file.name.startswith("explorer-v0001-") for file in (path.parent / "backups").iterdir()] == [True]


WORDS = {"status": "finished", "kind": "finite", "state": {"review": "flagged", "experiment": "ended"}}
WORDS |= {"folder": "0001-old", "config": 'name = "old"', "alerts": "{}"}
"""Columns that do not take every text -> what is written."""
EARLIER = {"sitting_at": "session_at"}
"""Columns of earlier schemas -> their names today."""


def _fill(path: Path) -> dict[str, dict[str, object]]:
    """Write a row with a value in every column of every table, and return table -> column -> value."""
    written: dict[str, dict[str, object]] = {}
    with closing(sqlite3.connect(path)) as connection, connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        for table in sorted({*names} - {"alembic_version", "sqlite_sequence"}, key=lambda name: name != "run"):
            row: dict[str, object] = {}
            for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({table})"):
                word = WORDS.get(column, json.dumps({column: 1}))
                text = word[table] if isinstance(word, dict) else word
                row[column] = {"INTEGER": 1, "REAL": 2.5, "FLOAT": 2.5, "BOOLEAN": 1}.get(kind, text)
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", [*row.values()])
            written[table] = row
    return written


@pytest.mark.parametrize("version", known_versions()[1:])
def test_every_value_of_every_earlier_schema_arrives_in_the_tables_of_today(tmp_path, version):
    path, steps = tmp_path / "space" / "explorer.db", tmp_path / "steps"
    shutil.copytree(MIGRATIONS, steps, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (steps / "versions").glob("v*.py"):
        if file.name[1:5] > version:
            file.unlink()
    prepare(path, migrations=steps, newest=version)
    written = _fill(path)
    assert written["run"]
    prepare(path)
    assert version_of(path) == SCHEMA_VERSION
    prepare(tmp_path / "new.db")
    assert _words(path) == _words(tmp_path / "new.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        for table in {*written} - FORMER_TABLES:
            (row,) = connection.execute(f"SELECT * FROM {table}").fetchall()
            assert {name: row[EARLIER.get(name, name)] for name in written[table]} == written[table], table
    row = Workspace(path.parent).runs.get(1)
    assert row.status == "finished", row.reason


def test_tables_that_were_never_used_go_and_a_workspace_that_has_them_is_still_looked_at(tmp_path):
    path, before = tmp_path / "space" / "explorer.db", tmp_path / "before"
    shutil.copytree(MIGRATIONS, before, ignore=shutil.ignore_patterns("__pycache__", "v000[6-9]*", "v00[1-9]*"))
    prepare(path, migrations=before, newest="0005")

    def tables(file: Path) -> set[str]:
        with closing(sqlite3.connect(file)) as connection:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}

    with closing(sqlite3.connect(path)) as connection, connection:
        values = "'old', '0001-old', 'name = \"old\"', 'finished', 1.0"
        connection.execute(f"INSERT INTO run (name, folder, config, status, created_at) VALUES ({values})")
    assert tables(path) >= FORMER_TABLES
    workspace = Workspace(path.parent)
    assert [row.name for row in workspace.runs.all()] == ["old"], "looked at as it is"
    workspace.adopt()
    assert [row.name for row in workspace.runs.all()] == ["old"]
    workspace.close()
    assert tables(path) == {*metadata.tables, "alembic_version", "sqlite_sequence"}
    (backup,) = (path.parent / "backups").iterdir()
    assert tables(backup) >= FORMER_TABLES


def test_the_readme_tells_every_table():
    """Users read the database with their own programs."""
    text = (MIGRATIONS.parents[1] / "README.md").read_text(encoding="utf-8")
    section = text.partition("### The tables of the database\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == {*metadata.tables}


def test_cells_of_another_type_are_left_out_of_strict_tables_and_reported(tmp_path, capsys):
    path, before = tmp_path / "space" / "explorer.db", tmp_path / "before"
    shutil.copytree(MIGRATIONS, before, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (before / "versions").glob("v*.py"):
        if file.name[1:5] > "0003":
            file.unlink()
    prepare(path, migrations=before, newest="0003")
    with closing(sqlite3.connect(path)) as connection, connection:
        columns = "name, folder, config, status, created_at, step, started_at"
        words = f"INSERT INTO run ({columns}) VALUES (?, ?, 'x', ?, 1.0, ?, ?)"
        connection.execute(words, ("sound", "0001-sound", "finished", 7, 5.0))
        connection.execute(words, (b"no text", "0002-odd", "finished", "no number", "no time"))
        words = "INSERT INTO scalar (run, name, step, value, kind, time, elapsed_s) VALUES (?, 'a', ?, ?, ?, 1.0, 1.0)"
        rows = [(1, 1, 0.5, "finite"), (1, 2, None, "nan"), (1, 3, "no value", "finite"), (1, "no step", 1.0, "finite")]
        connection.executemany(words, [*rows, (77, 4, 1.0, "finite")])
        connection.execute("INSERT INTO checkpoint (run, step, folder, best, created_at) VALUES (1, 2, 'f', 1, 1.0)")
        connection.execute("UPDATE sqlite_sequence SET seq = 41 WHERE name = 'run'")
    workspace = Workspace(path.parent)
    workspace.adopt()
    sound, odd = workspace.runs.all()
    assert (sound.name, sound.step, sound.started_at, sound.status) == ("sound", 7, 5.0, "finished")
    assert (odd.folder.name, odd.step, odd.started_at, odd.status) == ("0002-odd", 0, None, "finished")
    steps, values, _ = workspace.results.series(1, "a")
    assert steps.tolist() == [1, 2, 3]
    assert [str(value) for value in values] == ["0.5", "nan", "nan"]
    assert [row.best for row in workspace.results.checkpoints(1)] == [True]
    told = workspace.setting("left out by schema 0004")
    assert told == [
        "Row 2 of run lost these values: name, step, started_at could not be read.",
        "Row 3 of scalar lost these values: value could not be read.",
        "Row 4 of scalar was left out: step could not be read.",
        "Row 5 of scalar was left out: run could not be read.",
    ]
    assert workspace.runs.create(Run(name="next")) == 42, "numbers of runs that are gone stay taken"
    workspace.close()
    main(["doctor", "--workspace", str(path.parent)])
    assert "Row 2 of run lost these values" in capsys.readouterr().out
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute("UPDATE run SET step = 'zz'")
