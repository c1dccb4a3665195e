"""A branch of a checkpoint equals the original up to there, and continues exactly like it."""

import json
import os
import sys
from pathlib import Path

import pytest
import torch

from trainer.__main__ import main
from trainer.checkpoints import checkpoint
from trainer.store import StoreError
from trainer.store.branch import branch
from trainer.store.disk import DiskTrouble
from trainer.training.fit import fit

pytestmark = pytest.mark.slow


def _values(found: dict) -> dict:
    """Remove values that depend on a clock."""
    timed = ("train/pairs_per_s", "train/data_wait", "system/")
    return {s: {n: v for n, v in row.items() if not n.startswith(timed)} for s, row in found.items()}


def test_a_branch_is_bit_identical_and_knows_its_parent(workspace, tiny, journal):
    original = tiny()
    fit(workspace, original)
    before = (workspace.runs.get(original), workspace.results.checkpoints(original))
    branched = branch(workspace, original, 8, "from eight")
    row = workspace.runs.get(branched)
    assert (row.name, row.parent, row.step, row.status) == ("from eight", original, 8, "stopped")
    whole = journal(original)
    assert journal(branched) == {step: values for step, values in whole.items() if step <= 8}
    assert workspace.results.last_values(branched).keys() == workspace.results.last_values(original).keys()
    steps = {s.step for s in workspace.results.snapshots(original) if s.step <= 8}
    assert {s.step for s in workspace.results.snapshots(branched)} == steps
    fit(workspace, branched)
    assert _values(journal(branched)) == _values(whole)
    ours, theirs = (
        checkpoint.load(workspace.runs.get(n).folder / "checkpoints" / "step_000012").weights
        for n in (original, branched)
    )
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert (workspace.runs.get(original), workspace.results.checkpoints(original)) == before, (
        "the parent is not touched"
    )
    with pytest.raises(StoreError, match="no checkpoint of step 7"):
        branch(workspace, original, 7, "none")


def test_the_command_branches_and_trains(workspace, tiny, capsys):
    original = tiny(**{"optimizer.epochs": 2})
    fit(workspace, original)
    capsys.readouterr()
    words = ["resume", str(original), "--step", "4", "--as", "branched", "--foreground", "--json"]
    assert main([*words, "--workspace", str(workspace.folder)]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (said["name"], said["status"], said["step"]) == ("branched", "finished", 8)
    assert workspace.runs.get(said["id"]).parent == original


def test_stop_after_the_epoch_waits_for_its_last_step(workspace, tiny, monkeypatch):
    run = tiny()
    from trainer.training.metric_logger import MetricLogger

    saw = MetricLogger.saw

    def asks(self, update):
        saw(self, update)
        if self._training.step == 5:
            workspace.runs.ask(run, "stop-epoch")

    monkeypatch.setattr(MetricLogger, "saw", asks)
    monkeypatch.setattr("trainer.store.run_log.ASKED_S", 0.0)
    fit(workspace, run)
    row = workspace.runs.get(run)
    assert (row.status, row.step) == ("stopped", 8)
    assert workspace.results.checkpoints(run)[-1].step == 8


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells which file is synced")
def test_all_of_a_branch_survives_a_power_cut(workspace, tiny, monkeypatch):
    run = tiny(**{"optimizer.epochs": 1})
    fit(workspace, run)
    synced, fsync = [], os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    folder = workspace.runs.get(branch(workspace, run, 4, "branch of a power cut")).folder
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "alive.lock"]
    assert {"tokenizer.json", "metrics.jsonl", "model.safetensors"} <= {path.name for path in files}

    def is_synced(path: Path) -> bool:
        """Return whether it was synced, possibly under the name of its own or its parent's draft."""
        return any(s.name.endswith(path.name) and s.parent.name.endswith(path.parent.name) for s in synced)

    assert [str(path.relative_to(folder)) for path in files if not is_synced(path)] == []


def test_a_branch_that_is_cut_short_does_not_pass_for_a_stopped_run(workspace, tiny, monkeypatch):
    run = tiny(**{"optimizer.epochs": 1})
    fit(workspace, run)
    known = {row.id for row in workspace.runs.all()}
    full = DiskTrouble("The disk is full.", path=workspace.folder, need=1, full=True)

    def refuse(error: BaseException):
        def refused(*_arguments):
            raise error

        return refused

    monkeypatch.setattr("trainer.store.journal.Journal.append", refuse(full))
    with pytest.raises(StoreError, match=r"cannot be copied: The disk is full\. Nothing was made"):
        branch(workspace, run, 4, "half")
    assert {row.id for row in workspace.runs.all()} == known
    monkeypatch.setattr("trainer.store.journal.Journal.append", refuse(SystemExit("as if killed")))
    with pytest.raises(SystemExit):
        branch(workspace, run, 4, "half")
    (half,) = (row for row in workspace.runs.all() if row.id not in known)
    assert (half.status, half.step) == ("failed", 0)
    assert "was cut short" in half.reason
