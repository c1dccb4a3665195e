"""Promises 5, 14, 17 and 23: live processes, ownership, and clock changes; the store of jobs against a model."""

import importlib.util
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from trainer import config
from trainer.scheduling import launch
from trainer.store import RunLog, Workspace
from trainer.store.process_lock import ProcessLock, identity, is_held

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7_200)]
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen]:
    """Return a process unrelated to any run."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def _hold(folder: Path, run: int, ready) -> None:
    log = RunLog.claim(Workspace(folder), run)
    log.progress(step=3, total_steps=9, phase="training")
    ready.set()
    time.sleep(600)


def _killed(workspace: Workspace, run: int) -> None:
    """Claim the run with a trainer that is then killed."""
    ready = FORK.Event()
    trainer = FORK.Process(target=_hold, args=(workspace.folder, run, ready))
    trainer.start()
    assert ready.wait(20)
    os.kill(trainer.pid, signal.SIGKILL)
    trainer.join()


def test_a_dead_job_is_never_shown_running(tmp_path, bystander, faults):
    tried, good = faults.times(100), 0
    workspace = Workspace(tmp_path)
    now = identity(bystander.pid)
    chance = random.Random(2)
    for number in range(tried):
        run = workspace.runs.create(config.Run(name=f"run {number}"))
        # Its number given to another program; the same after a restart of the computer; a start that died.
        reused = {"status": "running", "pid": now.pid, "start_ticks": now.start_ticks, "boot_id": now.boot_id}
        earlier = reused | {"boot_id": "another boot", "start_ticks": chance.randrange(10**6)}
        gone = {"launched_pid": now.pid, "launched_ticks": now.start_ticks - 1, "launched_at": time.time()}
        case = number % 4
        if case == 0:
            _killed(workspace, run)
        else:
            values = [reused, earlier, gone][case - 1]
            workspace.runs.change(run, **values)
        began = time.monotonic()
        workspace.reconcile()
        row = workspace.runs.get(run)
        soon = time.monotonic() - began < faults.within(5)
        good += row.status == "interrupted" and row.pid is None and bool(row.reason) and soon
        workspace.purge(run)
    workspace.close()
    assert bystander.poll() is None
    words = "shown as interrupted, with a reason, within 5 s"
    faults.row(5, "trainer killed, its number reused, computer restarted", words, tried, good)
    assert good == tried


def test_no_signal_reaches_a_program_by_a_forged_row(tmp_path, bystander, faults):
    tried, good = faults.times(1_000), 0
    workspace = Workspace(tmp_path)
    run = workspace.runs.create(config.Run(name="forged"))
    chance = random.Random(4)
    now = identity(bystander.pid)
    with RunLog.claim(workspace, run) as log:
        for _ in range(tried):
            ticks, boot = now.start_ticks, now.boot_id
            if chance.random() < 0.5:
                ticks += chance.choice([-1, 1, chance.randrange(1, 10**9)])
            else:
                boot = chance.choice(["", "another", boot[:-1]])
            workspace.runs.change(run, pid=now.pid, start_ticks=ticks, boot_id=boot)
            sent = launch.signal_trainer(workspace, run, hard=chance.random() < 0.5)
            good += not sent and bystander.poll() is None
        log.status("stopped")
    workspace.close()
    time.sleep(0.1)
    assert bystander.poll() is None
    faults.row(5, "row forged to name another program", "no signal sent", tried, good)
    assert good == tried


def _race(lock: Path, gate, won, stay) -> None:
    gate.wait()
    held = ProcessLock.take(lock, wait_s=0.0)
    if held is not None:
        with won.get_lock():
            won.value += 1
    stay.wait()


def test_of_instances_that_race_one_is_the_owner(tmp_path, faults):
    tried, good = faults.times(50), 0
    for number in range(tried):
        lock = tmp_path / f"{number}.lock"
        gate, won, stay = FORK.Barrier(3), FORK.Value("i", 0), FORK.Barrier(3)
        rivals = [FORK.Process(target=_race, args=(lock, gate, won, stay)) for _ in range(2)]
        for rival in rivals:
            rival.start()
        gate.wait()
        deadline = time.monotonic() + 90
        while not (is_held(lock) and won.value) and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(0.05)
        # The owner dies without a word: nobody has to remove anything by hand.
        owners = won.value
        for rival in rivals:
            os.kill(rival.pid, signal.SIGKILL)
            rival.join()
        next_one = ProcessLock.take(lock, wait_s=0.0)
        good += owners == 1 and next_one is not None
        next_one.release()
    words = "exactly one owner; its lock is free once it is killed"
    faults.row(14, "two processes take a workspace's lock at once", words, tried, good)
    assert good == tried


def test_clocks_that_jump_by_a_day(tmp_path, monkeypatch, faults):
    tried, good = faults.times(100), 0
    workspace = Workspace(tmp_path)
    real, offset = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + offset[0])
    chance = random.Random(6)
    for number in range(tried):
        run = workspace.runs.create(config.Run(name=f"run {number}"))
        dead = negative = 0
        with RunLog.claim(workspace, run) as log:
            for step in range(1, 6):
                offset[0] += chance.choice([-86_400, 86_400, 0])
                log.scalars(step, {"train/loss": 1.0})
                log.progress(step=step, total_steps=5, phase=f"step {step}", eta_s=1.0)
                dead += sum(row.id == run for row in workspace.reconcile())
                row = workspace.runs.get(run)
                negative += row.duration_s < 0 or row.trained_s < 0
            log.status("finished")
        seconds = workspace.results.series(run, "train/loss")[2]
        row = workspace.runs.get(run)
        negative += bool((np.diff(seconds) < 0).any() or (seconds < 0).any() or not 0 <= row.trained_s < 60)
        good += row.status == "finished" and not dead and not negative
        workspace.purge(run)
    workspace.close()
    faults.row(17, "clock set a day on or back while training", "no negative time, none taken for dead", tried, good)
    assert good == tried


def test_the_store_of_jobs_against_a_model(tmp_path, monkeypatch, faults):
    path = Path(__file__).parents[1] / "trainer" / "store" / "test_state_machine.py"
    spec = importlib.util.spec_from_file_location("jobs_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = Workspace(tmp_path / "made")
    assert made.runs.all() == []
    made.close()
    mkdtemp = tempfile.mkdtemp

    def beside_a_database(prefix: str, **_: object) -> str:
        """Copy an empty database, since creating it would take a third of an example's time."""
        folder = mkdtemp(prefix=prefix, dir=tmp_path)
        shutil.copy(made.database_file, folder)
        return folder

    monkeypatch.setattr(tempfile, "mkdtemp", beside_a_database)
    # An example is twenty steps: ten thousand take half an hour of a processor.
    tried = 10_000 if faults.whole else 2
    quiet = list(HealthCheck)
    chosen = settings(max_examples=tried, stateful_step_count=20, deadline=None, suppress_health_check=quiet)
    run_state_machine_as_test(module.Jobs, settings=chosen)
    words = "a dict that does the same agrees after each step"
    faults.row(23, "jobs made, started, killed, stopped, deleted, reopened in any order", words, tried, tried)
