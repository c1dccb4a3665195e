"""A workspace from before the American spelling: `earlier_workspace`, written by that version."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from explorer.state.earlier_settings import renamed
from trainer import config
from trainer.__main__ import main
from trainer.checkpoints import checkpoint
from trainer.data.scenes import writing
from trainer.store import Workspace, earlier_names
from trainer.store.journal import read_journal
from trainer.store.process_lock import AliveLock
from trainer.store.schema import SCHEMA_VERSION
from trainer.store.snapshot_files import read_snapshot
from trainer.store.upgrade import prepare, version_of
from trainer.training.provenance import sessions_of

pytestmark = pytest.mark.slow

BEFORE = Path(__file__).with_name("earlier_workspace")
OLD = ("optimiser", "colour", "grey")


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """Return a copy of it, whose database is at schema 0004."""
    folder = tmp_path / "before"
    shutil.copytree(BEFORE / "runs", folder / "runs")
    with closing(sqlite3.connect(folder / "explorer.db")) as connection:
        connection.executescript((BEFORE / "explorer.sql").read_text())
    return folder


@pytest.fixture
def upgraded(earlier: Path):
    workspace = Workspace(earlier)
    workspace.adopt()
    workspace.runs.set_setting("queue", "{}")
    yield workspace
    workspace.close()


def _texts(folder: Path) -> list[str]:
    """Return all texts in the database, and the files that are read again."""
    with closing(sqlite3.connect(folder / "explorer.db")) as connection:
        rows = [line for line in connection.iterdump() if line.startswith("INSERT")]
    return rows + [(folder / "runs" / "0001-old" / name).read_text() for name in ("config.toml", "metrics.jsonl")]


def test_the_earlier_workspace_has_the_earlier_names(earlier):
    """Check the starting point of this file's other tests."""
    assert version_of(earlier / "explorer.db") == "0004"
    assert all(any(name in text for text in _texts(earlier)) for name in OLD)


def test_it_is_upgraded_once_and_every_number_is_still_there(upgraded):
    folder, row = upgraded.folder, upgraded.runs.get("old")
    assert version_of(folder / "explorer.db") == SCHEMA_VERSION
    assert not [name for name in OLD for text in _texts(folder) if name in text]
    run = upgraded.runs.config_of(row.id)
    assert (run.optimizer.batch_size, run.objective.color, run.objective.gray) == (32, 0.4, 0.1)
    assert config.read(row.folder / "config.toml") == run

    before = [json.loads(line) for line in (BEFORE / "runs/0001-old/metrics.jsonl").read_text().splitlines()]
    known = [(line["step"], line["values"]) for line in before]
    found = {step: values["val/knn_subject_colour"] for step, values in known if "val/knn_subject_colour" in values}
    assert list(found) == [0, 4, 8]
    steps, values, _ = upgraded.results.series(row.id, "val/knn_subject_color")
    assert dict(zip(steps.tolist(), values.tolist(), strict=True)) == found
    assert set(upgraded.results.scalar_names(row.id)) == {name for line in _journal(row.folder) for name in line}
    evaluations = [one.metrics["knn_object_color"] for one in upgraded.results.evaluations(row.id)]
    assert evaluations[:2] == [0.1875, 0.0]

    dump = _texts(folder)
    upgraded.close()
    prepare(folder / "explorer.db")
    assert _texts(folder) == dump


def _journal(folder: Path) -> list[dict[str, float]]:
    return [entry.values for entry in read_journal(folder / "metrics.jsonl")]


def test_a_command_shows_it(upgraded, capsys):
    for words in (["runs"], ["runs", "show", "1"]):
        assert main([*words, "--workspace", str(upgraded.folder)]) == 0
        assert "old" in capsys.readouterr().out


def test_a_snapshot_has_the_columns_of_today(upgraded):
    folders = sorted((upgraded.runs.get(1).folder / "snapshots").iterdir())
    for folder in folders:
        assert "meta.subject_colour" in parquet.read_schema(folder / "items.parquet").names
        assert {"subject_color", "object_color", "ground"} <= set(read_snapshot(folder).items.metadata)
        assert read_snapshot(folder).items.metadata["subject_color"] == read_snapshot(folder).items.label
    assert len(folders) == 2


def test_a_column_of_another_data_set_keeps_its_name(upgraded):
    folder = next((upgraded.runs.get(1).folder / "snapshots").iterdir())
    card = json.loads((folder / "snapshot.json").read_text())
    (folder / "snapshot.json").write_text(json.dumps(card | {"dataset": "mine"}))
    (folder / "manifest.json").unlink()
    assert "subject_colour" in read_snapshot(folder).items.metadata


def test_it_goes_on_training_as_if_nothing_had_been_named_anew(upgraded):
    row = upgraded.runs.get(1)
    found, complaints = checkpoint.newest(row.folder / "checkpoints")
    assert (found.step, complaints) == (9, [])
    assert {"optimizer", "generators"} <= found.training.keys()
    upgraded.close()
    assert main(["fit", "1", "--workspace", str(upgraded.folder)]) == 0
    row = upgraded.runs.get(1)
    assert (row.status, row.step) == ("finished", 40)
    steps, _, _ = upgraded.results.series(1, "val/knn_subject_color")
    assert steps.tolist() == list(range(0, 41, 4))
    assert not [name for name in upgraded.results.scalar_names(1) if "colour" in name]


@pytest.mark.parametrize("lost", ["the database", "the database and run.json"])
def test_a_rebuild_brings_it_back(earlier, lost, capsys):
    (earlier / "explorer.db").unlink()
    if "run.json" in lost:
        (earlier / "runs/0001-old/run.json").unlink()
    workspace = Workspace(earlier)
    workspace.adopt()
    workspace.close()
    assert main(["doctor", "--rebuild", "--workspace", str(earlier)]) == 0
    capsys.readouterr()
    workspace = Workspace(earlier)
    (row,) = workspace.runs.all()
    assert workspace.runs.config_of(row.id).objective.gray == 0.1
    assert len(workspace.results.series(row.id, "val/knn_subject_color")[0]) == 3
    assert not [name for name in OLD for text in _texts(earlier) if name in text]
    assert len(workspace.results.evaluations(row.id)) == (0 if "run.json" in lost else 6)
    workspace.close()


def test_a_run_folder_of_then_is_imported(earlier, workspace):
    number = workspace.import_run(earlier / "runs/0001-old")
    assert workspace.runs.config_of(number).optimizer.epochs == 10
    assert len(workspace.results.series(number, "val/knn_object_color")[0]) == 3
    assert not [name for name in OLD for text in _texts(workspace.folder) if name in text]


def test_scenes_drawn_then_have_the_columns_of_today(tmp_path):
    folder = tmp_path / "scenes"
    writing.write(config.Scenes(train_pairs=64, heldout_pairs=16), folder, lambda share, words: None, processes=1)
    new = writing.sources(folder, "train")
    file = folder / "train" / "items.parquet"
    table = parquet.read_table(file)
    parquet.write_table(table.rename_columns([name.replace("color", "colour") for name in table.column_names]), file)
    assert "subject_colour" in parquet.read_schema(file).names
    assert writing.sources(folder, "train") == new


def test_files_of_a_run_that_trains_are_left_alone(earlier):
    journal = earlier / "runs/0001-old/metrics.jsonl"
    before = journal.read_bytes()
    lock = AliveLock.take(earlier / "runs/0001-old/alive.lock")
    prepare(earlier / "explorer.db")
    lock.release()
    assert journal.read_bytes() == before
    assert version_of(earlier / "explorer.db") == SCHEMA_VERSION


def test_words_in_texts_are_not_names():
    text = '[data]\npath = "/my/[optimiser]/colour"\ncolour = "kept"\n\n[optimiser]\n\n[objective]\ncolour = 0.5\n'
    new = '[data]\npath = "/my/[optimiser]/colour"\ncolour = "kept"\n\n[optimizer]\n\n[objective]\ncolor = 0.5\n'
    assert earlier_names.config_text(text) == new
    assert earlier_names.config_text(new) == new
    kept = {"map/colour": "subject_colour", "timeline/colour": "rank", "classify/labels": "colour\ngrey", "a": [1]}
    assert renamed(kept) == {
        "map/color": "subject_color",
        "timeline/color": "rank",
        "classify/labels": "colour\ngrey",
        "a": [1],
    }
    assert earlier_names.metric("val/knn_subject_colour") == "val/knn_subject_color"
    assert earlier_names.metric("knn_my_colour") == "knn_my_colour"


def test_sittings_are_sessions(earlier):
    with closing(sqlite3.connect(earlier / "explorer.db")) as connection:
        before = connection.execute("SELECT sitting_at, facts FROM run WHERE id = 1").fetchone()
    told = json.loads(before[1])["sittings"]
    workspace = Workspace(earlier)
    workspace.adopt()
    row = workspace.runs.get("old")
    assert row.session_at == before[0]
    assert row.facts["sessions"] == told
    assert "sittings" not in row.facts
    assert sessions_of(row.facts) == told
    workspace.close()


def test_an_imported_run_has_sessions(earlier):
    document = json.loads((earlier / "runs" / "0001-old" / "run.json").read_text())
    found = earlier_names.run_document(document)
    assert found["session_at"] == document["sitting_at"]
    assert found["facts"]["sessions"] == document["facts"]["sittings"]
    assert not {"sitting_at", "sittings"} & {*found, *found["facts"]}
    assert earlier_names.run_document(found) == found, "twice is once"
