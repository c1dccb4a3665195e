"""Promise 1: a trainer killed at any moment continues bit-identically, without duplicates."""

import random
import shutil
import time

import pytest

from tests.faults.breakable_trainer import start_trainer
from tests.nightly import nightly_except
from trainer.__main__ import main
from trainer.checkpoints import checkpoint
from trainer.store import Workspace
from trainer.store.crash_points import KILLED, VARIABLE
from trainer.store.journal import read_journal

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7_200)]

CHAINS = (
    ("checkpoints.begun:2", "journal.rewound", "checkpoints.written", "checkpoints.synced", "checkpoints.renamed"),
    ("checkpoint.registered:3", "snapshots.written", "snapshots.renamed:2", "checkpoint.pruned"),
    ("journal.appended:5", "scalars.stored:2", "run.json.renamed:9"),
)
"""The twelve named moments; each chain is one run, and each session of it ends at the next of its moments."""
LOSE = """
from trainer.store import RunLog
log_scalars = RunLog.scalars
def lose(self, step, values):
    if step == 5:
        for path in self.folder.parent.parent.glob("explorer.db*"):
            path.unlink()
    log_scalars(self, step, values)
RunLog.scalars = lose
"""


def test_a_lost_database_is_rebuilt_from_the_folders_of_trained_runs(space, small, straight, tmp_path, faults):
    runs = [small() for _ in range(2)]
    for run in runs:
        assert start_trainer(space, run).wait() == 0
    shutil.copytree(space.folder, tmp_path / "lost", ignore=shutil.ignore_patterns("explorer.db*", "cache"))
    assert main(["doctor", "--rebuild", "--workspace", str(tmp_path / "lost")]) == 0
    lost = Workspace(tmp_path / "lost")
    good = sum(straight.same_as(straight.of(lost, run)) for run in runs)
    lost.close()
    words = "doctor --rebuild brings every run, curve, checkpoint and evaluation back"
    faults.row(7, "database lost", words, len(runs), good)
    assert good == len(runs)


@pytest.mark.parametrize("moment", nightly_except(["checkpoints.renamed:3", "snapshots.renamed:4", ""], ""))
def test_a_database_lost_while_a_run_trains_is_rebuilt_and_the_run_resumed(
    moment, space, small, straight, tmp_path, faults
):
    """What the trainer made after the loss is in no database: its folders tell it, and the resumed run lists it."""
    shutil.copytree(space.folder / "cache", tmp_path / "space" / "cache")
    space = Workspace(tmp_path / "space")
    run = small(space)
    ended = start_trainer(space, run, before=LOSE, **{VARIABLE: moment}).wait()
    assert ended == (KILLED if moment else 0)
    space.close()
    assert not space.database_file.exists()
    assert space.rebuild() == 1  # as trainer doctor --rebuild
    made = {path.name for path in (space.runs.get(run).folder / "snapshots").glob("scenes-*")}
    assert {one.folder.name for one in space.results.snapshots(run)} == made
    if moment:
        assert space.runs.get(run).status == "interrupted"
        assert start_trainer(space, run).wait() == 0
    good = straight.same_as(straight.of(space, run))
    space.close()
    faults.row(
        7, "database removed while a run trains, which is killed later", "rebuilt, resumed bit-identical", 1, good
    )
    assert good


def redone(space, run: int) -> int:
    """Return how many steps of its curves the run must repeat; all if it has no checkpoint yet."""
    folder = space.runs.get(run).folder
    reached = max((entry.step for entry in read_journal(folder / "metrics.jsonl")), default=0)
    found, complaints = checkpoint.newest(folder / "checkpoints")
    assert not complaints
    return reached - (found.step if found else 0)


def test_the_twelve_named_moments(space, small, straight, interval, faults):
    good, chains = 0, CHAINS[: faults.times(300)]
    for chain in chains:
        run = small()
        lost = []
        for moment in chain:
            assert start_trainer(space, run, **{VARIABLE: moment}).wait() == KILLED, f"{moment} never came"
            lost.append(redone(space, run))
        assert start_trainer(space, run).wait() == 0
        if straight.same_as(straight.of(space, run)):
            good += sum(steps <= interval for steps in lost)
    tried = sum(map(len, chains))
    assert sum(map(len, CHAINS)) == 12
    faults.row(1, "kill at a named moment of saving, logging or resuming", "resumed bit-identical", tried, good)
    assert good == tried


def test_a_checkpoint_that_a_kill_kept_from_being_removed_is_removed_when_the_run_goes_on(space, small, straight):
    """Found among 1,000 random kills: no checkpoint follows the last one to remove it."""
    run = small()
    assert start_trainer(space, run, **{VARIABLE: "checkpoint.registered:5"}).wait() == KILLED
    assert start_trainer(space, run).wait() == 0
    assert straight.same_as(straight.of(space, run))


@pytest.mark.nightly
def test_random_moments(space, small, straight, interval, faults):
    tried, good = faults.times(200), 0
    killed = 0
    chance = random.Random(7)
    began = time.monotonic()
    assert start_trainer(space, small()).wait() == 0
    whole_s = time.monotonic() - began
    while killed < tried:
        run, lost = small(), []
        while len(lost) < min(4, tried - killed):
            trainer = start_trainer(space, run)
            time.sleep(chance.uniform(0, whole_s))
            trainer.kill()
            if trainer.wait() != -9:
                break  # it was faster
            lost.append(redone(space, run))
        if not lost:
            continue
        if space.runs.get(run).status != "finished":
            assert start_trainer(space, run).wait() == 0
        killed += len(lost)
        if straight.same_as(straight.of(space, run)):
            good += sum(steps <= interval for steps in lost)
    faults.row(1, "kill -9 at a random moment, up to four times a run", "resumed bit-identical", tried, good)
    assert good == tried
