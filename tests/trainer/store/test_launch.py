import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.nightly import few_plain
from trainer.scheduling import launch
from trainer.store.process_lock import identity

pytestmark = pytest.mark.slow

STAND_IN = """#!{python}
import os, sys, time
from pathlib import Path
print("arguments", *sys.argv[1:])
print("leader", os.getsid(0) == os.getpid(), os.environ["PYTHONUNBUFFERED"], sys.stdin.read() == "")
from trainer.store import RunLog, Workspace
with RunLog.claim(Workspace(Path(sys.argv[-1])), int(sys.argv[5])) as log:
    while log.asked() != "stop":
        time.sleep(0.02)
    log.status("stopped")
"""


def _wait(until, timeout_s: float = 90.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Replace Python by a program with a trainer's store access, and nothing else."""

    def install(text: str = STAND_IN) -> None:
        path = tmp_path / "python"
        path.write_text(text.format(python=sys.executable))
        path.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(path))

    return install


def test_a_detached_trainer_leads_its_own_session_writes_its_log_and_stops_when_asked(workspace, number, stand_in):
    stand_in()
    pid = launch.start_detached(workspace, number)
    _wait(lambda: workspace.runs.get(number).status == "running")
    assert workspace.is_alive(number)
    assert workspace.runs.get(number).pid == pid
    assert launch.trainer_of(workspace, number) == identity(pid)
    with pytest.raises(launch.LaunchError, match="it is being trained"):
        launch.start_detached(workspace, number)
    launch.stop(workspace, number)
    assert launch.wait_until_ended(workspace, number, timeout_s=90)
    row = workspace.runs.get(number)
    assert (row.status, row.pid) == ("stopped", None)
    log = (row.folder / "log.txt").read_text().splitlines()
    assert log[0] == f"arguments -P -m trainer fit {number} --workspace {workspace.folder}"
    assert log[1] == "leader True 1 True"


def test_a_trainer_that_dies_before_it_begins_is_interrupted_with_its_last_words(workspace, number, stand_in):
    stand_in("#!{python}\nraise SystemExit('no such luck')\n")
    launch.start_detached(workspace, number)
    _wait(lambda: workspace.reconcile() or workspace.runs.get(number).status == "interrupted")
    assert "no such luck" in workspace.runs.get(number).reason


def test_a_program_that_cannot_be_started_fails_the_run(workspace, number, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(launch.LaunchError, match="could not be started"):
        launch.start_detached(workspace, number)
    assert workspace.runs.get(number).status == "failed"


def test_of_two_windows_that_start_a_queued_run_one_does(workspace, tiny):
    number = workspace.runs.create(tiny, status="queued")
    assert [workspace.runs.begin_launch(number), workspace.runs.begin_launch(number)] == [True, False]
    with pytest.raises(launch.LaunchError, match="it is starting"):
        launch.start_detached(workspace, number)


def test_stopping_a_queued_run_takes_it_out_of_the_queue(workspace, tiny):
    number = workspace.runs.create(tiny, status="queued")
    launch.stop(workspace, number)
    assert workspace.runs.get(number).status == "stopped"
    assert workspace.runs.get(number).asked == ""


def test_a_deleted_run_is_not_started(workspace, tiny):
    number = workspace.runs.create(tiny, status="queued")
    workspace.delete(number)
    with pytest.raises(launch.LaunchError, match="it is deleted"):
        launch.start_detached(workspace, number)


def test_ending_terminates_the_trainer(workspace, number, hold):
    process = hold(number)
    assert launch.end(workspace, number, grace_s=5)
    assert process.wait() == -signal.SIGTERM
    assert workspace.runs.get(number).status == "interrupted"


def test_ending_kills_a_trainer_that_does_not_listen(workspace, number, hold):
    process = hold(number, "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    assert launch.end(workspace, number, grace_s=0.2)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("forged", ["ticks", "boot", "pid"])
def test_no_signal_reaches_a_process_that_only_has_the_number(workspace, number, hold, forged):
    holder = hold(number)
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        now = identity(bystander.pid)
        values = {
            "pid": {"pid": bystander.pid},
            "ticks": {"pid": bystander.pid, "start_ticks": now.start_ticks + 1},
            "boot": {"pid": bystander.pid, "start_ticks": now.start_ticks, "boot_id": "another"},
        }[forged]
        workspace.runs.change(number, **values)
        assert launch.trainer_of(workspace, number) is None
        assert not launch.signal_trainer(workspace, number, hard=True)
        time.sleep(0.05)
        assert bystander.poll() is None
        assert holder.poll() is None
    finally:
        os.kill(bystander.pid, signal.SIGKILL)
        bystander.wait()


def test_a_process_is_told_from_a_later_one_of_the_same_number():
    mine = identity()
    assert mine.pid == os.getpid()
    assert mine == identity(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", ""])
    _wait(lambda: identity(child.pid) is None)
    child.wait()
    assert identity(child.pid) is None


SLEEPER = "#!{python}\nimport time\ntime.sleep(600)\n"
"""Hangs before it has claimed its run, like a trainer whose libraries are on a drive that does not answer."""


def test_a_trainer_that_hangs_while_it_starts_is_stopped_at_once(workspace, number, stand_in):
    stand_in(SLEEPER)
    pid = launch.start_detached(workspace, number)
    assert launch.trainer_of(workspace, number) == identity(pid)
    launch.stop(workspace, number)
    assert launch.wait_until_ended(workspace, number, timeout_s=90)
    row = workspace.runs.get(number)
    assert (row.status, row.reason, row.asked) == ("stopped", "Stopped before it began.", "")
    assert identity(pid) is None


@few_plain(1, "end", [launch.kill, launch.end])
def test_a_trainer_that_hangs_while_it_starts_can_be_killed(workspace, number, stand_in, end):
    stand_in(SLEEPER)
    pid = launch.start_detached(workspace, number)
    assert end(workspace, number)
    assert identity(pid) is None
    row = workspace.runs.get(number)
    assert (row.status, row.reason) == ("interrupted", "The trainer ended before it began. It left no output.")


def test_a_run_that_is_to_end_after_the_epoch_may_start(workspace, number, stand_in):
    stand_in(SLEEPER)
    pid = launch.start_detached(workspace, number)
    launch.stop(workspace, number, after="epoch")
    assert workspace.runs.get(number).status == "starting"
    assert launch.trainer_of(workspace, number) == identity(pid)
    assert launch.kill(workspace, number)


@pytest.mark.parametrize("forged", ["number", "ticks", "run"])
def test_no_signal_reaches_a_process_that_was_not_started_for_the_run(workspace, tiny, stand_in, forged):
    stand_in(SLEEPER)
    number, other = workspace.runs.create(tiny), workspace.runs.create(tiny)
    pid = launch.start_detached(workspace, number)
    now = identity(pid)
    bystander = subprocess.Popen([sys.executable, "-m", "trainer", "fit"])
    try:
        if forged == "run":
            assert workspace.runs.begin_launch(other)
            workspace.runs.change(other, launched_pid=pid, launched_ticks=now.start_ticks)
            asked = other
        else:
            seen = identity(bystander.pid)
            ticks = seen.start_ticks + (forged == "ticks")
            workspace.runs.change(number, launched_pid=bystander.pid, launched_ticks=ticks)
            asked = number
        assert launch.trainer_of(workspace, asked) is None
        launch.stop(workspace, asked)
        launch.kill(workspace, asked)
        time.sleep(0.05)
        assert bystander.poll() is None
        assert identity(pid) == now
    finally:
        for process in (bystander.pid, pid):
            os.kill(process, signal.SIGKILL)
        bystander.wait()
