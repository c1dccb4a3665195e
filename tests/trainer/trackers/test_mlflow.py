"""Runs of MLflow, in its folder of files and in its database, have the numbers that MLflow itself reads."""

import importlib.util
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trained_once import folder_of
from tests.trainer.trackers.test_importing import points
from trainer.errors import UserError
from trainer.store import Workspace
from trainer.store.run_texts import SETTINGS
from trainer.trackers import mlflow_store
from trainer.trackers.import_curves import import_curves
from trainer.trackers.recognition import tracker_of
from trainer.untrusted.bounded import Unreadable

pytestmark = [pytest.mark.slow]
PEER = """
import json, math, os, sys
import mlflow

project, address = sys.argv[1:]
client = mlflow.MlflowClient(tracking_uri=address)
experiment = client.create_experiment("towers", artifact_location=project + "/../artifacts")
logged = {
    "train/loss": [(0, 4.5), (10, 3.25), (20, math.nan), (10, 3.0)],
    "val/image_to_text_R_at_1": [(20, 0.125)],
    "negative": [(-1, 1.0), (0, 2.0)],
}
for number, name in enumerate(("clip", "clip", "gone")):
    run = client.create_run(experiment, run_name=name).info.run_id
    client.log_param(run, "lr", 10.0**-number)
    for metric, values in logged.items():
        for time, (step, value) in enumerate(values):
            client.log_metric(run, metric, value + number, timestamp=1_700_000_000_000 + 1000 * time, step=step)
    if name == "gone":
        client.delete_run(run)
told = {}
for run in client.search_runs([experiment]):
    histories = told[run.data.params["lr"]] = {}
    for metric in logged:
        points = client.get_metric_history(run.info.run_id, metric)
        histories[metric] = {point.step: point.value for point in sorted(points, key=lambda point: point.timestamp)}
print(json.dumps(told))
"""
"""Logs three runs, two of one name and one deleted, and tells what MLflow reads of them.

A process of its own: MLflow configures logging for all.
"""


def _log(folder: Path) -> None:
    for store, address in (("mlruns", "{}/mlruns"), ("mlflow.db", "sqlite:///{}/mlflow.db")):
        project = folder / f"project of {store}"
        project.mkdir()
        environment = os.environ | {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
        command = [sys.executable, "-c", PEER, str(project), address.format(project)]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        (folder / f"{store}.json").write_text(ended.stdout)


@pytest.mark.parametrize("store", ["mlruns", "mlflow.db"])
def test_runs_have_the_numbers_that_mlflow_reads(store: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("mlflow") is None:
        pytest.skip("mlflow is not installed")
    logged = folder_of(_log, "mlflow", written_by=["mlflow-skinny"])
    project = shutil.copytree(logged / f"project of {store}", tmp_path / "project")
    peers = json.loads((logged / f"{store}.json").read_text())
    assert tracker_of(project) == tracker_of(project / store) == "mlflow"
    assert tracker_of(project / store, quick=True) == "mlflow"
    workspace = Workspace(tmp_path / "ws")
    imported = import_curves(workspace, project)
    assert len(imported) == len(peers) == 2
    for lr, histories in peers.items():
        (own,) = [run for run in imported if workspace.runs.get(run.id).facts[SETTINGS]["lr"] == lr]
        assert own.name.startswith("clip")
        for metric, history in histories.items():
            expected = {int(step): value for step, value in history.items() if int(step) >= 0}
            curve = points(workspace, own.id, metric.replace("_at_", "@"))
            assert curve == pytest.approx(expected, nan_ok=True)
        said = workspace.runs.get(own.id).facts["import_notes"]
        assert "deleted in MLflow (1) are left out" in said
        assert re.search(r"Left out: (lines without a time|numbers without a step).*\([12]\)", said)
    workspace.close()


def made_run(store: Path, name: str, *, metrics: int = 1, params: int = 0) -> Path:
    """Write a run as MLflow keeps it in files."""
    folder = store / "0" / name
    for kind, count, text in (("metrics", metrics, "1700000000000 0.5 3\n"), ("params", params, "1")):
        (folder / kind).mkdir(parents=True)
        for number in range(count):
            (folder / kind / f"{kind}{number:04}").write_text(text)
    for meta in (store / "0", folder):
        (meta / "meta.yaml").write_text(f"run_name: {name}\nlifecycle_stage: active\n")
    return folder


def test_what_is_beyond_the_limits_is_counted_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlflow_store, "_MOST", 4)
    monkeypatch.setattr(mlflow_store, "MOST_SETTINGS", 2)
    for number in range(6):
        made_run(tmp_path / "mlruns", f"run{number}", metrics=5 if number == 1 else 1, params=3 if number == 2 else 0)
    workspace = Workspace(tmp_path / "ws")
    imported = import_curves(workspace, tmp_path / "mlruns")
    said = {run.name: " ".join(run.notes) for run in imported}
    assert list(said) == ["run0", "run1", "run2", "run3"]
    assert all("Left out are 2 of 6 runs" in notes for notes in said.values())
    assert [name for name, notes in said.items() if "Of 5 metrics the first 4 by name were read." in notes] == ["run1"]
    assert [name for name, notes in said.items() if "Of 3 params the first 2 by name were read." in notes] == ["run2"]
    assert [run.curves for run in imported] == [1, 4, 1, 1]
    workspace.close()


def test_links_in_a_store_lead_nowhere(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.write_text("1700000000000 0.25 3\n")
    folder = made_run(tmp_path / "mlruns", "run", params=1)
    (folder / "tags").mkdir()
    for link in ("params/secret", "metrics/secret", "tags/mlflow.runName"):
        (folder / link).symlink_to(private)
    workspace = Workspace(tmp_path / "ws")
    (run,) = import_curves(workspace, tmp_path / "mlruns")
    assert (run.name, run.curves) == ("run", 1)
    assert run.notes == ("Links in params (1) are not followed.", "Links in metrics (1) are not followed.")
    assert workspace.runs.get(run.id).facts[SETTINGS] == {"params0000": "1"}
    workspace.close()


def test_a_database_of_another_program_is_none(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_bytes(b"SQLite format 3\0 latest_metrics and then nothing")
    workspace = Workspace(tmp_path / "ws")
    with pytest.raises(Unreadable, match="cannot be read as a database of MLflow"):
        import_curves(workspace, tmp_path / "mlflow.db")
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE runs (a)").connection.close()
    with pytest.raises(UserError, match="no runs of MLflow"):
        import_curves(workspace, tmp_path / "other.db")
    assert not workspace.runs.all()
    workspace.close()
