"""A database that is removed, replaced or damaged while a run trains: nothing is lost, and what is alive stays so."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.nightly import few_plain
from trainer.__main__ import main
from trainer.store import Items, RunLog, Workspace, manifests, write_snapshot
from trainer.store.journal import read_journal
from trainer.store.process_lock import ProcessLock, holder_of, identity
from trainer.store.rows import DatabaseGone, StoreError

pytestmark = pytest.mark.slow

HOLD = (
    "import signal, sys, time; from pathlib import Path; from trainer.store.process_lock import ProcessLock;"
    "lock = ProcessLock.take(Path(sys.argv[1])); signal.signal(signal.SIGTERM, lambda *_: sys.exit(0));"
    "print('held', flush=True); time.sleep(120)"
)


def lose(workspace: Workspace) -> None:
    for path in workspace.folder.glob("explorer.db*"):
        path.unlink()


def snapshot(log: RunLog, step: int) -> None:
    folder = log.folder / "snapshots" / f"scenes-val@{step:06d}"
    vectors = np.eye(4, dtype=np.float32)
    items = Items(id=np.arange(4), path=[""] * 4, caption=list("abcd"), label=[""] * 4, split=["val"] * 4)
    write_snapshot(
        folder, image=vectors, text=vectors, items=items, step=step, dataset="scenes", split="val", model="tiny"
    )
    log.snapshot(step, "scenes", "val", folder, 4, 4)


def checkpoint(log: RunLog, step: int) -> None:
    folder = log.folder / "checkpoints" / f"step_{step:06d}"
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(bytes(8))
    manifests.write_manifest(folder, {})
    log.checkpoint(step, folder)


def test_a_trainer_goes_on_with_the_rebuilt_database(workspace: Workspace, number, capsys):
    space = ["--workspace", str(workspace.folder)]
    with RunLog.claim(workspace, number) as log:
        for step in range(5):
            log.scalars(step, {"train/loss": 1.0 / (1 + step)})
        log.progress(step=4, total_steps=12, phase="training")
        snapshot(log, 4)
        log.flush()
        lose(workspace)
        with pytest.raises(DatabaseGone, match="was removed while it was in use"):
            workspace.runs.all()
        log.scalars(5, {"train/loss": 0.1})
        snapshot(log, 5)
        checkpoint(log, 5)
        log.kept_checkpoints({5: log.folder / "checkpoints" / "step_000005"}, best=5)
        assert "was removed while it was in use" in capsys.readouterr().err
        assert not workspace.database_file.exists(), "nobody makes an empty one by writing"
        other = Workspace(workspace.folder)
        assert other.runs.all() == []
        assert main(["runs", *space]) == 0
        assert "A run folder has no row in the database (0001-tiny)" in capsys.readouterr().out
        assert main(["runs", "show", "1", *space]) == 2
        assert "doctor --rebuild" in capsys.readouterr().err
        assert other.rebuild() == 1
        row = other.runs.get(number)
        assert (row.status, row.pid) == ("running", os.getpid())
        assert other.reconcile() == []
        assert {one.step for one in other.results.snapshots(number)} == {4, 5}
        assert {one.step for one in other.results.checkpoints(number)} == {5}
        log._retry_at = float("-inf")
        log.scalars(6, {"train/loss": 0.05})
        log.progress(step=12, total_steps=12)
        log.status("finished")
    row = other.runs.get(number)
    assert (row.status, row.step) == ("finished", 12)
    assert other.results.scalar_count(number) == len(list(read_journal(row.folder / "metrics.jsonl"))) == 7
    assert {one.step for one in other.results.snapshots(number)} == {4, 5}
    other.close()


def test_what_ended_without_its_database_is_rebuilt_as_it_ended(workspace: Workspace, number):
    with RunLog.claim(workspace, number) as log:
        log.scalars(1, {"train/loss": 1.0})
        lose(workspace)
        log.scalars(2, {"train/loss": 0.5})
        snapshot(log, 2)
        log.evaluation(2, "scenes", "val", {"acc1": 0.5})
        log.progress(step=2, total_steps=2)
        log.status("finished")
    workspace.close()
    again = Workspace(workspace.folder)
    said: list[str] = []
    assert again.rebuild(said.append) == 1
    row = again.runs.get(number)
    assert (row.status, row.step, row.reason) == ("finished", 2, "")
    assert [one.step for one in again.results.snapshots(number)] == [2]
    assert [one.metrics for one in again.results.evaluations(number)] == [{"acc1": 0.5}]
    # A damaged folder is in no list.
    (again.results.snapshots(number)[0].folder / "image.npy").write_bytes(b"x")
    again.close()
    lose(again)
    (row.folder / "waiting.jsonl").unlink()
    document = row.folder / "run.json"
    document.write_text(document.read_text().replace('"snapshots"', '"others"'))
    assert again.rebuild() == 1
    assert again.results.snapshots(number) == []
    again.close()


def test_a_lock_tells_its_process_and_forged_words_do_not(tmp_path: Path):
    path = tmp_path / "alive.lock"
    lock = ProcessLock.take(path)
    assert lock is not None
    assert holder_of(path) == identity()
    for words in (b"", b"\n{}", b'\n{"pid": 1, "start_ticks": 0, "boot_id": ""}', b"\n[1]", b"x" * 2_000, b"\n\xff"):
        path.write_bytes(words)
        assert holder_of(path) is None
    lock.release()
    assert holder_of(path) is None


@few_plain(1, "how", ["damaged", "lost"])
def test_stop_ends_a_trainer_whose_row_cannot_be_read(how: str, workspace: Workspace, number, capsys):
    folder = workspace.runs.get(number).folder
    workspace.close()
    trainer = subprocess.Popen([sys.executable, "-c", HOLD, str(folder / "alive.lock")], stdout=subprocess.PIPE)
    assert trainer.stdout is not None
    trainer.stdout.readline()
    if how == "damaged":
        workspace.database_file.write_bytes(b"no database" * 500)
    else:
        lose(workspace)
    space = ["--workspace", str(workspace.folder)]
    if how == "damaged":
        assert main(["doctor", "--rebuild", *space]) == 2
        assert "trainer stop 1; trainer doctor --rebuild" in capsys.readouterr().err
    assert main(["stop", "7", *space]) == 2
    assert trainer.poll() is None
    assert main(["stop", "tiny", *space]) == 0
    assert f"its trainer (process {trainer.pid}) has ended" in capsys.readouterr().out
    assert trainer.wait(30) == 0
    trainer.stdout.close()
    with pytest.raises(StoreError):
        Workspace(workspace.folder).runs.get(number)
    assert main(["doctor", "--rebuild", *space]) in (0, 1)
    assert Workspace(workspace.folder).runs.get(number).status in ("interrupted", "starting")
