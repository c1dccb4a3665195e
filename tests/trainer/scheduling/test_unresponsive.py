"""Live trainers that do not respond: suspended ones, and those without a heartbeat."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forked_code
from trainer import config
from trainer.__main__ import main
from trainer.scheduling.unresponsive import why_silent
from trainer.store import RunLog, Workspace
from trainer.store.process_lock import Identity, identity, is_stopped

pytestmark = pytest.mark.slow

TRAINER = """
import sys, time
from pathlib import Path
from trainer.store import RunLog, Workspace
with RunLog.claim(Workspace(Path(sys.argv[1])), int(sys.argv[2])) as log:
    log.progress(step=7, total_steps=100, phase="training", eta_s=float(sys.argv[3]))
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def trainer(workspace: Workspace) -> Iterator[subprocess.Popen[str]]:
    """Return the process that trains run 1, at step 7 of 100, with a second left for each step."""
    workspace.runs.create(config.Run(name="hangs"))
    words = forked_code.command(TRAINER, str(workspace.folder), "1", "93")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def suspend(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    who = identity(process.pid)
    deadline = time.monotonic() + 90
    while who is not None and not is_stopped(who) and time.monotonic() < deadline:
        time.sleep(0.01)


@pytest.mark.skipif(os.name == "nt", reason="has no SIGSTOP")
def test_a_suspended_trainer_is_told_until_it_goes_on(
    workspace: Workspace, trainer: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
):
    def said(*words: str) -> str:
        assert main(["runs", *words, "--workspace", str(workspace.folder)]) == 0
        return capsys.readouterr().out

    assert why_silent(workspace, 1) == ""
    assert "not responding" not in said()
    assert json.loads(said("show", "1", "--json"))["not_answering"] == ""
    suspend(trainer)
    told = why_silent(workspace, 1)
    assert told.startswith(f"Its process {trainer.pid} is suspended (SIGSTOP")
    assert told.endswith(f"Continue it: kill -CONT {trainer.pid}; or end it: trainer stop 1 --force.")
    table = said()
    assert "not responding" in table
    assert f"Run 1 does not respond. {told}" in table
    assert f"It does not respond. {told}" in said("show", "1")
    shown = json.loads(said("show", "1", "--json"))
    assert (shown["status"], shown["not_answering"]) == ("running", told)
    assert [row["not_answering"] for row in json.loads(said("--json"))] == [told]
    os.kill(trainer.pid, signal.SIGCONT)
    deadline = time.monotonic() + 90
    while why_silent(workspace, 1) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert why_silent(workspace, 1) == ""


@pytest.mark.parametrize(
    ("age_s", "eta_s", "step", "status", "silent"),
    [
        (20.0, 93.0, 7, "running", False),
        (45.0, 93.0, 7, "running", True),
        (45.0, 93.0, 7, "stopping", True),
        (45.0, None, 7, "running", True),
        (45.0, 93.0, 7, "paused", False),
        (45.0, 1_860.0, 7, "running", False),  # 20 s a step
        (145.0, 1_860.0, 7, "running", True),
        (45.0, None, 0, "running", False),  # it loads its model
        (145.0, None, 0, "running", True),
        (-3_600.0, 93.0, 7, "running", False),  # the clock was set back
    ],
)
def test_a_living_trainer_without_a_sign_of_life(
    workspace: Workspace, age_s: float, eta_s: float | None, step: int, status: str, silent: bool
):
    run = workspace.runs.create(config.Run(name="hangs"))
    with RunLog.claim(workspace, run) as log:
        age = {"heartbeat_at": time.time() - age_s, "eta_s": eta_s, "step": step, "total_steps": 100}
        workspace.runs.change(run, status=status, **age)
        told = why_silent(workspace, run)
        assert bool(told) is silent, told
        if silent:
            assert f"is alive but has not responded for {age_s:.0f} s" in told
            assert told.endswith(f"Wait, or end it: trainer stop {run} --force.")
        log.status("stopped")
    assert why_silent(workspace, run) == ""


def test_nothing_is_told_of_who_is_gone(workspace: Workspace, trainer: subprocess.Popen[str]):
    trainer.kill()
    trainer.wait()
    workspace.runs.change(1, heartbeat_at=1.0)
    assert why_silent(workspace, 1) == ""
    assert why_silent(workspace, 99) == ""
    me = identity()
    assert me is not None
    assert not is_stopped(me)
    assert not is_stopped(Identity(4_194_305, 1, ""))
