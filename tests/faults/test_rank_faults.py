"""Promise 5: a run of which a rank is killed, stopped, poisoned or cannot write ends or waits, and resumes exactly."""

import itertools
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from test_disk import disk, until_paused

from tests.faults.breakable_trainer import start_trainer
from tests.trainer.ranks.test_ranks_of_a_run import PARTS
from trainer.checkpoints import checkpoint
from trainer.store import Workspace
from trainer.store.journal import read_journal

assert callable(disk)  # a fixture
pytestmark = [pytest.mark.faults, pytest.mark.timeout(7_200)]

RUN = replace(PARTS, ranks=2)
"""Eight steps by two ranks, with a checkpoint every second."""
WITHIN_S = 60.0
AT_ONCE = 5
"""Runs that train at the same time: one that is stopped is waited for."""

AT = """
import os, pathlib, time
import trainer.ranks.rank_group as group
from trainer.store import crash_points
seen, own = [0], os.environ.get("RANK") == "{rank}"
def reach(name):
    if own and name == {moment!r}:
        seen[0] += 1
        if seen[0] == {count}:
            pathlib.Path({folder!r}, "fault").write_text(str(time.time()))
            act()
def watched(owner, name, label):
    work = getattr(owner, name)
    def wrapped(*words, **more):
        reach(label)
        return work(*words, **more)
    setattr(owner, name, wrapped)
crash_points.point = reach
watched(group, "introduce_self", "join")
for name in ("announced", "gather", "summed", "lead", "is_called", "leave"):
    watched(group.Ranks, name, name)
"""
POISON = """
import trainer.ranks.rank_group as group
from trainer.methods.image_text import ImageText
def act():
    pass
def poisoned(owner, name, worsen):
    work, turn = getattr(owner, name), [0]
    def wrapped(*words):
        turn[0] += 1
        return worsen(work, words) if own and turn[0] == {count} else work(*words)
    setattr(owner, name, wrapped)
bad = float({value!r})
if {place!r} == "rows":
    worse = lambda rows: [row * bad if row.is_floating_point() else row for row in rows]
    poisoned(group.Ranks, "gather", lambda work, words: work(words[0], worse(words[1])))
elif {place!r} == "gradient":
    poisoned(group.Ranks, "summed", lambda work, words: work(words[0], words[1] * bad))
else:
    poisoned(ImageText, "compare", lambda work, words: work(*words) * bad)
"""
FILL = """
from tests.faults.ballast import fill
def act():
    fill(pathlib.Path({ballast!r}))
"""
FAST = """
from trainer.store import run_log
from trainer.training import disk_guard
disk_guard.RETRY_S = run_log._RETRY_S = 0.3
"""
KILL = "import signal\ndef act():\n    os.kill(os.getpid(), signal.SIGKILL)\n"
STOP = "import signal\ndef act():\n    os.kill(os.getpid(), signal.SIGSTOP)\n"
LEADER = (
    *("join:1", "announced:1", "lead:1", "gather:1", "summed:1", "journal.appended:3", "checkpoints.begun:2"),
    *("checkpoints.written:2", "checkpoints.renamed:1", "checkpoint.registered:3", "snapshots.written:2"),
    *("lead:5", "gather:8", "summed:7", "scalars.stored:1", "run.json.renamed:3"),
)
FOLLOWER = (
    "join:1",
    "announced:1",
    "is_called:1",
    "gather:1",
    "summed:1",
    "is_called:4",
    "gather:6",
    "summed:8",
    "leave:1",
)
"""Steps of a run at which a rank fails, each with the time it comes: joining, waiting to begin, between two updates,
exchanging rows and gradients, logging, and each part of writing a checkpoint and a snapshot."""


def cases(n: int) -> list[tuple[int, str]]:
    """Return that many ranks and moments, of each rank in turn."""
    turns = zip(itertools.cycle(LEADER), itertools.cycle(FOLLOWER))
    return list(itertools.islice(itertools.chain.from_iterable(((0, a), (1, b)) for a, b in turns), n))


@pytest.fixture(scope="module")
def undisturbed(space: Workspace):
    """Return the outcome of the run by one process."""
    from conftest import outcome

    run = space.runs.create(PARTS)
    assert start_trainer(space, run).wait() == 0
    return outcome(space, run)


@dataclass(frozen=True)
class Case:
    """A run with a fault in the way of one of its ranks."""

    space: Workspace
    run: int
    rank: int
    moment: str

    @property
    def folder(self) -> Path:
        return self.space.runs.get(self.run).folder

    def before(self, act: str) -> str:
        moment, _, count = self.moment.partition(":")
        return AT.format(rank=self.rank, moment=moment, count=count, folder=str(self.folder)) + act

    def took(self) -> float:
        """Return the seconds from the fault to the end of all processes; endless where it never came."""
        if not (self.folder / "fault").exists():
            return math.inf
        return float((self.folder / "ended").read_text()) - float((self.folder / "fault").read_text())

    def half_written(self) -> list[str]:
        """Return what nothing reads: drafts, and checkpoints that do not have their own sums."""
        _, complaints = checkpoint.newest(self.folder / "checkpoints")
        return [*complaints, *(p.name for p in self.folder.rglob(".tmp*"))]


def make(space: Workspace, rank: int, moment: str) -> Case:
    return Case(space, space.runs.create(RUN), rank, moment)


def resumed(case: Case, by: int) -> bool:
    case.space.runs.set_ranks(case.run, by)
    return start_trainer(case.space, case.run, ranks=by).wait() == 0


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "act"), [("kill -9", KILL), ("SIGSTOP", STOP)], ids=["killed", "stopped"])
def test_a_rank_that_is_gone(space, undisturbed, faults, name: str, act: str):
    tried, good, wrong, longest = faults.times(50), 0, [], 0.0
    waiting = cases(tried)
    while waiting:
        now, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
        made = [make(space, rank, moment) for rank, moment in now]
        trainers = [start_trainer(space, case.run, before=case.before(act), ranks=2) for case in made]
        for case, trainer in zip(made, trainers, strict=True):
            trainer.wait()
            row = space.runs.get(case.run)
            named = row.status == "interrupted" and f"Rank {case.rank} of 2" in row.reason
            # The follower leaves a run that has ended.
            named = named or (case.moment == "leave:1" and row.status == "finished" and not row.reason)
            took = case.took()
            longest = max(longest, min(took, 1e4))
            again = row.status == "finished" or resumed(case, 1 + case.run % 2)
            same = again and undisturbed.same_as(undisturbed.of(space, case.run)) and not case.half_written()
            good += named and took < WITHIN_S and same
            if not (named and took < WITHIN_S and same):
                wrong.append((case.rank, case.moment, row.status, row.reason, took, again, same, case.half_written()))
    words = f"ended within {math.ceil(longest)} s with one sentence that names it, resumed bit-identical"
    faults.row(5, f"{name} of a rank of a run by two processes, at a named step", words, tried, good)
    assert good == tried, wrong


@pytest.mark.nightly
def test_a_rank_whose_numbers_are_none(space, undisturbed, faults):
    counts, places = range(1, 9), ("rows", "gradient", "loss")
    all_cases = [("nan", place, rank, count) for count in counts for place in places for rank in (0, 1)]
    all_cases += [("inf", "gradient", rank, 5) for rank in (0, 1)]
    tried, good, wrong = faults.times(50), 0, []
    assert len(all_cases) == 50
    waiting = all_cases[:: 50 // tried][:tried]
    while waiting:
        now, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
        made = [make(space, rank, f"gather:{count}") for _, _, rank, count in now]
        trainers = []
        for case, (value, place, _, count) in zip(made, now, strict=True):
            before = case.before(POISON.format(value=value, place=place, count=count))
            trainers.append(start_trainer(space, case.run, before=before, ranks=2))
        for case, trainer, (value, place, rank, count) in zip(made, trainers, now, strict=True):
            trainer.wait()
            row = space.runs.get(case.run)
            named = row.status == "failed" and "nan" in row.alerts and f"after step {count - 1}." in row.reason
            reached = max((e.step for e in read_journal(case.folder / "metrics.jsonl")), default=0)
            found, _ = checkpoint.newest(case.folder / "checkpoints")
            sound = all(bool(value.isfinite().all()) for value in found.weights.values()) if found else count <= 2
            took = case.took()
            same = resumed(case, 1 + case.run % 2) and undisturbed.same_as(undisturbed.of(space, case.run))
            fine = named and reached <= count and sound and took < WITHIN_S and same and not case.half_written()
            good += fine
            if not fine:
                wrong.append((value, place, rank, count, row.status, row.reason, reached, sound, took, same))
    words = "ended within the step with one sentence, never saved; resumed bit-identical"
    faults.row(5, "NaN or Inf in rows, gradient or loss of one rank, at each update", words, tried, good)
    assert good == tried, wrong


@pytest.fixture(scope="module")
def small_disk(disk: Path):
    workspace = Workspace(disk / "ranks")
    yield workspace
    workspace.close()


@pytest.mark.nightly
def test_a_disk_that_is_full_for_all_ranks(disk, small_disk, undisturbed, faults):
    """Rank 0 writes what is kept; a rank at whose step the disk fills may have nothing to write at all."""
    tried, good, wrong = faults.times(50), 0, []
    ballast = disk / "ballast"
    chosen = [case for case in cases(200) if case[1] not in ("leave:1", "join:1")][:tried]
    for rank, moment in chosen:
        case = make(small_disk, rank, moment)
        before = case.before(FAST + FILL.format(ballast=str(ballast)))
        trainer = start_trainer(small_disk, case.run, before=before, ranks=2)
        reason = until_paused(small_disk, case.run)
        waited = time.time() - float((case.folder / "fault").read_text())
        # At the last step, the older checkpoint that the newest one replaces may leave all the space that is needed.
        finished = small_disk.runs.get(case.run).status == "finished"
        ballast.unlink()
        ended = trainer.wait()
        row = small_disk.runs.get(case.run)
        said = f"({disk}) is full" in reason and " needs " in reason and " are free" in reason
        went_on = ended == 0 and row.status == "finished" and not row.reason
        same = went_on and undisturbed.same_as(undisturbed.of(small_disk, case.run)) and not case.half_written()
        fine = (said or finished) and waited < WITHIN_S and went_on and same
        good += fine
        if not fine:
            wrong.append((rank, moment, reason, waited, ended, row.status, row.reason, same))
        small_disk.purge(case.run)
    words = "paused with one sentence and went on by itself, or finished, bit-identical"
    faults.row(5, "disk filled to the last byte at a named step of a rank", words, tried, good)
    assert good == tried, wrong
