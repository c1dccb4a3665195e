"""Runs that continue after a stop request: reported, terminated automatically in time, or waited for."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QUndoStack
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer.event_loop.background import Background
from explorer.models.runs import RunColumn
from explorer.run_control import stop_timeout
from explorer.run_control.actions import Responsiveness, look
from explorer.run_control.jobs import Jobs
from explorer.views import VIEWS
from explorer.window import Window, stop_banner
from tests import forked_code
from tests.nightly import nightly_except
from trainer import config
from trainer.scheduling import launch
from trainer.store import Workspace
from trainer.store.process_lock import identity

pytestmark = pytest.mark.skipif(os.name == "nt", reason="its signals are only those that end a process at once")

HOUR_MS = 3_600_000
"""A timeout that no test waits for: it passes when the test says so (`run_out`), on a machine of any speed."""

# The name of the run says how it takes the wish to stop: obeys, hears signals only, saves or measures until the file
# `enough` is there, or not at all.
TRAINER = """
import os, signal, sys, time
from pathlib import Path
from trainer.store import RunLog, Workspace
run, folder = int(sys.argv[1]), Path(sys.argv[2])
with RunLog.claim(Workspace(folder), run) as log:
    signals, how = [], log.run.name.partition(" ")[0]
    signal.signal(signal.SIGTERM, lambda *_: signals.append(1))
    kept = log.folder / "checkpoints" / "step_000120"
    kept.mkdir(parents=True)
    log.checkpoint(120, kept)
    end, step = time.monotonic() + 600, 120
    while time.monotonic() < end:
        step += 1
        log.scalars(step, {"train/loss": 5.0 / step})
        log.progress(step=step, total_steps=100_000, phase="training")
        if log.asked() == "stop" and how.startswith("saves"):
            draft = log.folder / "checkpoints" / ".tmp-1-a-step_000121"
            draft.mkdir()
            size = 0
            while not (log.folder / "enough").exists():
                size += 1
                (draft / "weights").write_bytes(bytes(size))
                time.sleep(0.02)
            if how == "saves-and-hangs":
                time.sleep(600)
            log.status("stopped")
            break
        if log.asked() == "stop" and how == "measures":
            while not (log.folder / "enough").exists():
                log._beat_at = 0.0  # signs of life are written every 2 s only
                log.progress(step=step, total_steps=100_000, phase="evaluating")
                time.sleep(0.02)
            log.status("stopped")
            break
        if (log.asked() == "stop" and how == "obeys") or (signals and how == "signaled"):
            log.status("stopped")
            break
        time.sleep(0.02)
"""


@pytest.fixture
def begin(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], int]]:
    """Start a trainer of a new run with this name and return its id once it trains."""
    started: list[subprocess.Popen] = []

    def spawn(command: list[str], log: object, more: object = None) -> subprocess.Popen:
        words = forked_code.command(TRAINER, command[5], command[7])
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True, env=environment)  # type: ignore[call-overload]
        started.append(process)
        return process

    def begin_one(name: str) -> int:
        run = workspace.runs.create(config.Run(name=name))
        launch.start_detached(workspace, run)
        deadline = time.monotonic() + 90
        while workspace.runs.get(run).step <= 120:
            assert time.monotonic() < deadline, (workspace.runs.get(run).folder / "log.txt").read_text()
            time.sleep(0.02)
        return run

    monkeypatch.setattr(launch, "spawn", spawn)
    yield begin_one
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record whether each signal sent from now on is a kill."""
    signals: list[bool] = []
    true_signal = launch.signal_trainer

    def note(workspace: Workspace, run: int, *, hard: bool) -> bool:
        reached = true_signal(workspace, run, hard=hard)
        signals.extend([hard] if reached else [])
        return reached

    monkeypatch.setattr(launch, "signal_trainer", note)
    return signals


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set how long a trainer may continue, how long the user may choose, how long a checkpoint may stall."""

    def choose(patience_ms: int = 300, last_ms: int = 700, saving_ms: int = 700) -> None:
        monkeypatch.setattr(stop_timeout, "PATIENCE_MS", patience_ms)
        monkeypatch.setattr(stop_timeout, "LAST_MS", last_ms)
        monkeypatch.setattr(stop_timeout, "SAVING_MS", saving_ms)

    choose()
    return choose


@pytest.fixture
def open_jobs(qapp: QApplication, workspace: Workspace, quick) -> Iterator[Callable[[], Jobs]]:
    background, made = Background(), []

    def open_one() -> Jobs:
        made.append(Jobs(workspace, background, QUndoStack()))
        made[-1].watch()
        return made[-1]

    yield open_one
    for jobs in made:
        jobs.close()
    assert background.close()


@pytest.fixture
def window(window_of: Callable[..., Window], workspace: Workspace, quick) -> Iterator[Window]:
    workspace.runs.all()
    opened = window_of(workspace.folder, VIEWS[:1])
    yield opened
    opened._may_go = True


def running_out(jobs: Jobs) -> list[QTimer]:
    """Return the timeouts that are running."""
    (timeouts,) = jobs.findChildren(stop_timeout.StopTimeouts)
    return [timer for timer in timeouts.findChildren(QTimer) if timer.isActive()]


def run_out(jobs: Jobs) -> None:
    """Let all running timeouts expire now."""
    for timer in running_out(jobs):
        timer.start(0)


def status(jobs: Jobs, run: int) -> str:
    row = jobs.run(run)
    return row.status if row else ""


def wait_for(qtbot: QtBot, jobs: Jobs, run: int, wanted: str) -> None:
    qtbot.waitUntil(lambda: status(jobs, run) == wanted, timeout=20_000)


def begin_and_stop(qtbot: QtBot, jobs: Jobs, begin: Callable[[str], int], name: str) -> int:
    run = begin(name)
    wait_for(qtbot, jobs, run, "running")
    jobs.stop([run])
    return run


def test_trainers_that_hang_are_ended_by_themselves(
    qtbot: QtBot, window: Window, begin, quick, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    quick(last_ms=HOUR_MS)
    jobs, banner = window.services.jobs, window.banner
    told: list[tuple[str, str]] = []
    show_message = banner.show_message
    monkeypatch.setattr(
        banner, "show_message", lambda *words, **more: (told.append(words), show_message(*words, **more))
    )
    runs = [begin("unresponsive one"), begin("unresponsive two")]
    who = [launch.trainer_of(workspace, run) for run in runs]
    for process in who:
        os.kill(process.pid, signal.SIGSTOP)
    wait_for(qtbot, jobs, runs[1], "running")
    jobs.stop(runs)
    qtbot.waitUntil(lambda: all(jobs.unresponsive(run) is not None for run in runs), timeout=20_000)
    assert (banner.action.text(), banner.other.text()) == ("End now", "Wait")
    # Their person does nothing.
    run_out(jobs)
    for run in runs:
        wait_for(qtbot, jobs, run, "interrupted")
        qtbot.waitUntil(lambda run=run: jobs.run(run).reason == launch.ENDED_WORDS, timeout=15_000)
    assert [identity(process.pid) for process in who] == [None, None]
    qtbot.waitUntil(lambda: banner.message.text().endswith("did not stop and were ended."), timeout=15_000)
    assert banner.next.text() == "They can be resumed from steps 120 and 120."
    assert banner.action.isHidden()
    first, second = told[:2]
    assert first[0] in (
        "CLIP · unresponsive one was asked to stop and is still running.",
        "CLIP · unresponsive two was asked to stop and is still running.",
    )
    loses = ", which loses what it did since step 120, its last checkpoint."
    assert re.fullmatch(r"It is ended in 3[56]\d\d s" + re.escape(loses), first[1])
    assert {*second[0].removesuffix(" were asked to stop and are still running.").split(" and ")} == {
        "CLIP · unresponsive one",
        "CLIP · unresponsive two",
    }
    assert second[1].startswith("They are ended in ")


def test_a_suspended_trainer_is_shown_as_not_answering(qtbot: QtBot, window: Window, begin, workspace: Workspace):
    jobs, table = window.services.jobs, window.pages.open_view.table
    run = begin("suspended")
    wait_for(qtbot, jobs, run, "running")
    cell = table.shown.index(0, RunColumn.STATUS)
    assert cell.data() == "Running"
    who = launch.trainer_of(workspace, run)
    os.kill(who.pid, signal.SIGSTOP)
    qtbot.waitUntil(lambda: cell.data() == "Not responding", timeout=20_000)
    assert f"Continue it: kill -CONT {who.pid}; or end it: trainer stop" in cell.data(Qt.ItemDataRole.ToolTipRole)
    os.kill(who.pid, signal.SIGCONT)
    qtbot.waitUntil(lambda: cell.data() == "Running", timeout=20_000)
    assert "kill -CONT" not in (cell.data(Qt.ItemDataRole.ToolTipRole) or "")


def test_end_now_does_not_wait_for_the_time_to_run_out(qtbot: QtBot, window: Window, begin, quick):
    quick(last_ms=HOUR_MS)
    jobs, banner = window.services.jobs, window.banner
    run = begin_and_stop(qtbot, jobs, begin, "unresponsive")
    qtbot.waitUntil(banner.isVisible, timeout=15_000)
    assert re.match(r"It is ended in 3[56]\d\d s", banner.next.text())
    qtbot.mouseClick(banner.action, Qt.MouseButton.LeftButton)
    wait_for(qtbot, jobs, run, "interrupted")
    assert jobs.unresponsive(run) is None


@pytest.mark.parametrize(
    ("deed", "ends"), nightly_except([["stop", "stopped"], ["kill", "interrupted"]], ["kill", "interrupted"])
)
def test_a_trainer_that_hangs_while_it_starts(
    qtbot: QtBot, window: Window, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, deed: str, ends: str
):
    def hang(command: list[str], log: object, more: object = None) -> subprocess.Popen:
        words = [sys.executable, "-c", "import time; time.sleep(600)", *command[1:]]
        return subprocess.Popen(words, start_new_session=True)

    monkeypatch.setattr(launch, "spawn", hang)
    run = workspace.runs.create(config.Run(name="from a dead drive"))
    process = launch.start_detached(workspace, run)
    jobs, view = window.services.jobs, window.pages.open_view
    wait_for(qtbot, jobs, run, "starting")
    view.table.choose([run])
    view.actions_of_runs[deed].trigger()
    wait_for(qtbot, jobs, run, ends)
    assert identity(process) is None
    assert "before it began" in jobs.run(run).reason


@pytest.mark.nightly
def test_other_news_does_not_take_the_choice_away(qtbot: QtBot, window: Window, begin, quick):
    quick(last_ms=HOUR_MS)
    jobs, banner = window.services.jobs, window.banner
    run = begin_and_stop(qtbot, jobs, begin, "unresponsive")
    qtbot.waitUntil(banner.isVisible, timeout=15_000)
    banner.show_message("Something else.", tone="warn")
    qtbot.wait(3 * stop_banner.TICK_MS)
    assert banner.message.text() == "Something else."
    banner.dismiss.click()
    qtbot.waitUntil(lambda: banner.isVisible() and "unresponsive was asked" in banner.message.text(), timeout=15_000)
    # Closed itself it stays closed, and the end comes.
    banner.dismiss.click()
    qtbot.wait(3 * stop_banner.TICK_MS)
    assert not banner.isVisible()
    jobs.end(run)
    wait_for(qtbot, jobs, run, "interrupted")


def test_who_obeys_in_time_gets_no_signal(qtbot: QtBot, open_jobs, begin, quick, sent: list[bool]):
    quick(patience_ms=HOUR_MS)
    jobs, unresponsive = open_jobs(), []
    jobs.became_unresponsive.connect(unresponsive.append)
    run = begin_and_stop(qtbot, jobs, begin, "obeys")
    wait_for(qtbot, jobs, run, "stopped")
    assert (unresponsive, sent) == ([], [])
    assert not jobs.stop_timeouts._requests, "nothing is left that could run out"


def test_who_cannot_read_the_wish_obeys_a_signal(qtbot: QtBot, open_jobs, begin, quick, sent: list[bool]):
    quick(last_ms=HOUR_MS)
    jobs = open_jobs()
    run = begin_and_stop(qtbot, jobs, begin, "signaled")
    wait_for(qtbot, jobs, run, "stopped")
    assert sent == [False]
    assert jobs.unresponsive(run) is None


@pytest.mark.nightly
def test_no_deadline_for_an_epoch_nor_for_a_wish_from_elsewhere(
    qtbot: QtBot, open_jobs, begin, sent: list[bool], workspace: Workspace
):
    jobs = open_jobs()
    asked_here, asked_elsewhere = begin("unresponsive here"), begin("unresponsive elsewhere")
    wait_for(qtbot, jobs, asked_elsewhere, "running")
    jobs.stop([asked_here], after="epoch")
    workspace.runs.ask(asked_elsewhere, "stop")
    qtbot.waitUntil(lambda: jobs.unresponsive(asked_elsewhere) is not None, timeout=15_000)
    assert jobs.unresponsive(asked_elsewhere).left_s is None
    assert jobs.unresponsive(asked_elsewhere).kept == 120
    qtbot.wait(1_000)
    assert jobs.unresponsive(asked_here) is None
    assert sent == []
    # The epoch became too long: the person asks for the step after all.
    jobs.stop([asked_here])
    wait_for(qtbot, jobs, asked_here, "interrupted")
    assert status(jobs, asked_elsewhere) == "running"


def test_a_window_that_is_closed_ends_nothing_and_the_next_one_offers_it(
    qtbot: QtBot, open_jobs, begin, quick, sent: list[bool]
):
    quick(last_ms=HOUR_MS)
    first = open_jobs()
    run = begin_and_stop(qtbot, first, begin, "unresponsive")
    qtbot.waitUntil(lambda: first.unresponsive(run) is not None, timeout=15_000)
    first.close()
    second = open_jobs()
    qtbot.waitUntil(lambda: second.unresponsive(run) is not None, timeout=15_000)
    assert second.unresponsive(run).left_s is None
    assert running_out(second) == [], "nothing ends it by itself"
    assert status(second, run) == "running"
    assert True not in sent


@pytest.mark.parametrize(
    ("how", "busy", "outcome", "kills"),
    [
        pytest.param("saves", "writing its checkpoint", "stopped", 0, marks=pytest.mark.nightly),
        ("saves-and-hangs", "writing its checkpoint", "interrupted", 1),
        pytest.param("measures", "evaluating", "stopped", 0, marks=pytest.mark.nightly),
    ],
)
def test_a_checkpoint_that_grows_and_an_evaluation_are_waited_for(
    qtbot: QtBot, open_jobs, begin, quick, sent: list[bool], workspace: Workspace, how, busy, outcome, kills
):
    quick(last_ms=HOUR_MS, saving_ms=HOUR_MS)
    jobs, told = open_jobs(), []
    jobs.became_unresponsive.connect(lambda row: told.append(jobs.unresponsive(row.id)))
    run = begin_and_stop(qtbot, jobs, begin, how)
    qtbot.waitUntil(lambda: bool(told))
    seen = look(workspace, run, False)
    qtbot.waitUntil(lambda: look(workspace, run, False) not in (seen, Responsiveness(120)))
    run_out(jobs)
    qtbot.waitUntil(lambda: len(told) > 1)
    assert [unresponsive.busy for unresponsive in told][:2] == ["", busy]
    (workspace.runs.get(run).folder / "enough").touch()
    if kills:
        qtbot.waitUntil(lambda: run_out(jobs) or status(jobs, run) == outcome)
    wait_for(qtbot, jobs, run, outcome)
    assert sent.count(True) == kills


def test_no_signal_reaches_another_program(qtbot: QtBot, open_jobs, begin, sent: list[bool], workspace: Workspace):
    jobs, told = open_jobs(), []
    jobs.failed.connect(told.append)
    run = begin("unresponsive")
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        now = identity(bystander.pid)
        workspace.runs.change(run, pid=now.pid, start_ticks=now.start_ticks, boot_id="another")
        wait_for(qtbot, jobs, run, "running")
        jobs.stop([run])
        qtbot.waitUntil(lambda: bool(told), timeout=20_000)
        assert "it is not the process this run started" in told[0]
        assert bystander.poll() is None
        assert (sent, status(jobs, run)) == ([], "running")
        assert jobs.unresponsive(run).left_s is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.nightly
def test_what_could_not_be_ended_is_tried_again_by_stop(
    qtbot: QtBot, open_jobs, begin, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_what: object, **_how: object) -> bool:
        raise PermissionError("not yours")

    jobs, told = open_jobs(), []
    jobs.failed.connect(told.append)
    run = begin("unresponsive")
    wait_for(qtbot, jobs, run, "running")
    with monkeypatch.context() as patch:
        patch.setattr(launch, "end", refuse)
        jobs.stop([run])
        qtbot.waitUntil(lambda: bool(told), timeout=20_000)
    assert jobs.unresponsive(run).left_s is None, "nobody is told that it is being ended"
    jobs.stop([run])
    wait_for(qtbot, jobs, run, "interrupted")


def test_a_window_does_not_end_itself(workspace: Workspace):
    from trainer.store import RunLog

    run = workspace.runs.create(config.Run(name="mine"))
    with RunLog.claim(workspace, run) as log:
        assert launch.trainer_of(workspace, run) is not None
        assert not launch.remind(workspace, run)
        assert not launch.end(workspace, run, grace_s=0)
        log.status("stopped")
