"""Promise 5: Stop ends, and rows come right, though somebody holds the database or the trainer hangs."""

from __future__ import annotations

import functools
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PySide6.QtGui import QUndoStack
from pytestqt.qtbot import QtBot

from explorer import jobs as jobs_room
from explorer.background import Background
from explorer.jobs import Jobs
from trainer import config, launch
from trainer.__main__ import main
from trainer.store import Workspace
from trainer.store.life import Identity, identity

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(3_600),
    pytest.mark.skipif(os.name == "nt", reason="its signals are only those that end a process at once"),
]

FAKE = Path(__file__).with_name("fake_trainer.py")
STOP_S, RIGHT_S = 30.0, 5.0


@dataclass
class Scene:
    """A workspace, what a window knows of its runs, and trainers that train."""

    workspace: Workspace
    jobs: Jobs
    trainers: dict[int, Identity] = field(default_factory=dict)

    def start(self, count: int) -> list[int]:
        """Runs that train."""
        runs = [self.workspace.create_run(config.Run(name=f"run {n}")) for n in range(count)]
        for run in runs:
            launch.start_detached(self.workspace, run)
        deadline = time.monotonic() + 60
        while not all(self.workspace.run(run).step > 0 for run in runs):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self.trainers |= {run: launch.trainer_of(self.workspace, run) for run in runs}
        return runs

    def send(self, run: int, number: signal.Signals) -> None:
        who = self.trainers[run]
        if identity(who.pid) == who:
            os.kill(who.pid, number)

    def status(self, run: int) -> str:
        row = self.jobs.run(run)
        return row.status if row else ""


@pytest.fixture
def scene(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    spawn = launch._spawn
    monkeypatch.setattr(
        launch, "_spawn", lambda words, log, more=None: spawn([sys.executable, FAKE, words[4], words[6]], log, more)
    )
    workspace, background = Workspace(tmp_path / "space"), Background()
    jobs = Jobs(workspace, background, QUndoStack())
    made = Scene(workspace, jobs)
    yield made
    for run in made.trainers:
        made.send(run, signal.SIGKILL)
    jobs.close()
    background.close(wait_ms=30_000)
    workspace.close()


@contextmanager
def locked(workspace: Workspace) -> Iterator[None]:
    """Somebody holds the database."""
    blocker = sqlite3.connect(workspace.database_file, isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        blocker.execute("ROLLBACK")
        blocker.close()


def test_stop_and_death_while_the_database_is_locked(qtbot: QtBot, scene: Scene, faults) -> None:
    # The tenth is longer than a trainer waits to say how it ended, so that this word comes later here, too.
    seconds = 60.0 if faults.whole else 8.0
    runs = scene.start(20 if faults.whole else 4)
    stopped, killed = runs[::2], runs[1::2]
    scene.jobs.watch()
    qtbot.waitUntil(lambda: all(scene.status(run) == "running" for run in runs), timeout=20_000)
    gone_s: dict[int, float] = {}
    with locked(scene.workspace):
        began = time.monotonic()
        for run in killed:
            scene.send(run, signal.SIGKILL)
        scene.jobs.stop(stopped)
        while time.monotonic() - began < seconds:
            qtbot.wait(50)
            for run in stopped:
                if run not in gone_s and not scene.workspace.is_alive(run):
                    gone_s[run] = time.monotonic() - began
    released = time.monotonic()
    right = dict.fromkeys(stopped, "stopped") | dict.fromkeys(killed, "interrupted")
    right_s: dict[int, float] = {}
    while len(right_s) < len(runs) and time.monotonic() - released < 2 * RIGHT_S:
        qtbot.wait(20)
        right_s |= {r: time.monotonic() - released for r in runs if r not in right_s and scene.status(r) == right[r]}

    told = {run: scene.workspace.run(run) for run in stopped}
    whole = {run: row.reason == f"Stopped after step {row.step}." for run, row in told.items()}
    curves = {run: list(scene.workspace.series(run, "train/loss")[0]) for run in runs}
    whole |= {run: bool(steps) and steps == list(range(1, len(steps) + 1)) for run, steps in curves.items()}
    good = sum(
        whole[run] and right_s.get(run, 99.0) <= RIGHT_S and (run in killed or gone_s.get(run, 99.0) <= STOP_S)
        for run in runs
    )
    words = f"process gone in {max(gone_s.values(), default=99):.0f} s, rows right "
    words += f"{max(right_s.values(), default=99):.1f} s after, curves whole"
    faults.row(5, f"stopped or killed while the database is locked for {seconds:.0f} s", words, len(runs), good)
    assert good == len(runs), (gone_s, right_s, whole, told)


def test_a_trainer_that_hangs(qtbot: QtBot, scene: Scene, faults, monkeypatch, capsys) -> None:
    if not faults.whole:
        monkeypatch.setattr(jobs_room, "PATIENCE_MS", 1_000)
        monkeypatch.setattr(launch, "end", functools.partial(launch.end, grace_s=1.0))
    tried, took, wrong = 0, [], {}
    # What the button of the banner does.
    scene.jobs.went_deaf.connect(lambda row: scene.jobs.end(row.id))
    scene.jobs.watch()
    for _ in range(faults.times(10)):
        runs = scene.start(2)
        for run in runs:
            scene.send(run, signal.SIGSTOP)
        qtbot.waitUntil(lambda runs=runs: all(scene.status(run) == "running" for run in runs), timeout=20_000)
        began = time.monotonic()
        scene.jobs.stop(runs)
        qtbot.waitUntil(
            lambda runs=runs: all(scene.status(run) == "interrupted" for run in runs), timeout=int(2e3 * STOP_S)
        )
        took.append(time.monotonic() - began)
        tried += len(runs)
        if took[-1] > STOP_S or any(identity(scene.trainers[run].pid) for run in runs):
            wrong |= dict.fromkeys(runs, took[-1])
    by_hand = "by the window"
    if faults.whole:
        (run,) = scene.start(1)
        scene.send(run, signal.SIGSTOP)
        began = time.monotonic()
        code = main(["stop", str(run), "--force", "--workspace", str(scene.workspace.folder)])
        took.append(time.monotonic() - began)
        tried, by_hand = tried + 1, "by the window and by trainer stop --force"
        if code or took[-1] > STOP_S or scene.workspace.run(run).status != "interrupted":
            wrong[run] = took[-1]
    words = f"ended {by_hand} within {max(took):.0f} s, shown as interrupted"
    faults.row(5, "a trainer hangs and is to stop", words, tried, tried - len(wrong))
    assert not wrong
