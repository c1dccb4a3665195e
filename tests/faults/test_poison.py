"""Promise 4 on untrusted files: whatever a cell of the database contains, all other runs stay visible."""

import argparse
import contextlib
import io
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from explorer.models.runs import RunColumn, RunsFilter, RunsModel
from explorer.views.experiments import listed
from tests.nightly import few_plain
from trainer import config
from trainer.cli import runs
from trainer.errors import UserError
from trainer.experiments.experiment import clip_and_cloob, to_toml
from trainer.scheduling import queue
from trainer.store import RunLog, StoreError, Workspace, database, guard, run_table, schema
from trainer.store.reviews import Review

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1_800)]

VALUES = {
    "a word": "zz",
    "nothing written": "",
    "null": None,
    "the largest number": 2**63 - 1,
    "a negative number": -7,
    "a huge fraction": 1.5e300,
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "bytes": b"\x00\xff\x00",
    "a NUL in it": "a\0b",
    "deep JSON": "[" * 100_000,
    "JSON of another kind": '{"a": [1, {"b": "Infinity"}], "gpus": "x", "cpu": 1e999}',
    "half a letter": "CAST(x'61eda080' AS TEXT)",
    "up and away": "../../..",
    "long": "x" * 2_000_000,
}
TABLES = [*schema.metadata.tables, "alembic_version"]


def columns(table: str) -> list[str]:
    found = schema.metadata.tables.get(table)
    return ["version_num"] if found is None else list(found.c.keys())


CELLS = [(table, column, what) for table in TABLES for column in columns(table) for what in VALUES]


@pytest.fixture(scope="module")
def strict(tmp_path_factory) -> Path:
    """Return three runs with all kinds of data, and a row in every other table."""
    workspace = Workspace(tmp_path_factory.mktemp("strict"))
    for name in ("one", "two", "three"):
        number = workspace.runs.create(config.Run(name=name))
        with RunLog.claim(workspace, number) as log:
            for step in range(1, 4):
                log.scalars(step, {"train/loss": 1 / step, "val/image_to_text_R@1": float("nan")})
            log.checkpoint(2, log.folder / "checkpoints" / "step_000002", best=True)
            log.snapshot(2, "scenes", "renderings", log.folder / "snapshots" / "s@000002", 8, 4)
            log.evaluation(2, "scenes", "renderings", {"acc1": 0.5})
            log.headline(0.5, 0.75)
            log.facts(device="cpu")
            log.status("stopped", "Asked to.")
    workspace.selections.keep("mine", "scenes-renderings", [1, 2])
    workspace.reviews.put([Review("scenes", "key", "flagged", "odd", "a.png", "a caption")])
    workspace.experiments.add("asked", to_toml(clip_and_cloob(None)))
    workspace.experiments.set_state("asked", "going")
    workspace.set_setting("queue", {"cpu": 2})
    workspace.close()
    with closing(sqlite3.connect(workspace.database_file)) as connection, connection:
        for table in schema.metadata.sorted_tables:
            if not connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]:
                needed = [c for c in table.c if not c.nullable and not c.primary_key and c.server_default is None]
                values = ", ".join("2" if c.name == "run" else "1" for c in needed)
                connection.execute(f"INSERT INTO {table.name} ({', '.join(c.name for c in needed)}) VALUES ({values})")
    with closing(sqlite3.connect(workspace.database_file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode=DELETE")
    return workspace.folder


@pytest.fixture(scope="module")
def loose(strict, tmp_path_factory) -> Path:
    """Return the same without STRICT, as an attacker can make it: any cell accepts any type."""
    folder = tmp_path_factory.mktemp("loose") / "workspace"
    shutil.copytree(strict, folder)
    with closing(sqlite3.connect(folder / "explorer.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        for name, words in connection.execute("SELECT name, sql FROM sqlite_master WHERE type='table'").fetchall():
            plain = re.sub(r"\)\s*STRICT\s*$", ")", words)
            connection.execute("UPDATE sqlite_master SET sql=? WHERE name=?", (plain, name))
        version = connection.execute("PRAGMA schema_version").fetchone()[0]
        connection.execute(f"PRAGMA schema_version={version + 1}")
    return folder


def poison(database: Path, table: str, column: str, what: str) -> bool:
    """Write the value to a row of run 2, or the last one; False if SQLite rejects it."""
    value = VALUES[what]
    literal = value if isinstance(value, str) and value.startswith("CAST(") else "?"
    row = "rowid = 2" if table == "run" else "run = 2" if "run" in columns(table) else "1"
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        try:
            last = f"(SELECT max(rowid) FROM {table} WHERE {row})"
            words = f"UPDATE {table} SET {column} = {literal} WHERE rowid = {last}"
            connection.execute(words, () if literal != "?" else (value,))
        except sqlite3.IntegrityError:
            return False
    return True


def look(workspace: Workspace) -> None:
    """Read everything; only user errors may be raised."""
    workspace.adopt()
    rows = [*workspace.runs.all(), *workspace.runs.deleted()]
    assert len(rows) == 3, [run.name for run in rows]
    assert sum(run.status != "damaged" for run in rows) >= 2
    last = workspace.results.scalars_after(0)
    assert len(last) >= 17 or len({row.run for row in last}) >= 2
    workspace.results.last_scalar_id()
    for run in rows:
        names = workspace.results.scalar_names(run.id)
        for name in names:
            steps, values, seconds = workspace.results.series(run.id, name)
            assert len(steps) == len(values) == len(seconds)
        found = [workspace.results.last_values(run.id), workspace.results.best_values(run.id)]
        found += [
            workspace.results.snapshots(run.id),
            workspace.results.checkpoints(run.id),
            workspace.results.evaluations(run.id),
        ]
        if run.name in ("one", "three") and run.status != "damaged":
            assert len(names) == 2
            assert all(found), found
        workspace.runs.claimant(run.id), workspace.runs.launched(run.id), workspace.runs.asked(run.id)
        with contextlib.suppress(UserError):
            workspace.runs.config_of(run.id)
        with contextlib.suppress(UserError):
            workspace.catch_up(run.id)
    assert 0 <= queue.slots(workspace).cpu <= 64
    queue.forecast(rows, queue.slots(workspace))
    workspace.selections.all()
    workspace.reviews.all()
    workspace.experiments.going()
    listed(workspace)
    workspace.reconcile()


def show(workspace: Workspace) -> None:
    """Display, sort and describe the runs as the window does."""
    model = RunsModel()
    shown = RunsFilter(model)
    model.show(workspace.runs.all())
    for column in RunColumn:
        for order in (0, 1):
            shown.sort(column, type(shown.sortOrder())(order))
    shown.look_for("t")
    for row in range(model.rowCount()):
        for column in RunColumn:
            for role in range(16):
                model.data(model.index(row, column), role)
            for role in range(256, 262):
                model.data(model.index(row, column), role)


def command(folder: Path, *words: str) -> int:
    """Return the exit code of `trainer runs`, without the slow argument parser of all commands."""
    parser = argparse.ArgumentParser()
    runs.add_arguments(parser)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(words)
    args.workspace = Workspace(folder)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            return runs.run(args)
        except UserError:
            return 2
        finally:
            args.workspace.close()


def survives(folder: Path, table: str) -> bool:
    """Return whether every reader of the workspace works, or fails with a message."""
    workspace = Workspace(folder)
    try:
        look(workspace)
        show(workspace)
    except StoreError:
        return table == "alembic_version"  # then the database is of another version
    finally:
        workspace.close()
    return command(folder) == command(folder, "show", "3", "--json") == 0 and command(folder, "show", "2") in (0, 2)


def test_there_are_many_cells() -> None:
    assert len(CELLS) > 1_000
    assert {table for table, _, _ in CELLS} == {*TABLES}


@few_plain(3, "table", TABLES)
def test_any_value_in_any_cell_hides_no_other_run(table, strict, loose, tmp_path, faults, qapp) -> None:
    """One table, so that each has a time limit of its own: `-n 4 --dist load` tries several at once."""
    cells = [cell for cell in CELLS if cell[0] == table]
    chosen = cells[:: min(faults.every(11), max(44, len(cells) // 4))]
    tried, bad = 0, []
    for number, (name, base) in enumerate((("strict", strict), ("loose", loose))):
        folder = tmp_path / name
        shutil.copytree(base, folder)
        for _, column, what in faults.thin(chosen[number:], 2):
            for rest in folder.glob("explorer.db*"):
                rest.unlink()
            shutil.copyfile(base / "explorer.db", folder / "explorer.db")
            if not poison(folder / "explorer.db", table, column, what):
                continue
            tried += 1
            try:
                good = survives(folder, table)
            except Exception as error:
                good, what = False, f"{what}: {error!r}"
            if not good:
                bad.append((name, table, column, what))
    faults.row("S4", "any value in any cell of the database", "all other runs shown", tried, tried - len(bad))
    assert not bad, bad[:20]
    assert tried


WINDOW = """
import json, sys
from pathlib import Path
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication
from explorer import theme
from explorer.event_loop.exception_hooks import Hooks
from explorer.models.runs import RunsFilter
from explorer.views import VIEWS
from explorer.window import Window

app = QApplication([])
theme.theme().apply(app, "light")
Window.__init__.__kwdefaults__["entries"] = VIEWS[:1]
hooks = Hooks(Path(sys.argv[1]))
hooks.install()
window = Window(Path(sys.argv[1]), hooks)

def look():
    (shown,) = window.findChildren(RunsFilter)
    if shown.rowCount() < 3:
        return
    for column in range(10):
        for order in (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder):
            shown.sort(column, order)
            app.processEvents()
    print(json.dumps({"runs": [run.name for run in shown.runs()], "caught": hooks.caught_count}), flush=True)
    clock.stop()
    window.close()
    app.quit()

clock = QTimer(interval=200, timeout=look)
window.ready.connect(clock.start)
window.show()
QTimer.singleShot(120_000, app.quit)
app.exec()
"""
IN_A_WINDOW = [
    ("run", "started_at", "a word"),
    ("run", "step", "a word"),
    ("run", "best", "bytes"),
    ("run", "facts", "deep JSON"),
    ("run", "name", "half a letter"),
    ("scalar", "kind", "a word"),
    ("scalar", "elapsed_s", "infinity"),
    ("evaluation", "metrics", "JSON of another kind"),
    ("selection", "items", "deep JSON"),
    ("setting", "value", "JSON of another kind"),
]


def test_a_window_shows_the_other_runs(loose, tmp_path, faults) -> None:
    # A tenth of the tries: all ten cells at once.
    sets = [[cell] for cell in IN_A_WINDOW] if faults.whole else [IN_A_WINDOW]
    good, said = 0, []
    for number, cells in enumerate(sets):
        folder = tmp_path / str(number)
        shutil.copytree(loose, folder)
        for cell in cells:
            assert poison(folder / "explorer.db", *cell)
        answer = subprocess.run(
            [sys.executable, "-c", WINDOW, str(folder)], capture_output=True, text=True, check=False, timeout=200
        )
        lines = [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{")]
        whole = answer.returncode == 0 and len(lines) == 1 and not lines[0]["caught"]
        good += whole and {"one", "three"} < set(lines[0]["runs"]) and len(lines[0]["runs"]) == 3
        said.append((answer.returncode, answer.stdout[-300:], answer.stderr[-900:]))
    faults.row("S4", "damaged cells, a real window", "it opens with all other runs", len(sets), good)
    assert good == len(sets), said


# -- what a database may hold ----------------------------------------------------------------------------------

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"
OBJECTS = {
    "a view in the place of a table": [
        "DROP TABLE run",
        f"CREATE VIEW run AS {ENDLESS.format(', '.join(f'i AS {name!r}' for name in columns('run')))}",
    ],
    "a view": [f"CREATE VIEW extra AS {ENDLESS.format('i')}"],
    "a view of versions": ["DROP TABLE alembic_version", "CREATE VIEW alembic_version AS SELECT '0001' version_num"],
    "a trigger": [f"CREATE TRIGGER more AFTER UPDATE ON run BEGIN {ENDLESS.format('i')}; END"],
    "a virtual table": ["CREATE VIRTUAL TABLE words USING fts5(content)"],
    "a table": ["CREATE TABLE extra (id INTEGER)"],
    "an index": ["CREATE INDEX extra ON run (abs(id))"],
    "a computed column": ["ALTER TABLE run ADD COLUMN extra TEXT AS (hex(zeroblob(99999999))) VIRTUAL"],
}


@pytest.fixture(params=OBJECTS)
def odd(request, strict, tmp_path) -> tuple[str, Path]:
    folder = tmp_path / "odd"
    shutil.copytree(strict, folder)
    with closing(sqlite3.connect(folder / "explorer.db")) as connection:
        for words in OBJECTS[request.param]:
            connection.execute(words)
        connection.commit()
    return request.param, folder


def test_what_this_program_does_not_make_is_refused_by_name_and_rebuilt(odd, faults) -> None:
    what, folder = odd
    before = (folder / "explorer.db").read_bytes()
    workspace = Workspace(folder)
    with pytest.raises(StoreError, match=r"does not make \(\w+(\.\w+)?\).*trainer doctor --rebuild"):
        workspace.runs.all()
    workspace.close()
    assert (folder / "explorer.db").read_bytes() == before
    assert command(folder) == 2
    workspace.rebuild()
    assert [run.name for run in workspace.runs.all()] == ["one", "two", "three"]
    workspace.close()
    (aside,) = (folder / "backups").glob("explorer-damaged-*.db")
    assert aside.read_bytes() == before
    faults.row("S4", f"the database holds {what}", "refused by name; set aside and rebuilt", 1, 1)


def test_an_endless_query_ends_with_a_sentence(strict, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "w"
    shutil.copytree(strict, folder)
    monkeypatch.setattr(guard, "READ_S", 0.2)
    workspace = Workspace(folder)
    workspace.runs.all()
    words = ENDLESS.format("count(i)")
    with pytest.raises(StoreError, match="did not end in"), workspace.database.read() as connection:
        connection.exec_driver_sql(words)
    # Another transaction has all of its time again, and what is written has no end.
    assert len(workspace.runs.all()) == 3
    with workspace.database.write() as connection:
        connection.exec_driver_sql(words.replace("FROM n)", "FROM n WHERE i < 3000000)")).all()
    workspace.close()


@few_plain(2, "column", ["facts", "reason", "metric", "pid"])
@few_plain(2, "beyond_sqlite", [False, True])
def test_values_of_gigabytes_hide_no_run(loose, tmp_path, monkeypatch, column, beyond_sqlite) -> None:
    """The limits are set low, so that two megabytes are as gigabytes are."""
    folder = tmp_path / "w"
    shutil.copytree(loose, folder)
    assert poison(folder / "explorer.db", "run", column, "long")
    monkeypatch.setattr(guard, "LONGEST_VALUE", 1 << (20 if beyond_sqlite else 28))
    for module in (database, run_table):
        monkeypatch.setattr(module, "MOST_TEXT", 100_000)
    monkeypatch.setattr(run_table, "_MOST_OF_ONE", 50_000)
    workspace = Workspace(folder)
    rows = workspace.runs.all()
    assert [run.name for run in rows] == ["one", "two", "three"]
    assert [run.status == "damaged" for run in rows] == [False, True, False]
    assert column in rows[1].reason
    assert workspace.runs.get(2).status == "damaged"
    workspace.close()


@pytest.mark.parametrize("column", ["name", "kind", "step", "value"])
def test_long_values_hide_no_other_curve(loose, tmp_path, column) -> None:
    folder = tmp_path / "w"
    shutil.copytree(loose, folder)
    assert poison(folder / "explorer.db", "scalar", column, "long")
    workspace = Workspace(folder)
    found = workspace.results.scalars_after(0)
    assert len(found) == 17
    assert {row.run for row in found} == {1, 2, 3}
    assert [len(workspace.results.series(run, "train/loss")[0]) for run in (1, 3)] == [3, 3]
    workspace.close()


def test_experiments_of_a_stranger_add_no_runs_once_the_workspace_is_mine(strict, tmp_path) -> None:
    folder = tmp_path / "w"
    shutil.copytree(strict, folder)
    workspace = Workspace(folder)
    assert workspace.look_only
    assert [one.name for one in workspace.experiments.going()] == ["asked"]
    assert not queue.start_due(workspace)
    workspace.adopt()
    assert not workspace.look_only
    assert [one.state for one in workspace.experiments.all()] == ["stopped"]
    assert not queue.start_due(workspace)
    assert len(workspace.runs.all()) == 3
    workspace.close()


def test_a_damaged_run_says_why_is_not_trained_and_can_be_deleted(strict, tmp_path) -> None:
    folder = tmp_path / "w"
    shutil.copytree(strict, folder)
    assert poison(folder / "explorer.db", "run", "facts", "deep JSON")
    workspace = Workspace(folder)
    workspace.adopt()
    row = workspace.runs.get(2)
    assert (row.status, row.name, row.best) == ("damaged", "two", 0.75)
    assert "'facts' holds no JSON" in row.reason
    with pytest.raises(StoreError, match=r"cannot be trained.*doctor --rebuild"):
        workspace.runs.begin_launch(2)
    workspace.delete(2)
    assert [run.name for run in workspace.runs.all()] == ["one", "three"]
    workspace.close()
