"""What a poll of the store finds new."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from explorer.run_control.poller import PollState, news
from trainer import config
from trainer.store import RunLog, Workspace


def test_snapshots_of_ended_runs_are_told_where_runs_are_mirrored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    workspace = Workspace(tmp_path / "space")
    run, other = (workspace.runs.create(config.Run(name=name)) for name in ("far", "without snapshots"))
    with RunLog.claim(workspace, run) as log:
        log.snapshot(4, "d", "s", log.folder / "snapshots" / "s@000004", 8, 2)
        log.status("finished")
    assert workspace.results.snapshot_counts() == {run: 1}
    monkeypatch.setattr(Workspace, "look_only", "it mirrors another one")
    first = news(workspace, PollState(), [], reconcile=False, may_start=False)
    assert (first.snapshots, first.seen.snapshots) == ((), {run: 1, other: 0})
    with closing(sqlite3.connect(workspace.database_file, isolation_level=None)) as database:
        columns = "run, dataset, split, folder, n, d, created_at"
        database.execute(f"INSERT INTO snapshot (step, {columns}) SELECT 8, {columns} FROM snapshot")
    again = news(workspace, first.seen, [], reconcile=False, may_start=False)
    assert (again.snapshots, again.seen.snapshots) == ((run,), {run: 2, other: 0})
    workspace.close()
