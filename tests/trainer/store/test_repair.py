import json
import math
import shutil
import sqlite3

import numpy as np
import pytest

from tests.everything import everything
from trainer.store import RunLog, StoreError, Workspace

pytestmark = pytest.mark.slow


def _filled(workspace: Workspace, run) -> int:
    number = workspace.runs.create(run, preset="clip-scenes")
    with RunLog.claim(workspace, number) as log:
        for step in range(1, 40):
            log.scalars(step, {"train/loss": math.nan if step == 5 else 1 / step, "train/inv_tau": float(step)})
        log.progress(step=39, total_steps=40, phase="train", eta_s=1.0)
        log.headline(0.5, 0.75)
        log.facts(device="cpu")
        log.checkpoint(20, log.folder / "checkpoints" / "step_000020", best=True)
        log.snapshot(20, "scenes", "renderings", log.folder / "snapshots" / "scenes-renderings@000020", 8, 4)
        log.evaluation(20, "scenes", "renderings", {"acc1": 0.5, "auc": math.nan})
        log.status("stopped", "Asked to.")
    return number


def _lose_database(workspace: Workspace) -> None:
    workspace.close()
    for path in workspace.folder.glob("explorer.db*"):
        path.unlink()


def test_a_rebuilt_database_equals_the_lost_one(workspace, tiny):
    _filled(workspace, tiny)
    second = _filled(workspace, tiny)
    workspace.runs.rename(second, "better name")
    workspace.runs.change(second, note="mine")
    third = workspace.runs.create(tiny, status="queued")
    workspace.runs.change(third, status="failed", reason="no")
    workspace.delete(third)
    before = everything(workspace)
    _lose_database(workspace)
    assert workspace.rebuild() == 3
    assert everything(workspace) == before
    assert workspace.rebuild() == 0


def test_a_damaged_database_is_set_aside_never_deleted(workspace, tiny):
    number = _filled(workspace, tiny)
    workspace.close()
    damaged = b"SQLite format 3\0" + b"\xff" * 5000
    for path in workspace.folder.glob("explorer.db-*"):
        path.unlink()
    workspace.database_file.write_bytes(damaged)
    with pytest.raises(StoreError, match="doctor --rebuild"):
        workspace.runs.all()
    assert workspace.rebuild() == 1
    assert workspace.runs.get(number).best == 0.75
    aside = list((workspace.folder / "backups").glob("explorer-damaged-*.db"))
    assert [path.read_bytes() for path in aside] == [damaged]


def test_a_damaged_database_is_left_alone_while_a_trainer_uses_it(workspace, number, hold):
    hold(number)
    workspace.close()
    workspace.database_file.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match="trainer stop 1; trainer doctor --rebuild"):
        workspace.rebuild()
    assert workspace.database_file.read_bytes().startswith(b"no database")


def test_a_run_without_its_card_is_rebuilt_from_configuration_and_curves(workspace, tiny):
    number = _filled(workspace, tiny)
    folder = workspace.runs.get(number).folder
    (folder / "run.json").write_text("{")
    _lose_database(workspace)
    assert workspace.rebuild() == 1
    row = workspace.runs.get(number)
    assert (row.name, row.status, row.objective) == ("tiny", "interrupted", "clip")
    assert len(workspace.results.series(number, "train/loss")[0]) == 39


def test_a_copied_run_folder_joins_under_a_name_of_its_own(workspace, tiny):
    number = _filled(workspace, tiny)
    folder = workspace.runs.get(number).folder
    copy = folder.with_name("0009-copy")
    shutil.copytree(folder, copy)
    card = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(card | {"id": 9}))
    assert workspace.rebuild() == 1
    assert workspace.runs.get(9).name == "tiny (0009-copy)"
    assert workspace.runs.create(tiny) == 10


def test_a_lost_database_never_gives_out_the_number_of_a_folder(workspace, tiny):
    number = _filled(workspace, tiny)
    _lose_database(workspace)
    assert workspace.runs.create(tiny) == number + 1
    assert workspace.rebuild() == 1
    np.testing.assert_equal(len(workspace.runs.all()), 2)


def test_what_is_registered_twice_is_there_once(workspace, tiny):
    number = _filled(workspace, tiny)
    workspace.results.add_evaluation(number, 20, "scenes", "renderings", {"acc1": 0.75})
    assert [e.metrics for e in workspace.results.evaluations(number)] == [{"acc1": 0.75}]


def test_a_foreign_database_is_refused(workspace):
    workspace.folder.mkdir(parents=True)
    connection = sqlite3.connect(workspace.database_file)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="another program"):
        workspace.runs.all()
