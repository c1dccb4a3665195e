"""Runs of MLflow, in its folder of files and in its database, have the numbers that MLflow itself reads."""

from __future__ import annotations

import math
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from explorer.import_sheet.dropped_files import is_curves
from tests.trainer.trackers.test_importing import points
from trainer.errors import UserError
from trainer.store import Workspace
from trainer.store.run_texts import SETTINGS
from trainer.trackers.import_curves import import_curves
from trainer.trackers.recognition import kind_of
from trainer.untrusted.bounded import Unreadable

pytestmark = [pytest.mark.slow]
LOGGED = {
    "train/loss": [(0, 4.5), (10, 3.25), (20, math.nan), (10, 3.0)],
    "val/image_to_text_R_at_1": [(20, 0.125)],
    "negative": [(-1, 1.0), (0, 2.0)],
}


@pytest.fixture
def store(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Any]:
    """Return a project's folder with three runs of MLflow, two of one name and one deleted, and MLflow's client."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = pytest.importorskip("mlflow")
    project = tmp_path / "project"
    project.mkdir()
    address = f"{project}/mlruns" if request.param == "mlruns" else f"sqlite:///{project}/mlflow.db"
    client = mlflow.MlflowClient(tracking_uri=address)
    experiment = client.create_experiment("towers", artifact_location=str(tmp_path / "artifacts"))
    for number, name in enumerate(("clip", "clip", "gone")):
        run = client.create_run(experiment, run_name=name).info.run_id
        client.log_param(run, "lr", 10.0**-number)
        for metric, values in LOGGED.items():
            for time, (step, value) in enumerate(values):
                client.log_metric(run, metric, value + number, timestamp=1_700_000_000_000 + 1000 * time, step=step)
        if name == "gone":
            client.delete_run(run)
    return project, client


@pytest.mark.parametrize("store", ["mlruns", "mlflow.db"], indirect=True)
def test_runs_have_the_numbers_that_mlflow_reads(store: tuple[Path, Any], tmp_path: Path) -> None:
    project, client = store
    assert kind_of(project) == kind_of(next(project.iterdir())) == "mlflow"
    assert is_curves(next(project.iterdir()))
    workspace = Workspace(tmp_path / "ws")
    imported = import_curves(workspace, project)
    peers = client.search_runs([client.get_experiment_by_name("towers").experiment_id], order_by=["start_time"])
    assert len(imported) == len(peers) == 2
    for peer in peers:
        lr = peer.data.params["lr"]
        (own,) = [run for run in imported if workspace.runs.get(run.id).facts[SETTINGS]["lr"] == lr]
        assert own.name.startswith("clip")
        for metric in LOGGED:
            history = sorted(client.get_metric_history(peer.info.run_id, metric), key=lambda point: point.timestamp)
            assert points(workspace, own.id, metric.replace("_at_", "@")) == pytest.approx(
                {point.step: point.value for point in history if point.step >= 0}, nan_ok=True
            )
        said = workspace.runs.get(own.id).facts["import_notes"]
        assert "deleted in MLflow (1) are left out" in said
        assert re.search(r"Left out: (lines without a time|numbers without a step).*\([12]\)", said)
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
