"""The window is killed at random moments and at every point of a launch; trainers continue and are found again."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PySide6.QtGui import QUndoStack
from pytestqt.qtbot import QtBot

from explorer.event_loop.background import Background
from explorer.run_control.jobs import Jobs
from tests.faults.breakable_window import start_window
from trainer.store import RunRow, ScalarRow, Workspace, repair
from trainer.store.journal import read_journal
from trainer.store.process_lock import Identity, identity

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(3_600),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="windows are forked to make them cheap"),
]

POINTS = (
    "before the run is made",
    "after the run is made",
    "after it is marked as starting",
    "before the trainer is started",
    "after the trainer is started",
    "after its number is written",
)
SIGNALS = (signal.SIGKILL, signal.SIGHUP, signal.SIGINT)
AT_ONCE = 3
"""Trainers that live at a time; the oldest is asked to stop when there are more."""
SETTLED_S = 90.0


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setattr(repair, "STARTING_S", 8.0)  # of a start that nobody watches; else each costs 20 s of waiting
    opened = Workspace(tmp_path / "workspace")
    yield opened
    for _run, pid in living(opened.folder).items():
        os.kill(pid, signal.SIGKILL)
    opened.close()


@dataclass
class Trial:
    """One killed window, and what was wrong afterwards."""

    number: int
    how: str
    wrong: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"window {self.number}"


def living(folder: Path) -> dict[int, int]:
    """Return run -> process id of every fake trainer of this workspace, according to the system."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        ours = len(words) > 3 and words[1].endswith("fake_trainer.py") and words[3] == str(folder)
        if ours and identity(int(entry.name)) is not None:
            found[int(words[2])] = int(entry.name)
    return found


def test_a_window_that_is_killed_takes_no_run_with_it(qtbot: QtBot, faults, workspace: Workspace, tmp_path: Path):
    rng = random.Random(5)
    background = Background()
    trials, slowest = [], 0.0
    for number in range(faults.times(200)):
        point = POINTS[number // 2 % len(POINTS)] if number % 2 else ""
        sent = rng.choice(SIGNALS)
        trial = Trial(number, point or signal.Signals(sent).name)
        trials.append(trial)
        before = trainers_of(workspace)
        window = start_window(workspace.folder, name=trial.name, runs=rng.randrange(1, 3), point=point)
        pid = window.pid
        if not point:
            wait_for_a_moment(rng, workspace, trial, pid)
            before |= trainers_of(workspace)
            # To its whole group, as a terminal does when it closes or Ctrl-C is pressed in it.
            (os.kill if sent == signal.SIGKILL else os.killpg)(pid, sent)
        if not ends(pid, within_s=90.0):
            trial.wrong.append("the window stays")
            os.kill(pid, signal.SIGKILL)
        if (status := window.wait()) > 0:
            trial.wrong.append(f"the window ended by itself, with {status}")
        for run, process in before.items():
            if identity(process.pid) != process:
                trial.wrong.append(f"the trainer of run {run} died with the window")
        slowest = max(slowest, attach(qtbot, workspace, background, trial, faults.within(2.0)))
        stop_the_oldest(workspace)
    settle(workspace, trials)
    background.close()
    good = sum(not trial.wrong for trial in trials)
    result = f"runs go on, none unknown, none falsely running, curves whole; found again in {slowest:.1f} s at most"
    faults.row(
        2, "the window is killed (kill -9, hang-up, Ctrl-C, at each point of a launch)", result, len(trials), good
    )
    assert good == len(trials), [trial for trial in trials if trial.wrong]


def test_of_two_windows_that_start_at_once_one_opens(faults, tmp_path: Path):
    tried, wrong, forward = faults.times(20), [], 0
    for _ in range(tried):
        begin = time.monotonic() + 0.2
        windows = [start_window(tmp_path, at=begin) for _ in range(2)]
        pids = [window.pid for window in windows]
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            alive = [pid for pid in pids if identity(pid) is not None]
            if len(alive) < 2 and all((tmp_path / f"ready-{pid}").exists() for pid in alive):
                break
            time.sleep(0.02)
        gone = [pid for pid in pids if pid not in alive]
        said = "".join((tmp_path / f"said-{pid}").read_text() for pid in gone)
        opened = [pid for pid in pids if (tmp_path / f"ready-{pid}").exists()]
        if not (len(alive) == 1 and opened == alive and "already open" in said):
            wrong.append((alive, opened, said))
        forward += "was brought to the front" in said
        # The owner dies without a word, and nobody removes its lock: the next two race for it.
        for pid in alive:
            os.kill(pid, signal.SIGKILL)
        for window in windows:
            window.wait()
    assert (tmp_path / "explorer.lock").exists()
    words = f"one opens, the other says so ({forward} brought it forward); the lock of a killed one needs no hand"
    faults.row(14, "two windows of a workspace start at once", words, tried, tried - len(wrong))
    assert not wrong


def ends(pid: int, *, within_s: float) -> bool:
    """Return whether the process ends in time; it is not reaped, so its id is not reused."""
    deadline = time.monotonic() + within_s
    while identity(pid) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def trainers_of(workspace: Workspace) -> dict[int, Identity]:
    """Return the trainer of each run, of those that hold their run's lock and should continue."""
    found = {}
    for row in workspace.runs.all():
        who = workspace.runs.claimant(row.id) if row.active and row.asked != "stop" else None
        if who is not None and workspace.is_alive(row.id):
            found[row.id] = who
    return found


def wait_for_a_moment(rng: random.Random, workspace: Workspace, trial: Trial, pid: int) -> None:
    """Wait until something happens: the window opens, a run is created, a trainer trains; and a little longer."""
    stage = rng.choice(("opening", "made", "running", "running"))
    deadline = time.monotonic() + 90

    def reached() -> bool:
        rows = [row for row in workspace.runs.all() if row.name.startswith(f"{trial.name} ")]
        return bool(rows) if stage == "made" else any(row.status == "running" for row in rows)

    while stage != "opening" and not reached():
        if identity(pid) is None or time.monotonic() > deadline:
            trial.wrong.append(f"no run was {stage}")
            return
        time.sleep(0.02)
    time.sleep(rng.random() * (0.6 if stage == "opening" else 0.1))


def attach(qtbot: QtBot, workspace: Workspace, background: Background, trial: Trial, within_s: float) -> float:
    """Do what the next window does: find all runs and receive new rows; return the seconds it took."""
    jobs, rows = Jobs(workspace, background, QUndoStack()), list[ScalarRow]()
    jobs.scalars_arrived.connect(rows.extend)
    began = time.monotonic()
    jobs.watch()
    qtbot.waitUntil(lambda: bool(jobs.runs) or not workspace.runs.all(), timeout=20_000)
    took = time.monotonic() - began
    if took > within_s:
        trial.wrong.append(f"found again after {took:.1f} s")
    for row in jobs.runs:
        who = workspace.runs.claimant(row.id)
        if row.status == "running" and (who is None or identity(who.pid) != who):
            # It may have ended since: then the next look says so.
            workspace.reconcile()
            if workspace.runs.get(row.id).status == "running":
                trial.wrong.append(f"run {row.id} is shown running and is not")
    training = [row.id for row in jobs.runs if row.status == "running" and row.asked != "stop"]
    if training and trial.number % 4 == 0:
        run = training[0]
        qtbot.waitUntil(lambda: sum(r.run == run and r.name == "train/loss" for r in rows) > 2, timeout=20_000)
        heard = [r.step for r in rows if r.run == run and r.name == "train/loss"]
        steps = workspace.results.series(run, "train/loss")[0].tolist()
        if heard != list(range(heard[0], heard[0] + len(heard))) or steps[: heard[0]] != list(range(1, heard[0] + 1)):
            trial.wrong.append(f"the curve of run {run} has a gap where the window came back")
    jobs.close()
    jobs.deleteLater()
    return took


def stop_the_oldest(workspace: Workspace) -> None:
    at_work = [row for row in workspace.runs.all() if row.status == "running" and row.asked != "stop"]
    for row in at_work[: max(0, len(at_work) - AT_ONCE)]:
        workspace.runs.ask(row.id, "stop")


def settle(workspace: Workspace, trials: list[Trial]) -> None:
    """Wait until every start has completed, stop all, and check the outcome of each run."""
    by_name = {trial.name: trial for trial in trials}

    def of(row: RunRow) -> Trial:
        return by_name[row.name.rsplit(" ", 1)[0]]

    def until(condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + SETTLED_S
        while not condition():
            if time.monotonic() > deadline:
                return False
            workspace.reconcile()
            time.sleep(0.1)
        return True

    def known() -> bool:
        rows = {row.id: row for row in workspace.runs.all()}
        return all(
            rows[run].status == "running" and rows[run].pid == pid for run, pid in living(workspace.folder).items()
        )

    if not until(known):
        for row in workspace.runs.all():
            if row.id in living(workspace.folder) and row.status != "running":
                of(row).wrong.append(f"a trainer trains run {row.id}, and its row says {row.status}")
    for row in workspace.runs.all():
        if row.status == "running":
            workspace.runs.ask(row.id, "stop")
    until(lambda: not any(row.active for row in workspace.runs.all()) and not living(workspace.folder))
    for row in workspace.runs.all():
        steps = workspace.results.series(row.id, "train/loss")[0].tolist()
        journal = [entry.step for entry in read_journal(row.folder / "metrics.jsonl")]
        if row.active:
            of(row).wrong.append(f"run {row.id} stays {row.status} with no process")
        elif row.status == "interrupted" and steps:
            of(row).wrong.append(f"run {row.id} was interrupted at step {steps[-1]}: {row.reason}")
        if steps != list(range(1, len(steps) + 1)) or journal != steps:
            of(row).wrong.append(f"the curve of run {row.id} has a gap")
