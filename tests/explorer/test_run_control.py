"""Jobs with real trainer processes: they start, report, stop, queue, die and are found again."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QUndoStack
from pytestqt.qtbot import QtBot

from explorer.event_loop.background import Background
from explorer.run_control import actions
from explorer.run_control import jobs as jobs_room
from explorer.run_control.jobs import Jobs
from tests import forked_code
from trainer import config
from trainer.scheduling import launch, queue
from trainer.store import RunRow, ScalarRow, Workspace

# What every trainer does towards the store, without a model: claim, log, obey, end.
TRAINER = """
import sys, time
from pathlib import Path
from trainer.store import RunLog, Workspace
run, folder, total = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
with RunLog.claim(Workspace(folder), run) as log:
    for step in range(1, total + 1):
        log.scalars(step, {"train/loss": 5.0 / step, "val/image_to_text_R@1": step / total})
        log.progress(step=step, total_steps=total, phase="training", eta_s=0.02 * (total - step))
        log.headline(step / total, step / total)
        if log.asked() == "stop":
            log.status("stopped")
            break
        time.sleep(0.02)
    else:
        log.status("finished")
"""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen]]:
    processes: list[subprocess.Popen] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def length(monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen]) -> Callable[[int], None]:
    """Replace the trainer by the one above; called with the number of steps of later runs."""
    steps = [2_000]

    def spawn(command: list[str], log: object, more: object = None) -> subprocess.Popen:
        words = forked_code.command(TRAINER, command[5], command[7], str(steps[0]))
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True, env=environment)  # type: ignore[call-overload]
        started.append(process)
        return process

    monkeypatch.setattr(launch, "spawn", spawn)
    return lambda n: steps.__setitem__(0, n)


@pytest.fixture
def jobs(workspace: Workspace, background: Background, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    monkeypatch.setattr(jobs_room, "POLL_MS", 100)
    monkeypatch.setattr(jobs_room, "IDLE_POLL_MS", 400)
    monkeypatch.setattr(jobs_room, "NOTICE_S", 0.0)
    made = Jobs(workspace, background, QUndoStack())
    made.watch()
    yield made
    made.close()


def run_called(name: str) -> config.Run:
    return config.Run(name=name)


def status_of(jobs: Jobs, name: str) -> str:
    return next((run.status for run in jobs.runs if run.name == name), "")


def test_a_started_run_appears_runs_and_ends(qtbot: QtBot, jobs: Jobs, length: Callable[[int], None]):
    length(30)
    rows: list[ScalarRow] = []
    ended: list[RunRow] = []
    created: list[int] = []
    jobs.scalars_arrived.connect(rows.extend)
    jobs.run_ended.connect(ended.append)
    jobs.do(actions.create_and_launch, run_called("first"), "clip-scenes", done=created.append)
    # So short that a poll on a busy computer may not see it at work.
    qtbot.waitUntil(lambda: status_of(jobs, "first") in ("running", "finished"), timeout=20_000)
    qtbot.waitUntil(lambda: bool(ended), timeout=20_000)
    assert [row.name for row in ended] == ["first"]
    assert ended[0].status == "finished"
    assert created == [ended[0].id]
    qtbot.waitUntil(lambda: len(rows) == 60, timeout=4_000)
    assert [row.step for row in rows if row.name == "train/loss"] == list(range(1, 31))
    assert len({row.id for row in rows}) == 60


def test_stop_is_obeyed_and_resume_goes_on(qtbot: QtBot, jobs: Jobs, length: Callable[[int], None]):
    jobs.do(actions.create_and_launch, run_called("long"))
    qtbot.waitUntil(lambda: status_of(jobs, "long") == "running", timeout=8_000)
    run = jobs.runs[0].id
    jobs.stop([run])
    qtbot.waitUntil(lambda: status_of(jobs, "long") == "stopped", timeout=8_000)
    jobs.do(launch.start_detached, run)
    qtbot.waitUntil(lambda: status_of(jobs, "long") == "running", timeout=8_000)
    jobs.stop([run])
    qtbot.waitUntil(lambda: status_of(jobs, "long") == "stopped", timeout=8_000)


def test_the_next_window_finds_the_run_and_only_new_rows_arrive(
    qtbot: QtBot, workspace: Workspace, background: Background, jobs: Jobs, length: Callable[[int], None]
):
    jobs.do(actions.create_and_launch, run_called("survivor"))
    qtbot.waitUntil(lambda: status_of(jobs, "survivor") == "running", timeout=8_000)
    run = jobs.runs[0].id
    # It says that it runs before it has logged anything.
    qtbot.waitUntil(lambda: workspace.results.last_scalar_id() > 2, timeout=8_000)
    jobs.close()
    again = Jobs(Workspace(workspace.folder), background, QUndoStack(), background)
    rows: list[ScalarRow] = []
    again.scalars_arrived.connect(rows.extend)
    again.watch()
    qtbot.waitUntil(lambda: status_of(again, "survivor") == "running" and len(rows) > 4, timeout=8_000)
    first = rows[0].step
    steps, *_ = workspace.results.series(run, "train/loss")
    assert first > 1, "old rows are read with series(), not announced"
    losses = [row.step for row in rows if row.name == "train/loss"]
    assert losses == list(range(losses[0], losses[0] + len(losses)))
    assert set(losses) <= set(steps.tolist()) | set(range(int(steps[-1]) + 1, losses[-1] + 1))
    again.stop([run])
    qtbot.waitUntil(lambda: status_of(again, "survivor") == "stopped", timeout=8_000)
    again.close()


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions.presets, "preset", lambda name: config.Run(name=name))


@pytest.mark.usefixtures("demo")
def test_the_demo_trains_two_at_once(qtbot: QtBot, workspace: Workspace, jobs: Jobs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(launch, "cores", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    threads: list[str] = []
    monkeypatch.setattr(launch, "spawn", lambda _command, _log, more: threads.append(more["OMP_NUM_THREADS"]) or dead())
    jobs.do(actions.create_demo)
    qtbot.waitUntil(lambda: len(threads) >= 2, timeout=15_000)
    assert set(threads) == {"2"}, "each takes half of the cores"
    assert queue.slots(workspace).cpu == 1, "other runs train one after the other, as before"


def dead() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", ""])


@pytest.mark.usefixtures("demo")
def test_the_demo_trains_one_after_the_other_where_one_run_may_train(
    qtbot: QtBot, workspace: Workspace, jobs: Jobs, length: Callable[[int], None]
):
    queue.choose_slots(workspace, cpu=1)
    length(40)
    both: list[tuple[str, str]] = []
    jobs.runs_changed.connect(lambda runs: both.append((status_of(jobs, "CLIP demo"), status_of(jobs, "CLOOB demo"))))
    jobs.do(actions.create_demo)
    qtbot.waitUntil(lambda: status_of(jobs, "CLOOB demo") == "finished", timeout=15_000)
    # A poll on a busy computer may miss a run at work, but never sees the second before the first has finished.
    assert any(second == "queued" for _, second in both)
    assert {first for first, second in both if second in ("starting", "running", "finished")} == {"finished"}


@pytest.mark.usefixtures("demo")
def test_a_queued_run_is_started_by_the_next_window(
    qtbot: QtBot, workspace: Workspace, background: Background, jobs: Jobs, length: Callable[[int], None]
):
    queue.choose_slots(workspace, cpu=1)
    jobs.do(actions.create_demo)
    qtbot.waitUntil(lambda: status_of(jobs, "CLIP demo") == "running", timeout=8_000)
    jobs.close()
    first = jobs.runs[0].id
    length(60)
    workspace.runs.ask(first, "stop")
    assert launch.wait_until_ended(workspace, first, timeout_s=90)
    assert workspace.runs.all()[1].status == "queued"
    again = Jobs(Workspace(workspace.folder), background, QUndoStack(), background)
    again.watch()
    qtbot.waitUntil(lambda: status_of(again, "CLOOB demo") == "finished", timeout=10_000)
    again.close()


def test_what_waits_when_a_window_opens_is_shown_before_it_starts(
    qtbot: QtBot, workspace: Workspace, background: Background, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs_room, "POLL_MS", 20)
    monkeypatch.setattr(jobs_room, "NOTICE_S", 1_000.0)
    started: list[Workspace] = []
    monkeypatch.setattr(queue, "start_due", lambda workspace: started.append(workspace) or [])
    queue.choose_slots(workspace, cpu=2, gpus=[])
    for name in ("one", "two", "three"):
        workspace.runs.create(run_called(name), status="queued")
    told: list[tuple[int, int]] = []
    made = Jobs(workspace, background, QUndoStack())
    made.starts_soon.connect(lambda *news: told.append(news))
    made.watch()
    qtbot.waitUntil(lambda: bool(told), timeout=8_000)
    assert told[0] == (2, 1_000)
    # However often it looks, and whoever queues another one: nothing starts.
    workspace.runs.create(run_called("four"), status="queued")
    for _ in range(3):
        made.reconciled_at = float("-inf")
        with qtbot.waitSignal(made.poll_timer.timeout, timeout=8_000):
            made.poll()
    assert started == []
    made.do(queue.choose_slots, held=True)
    qtbot.waitUntil(lambda: told[-1][0] == 0, timeout=8_000)
    made.do(queue.choose_slots, held=False)
    qtbot.waitUntil(lambda: told[-1][0] == 2, timeout=8_000)
    made._notice._until = time.monotonic()
    qtbot.waitUntil(lambda: bool(started), timeout=8_000)
    assert told[-1] == (0, 0)
    made.close()


def test_a_queue_that_was_empty_starts_at_once(
    qtbot: QtBot, workspace: Workspace, background: Background, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs_room, "NOTICE_S", 1_000.0)
    started: list[Workspace] = []
    monkeypatch.setattr(queue, "start_due", lambda workspace: started.append(workspace) or [])
    made = Jobs(workspace, background, QUndoStack())
    with qtbot.waitSignal(made.poll_timer.timeout, timeout=8_000):
        made.watch()
    workspace.runs.create(run_called("asked for now"), status="queued")
    qtbot.waitUntil(lambda: bool(started), timeout=8_000)
    made.close()


def test_rename_and_delete_are_undone_and_done_again(qtbot: QtBot, workspace: Workspace, jobs: Jobs):
    for name in ("one", "two"):
        workspace.runs.change(workspace.runs.create(run_called(name)), status="finished")
    qtbot.waitUntil(lambda: len(jobs.runs) == 2)
    one, two = (run.id for run in jobs.runs)

    def names() -> list[str]:
        return [run.name for run in jobs.runs]

    jobs.rename(one, "uno")
    qtbot.waitUntil(lambda: names() == ["uno", "two"])
    with qtbot.waitSignal(jobs.deleted):
        jobs.delete([one, two])
    qtbot.waitUntil(lambda: names() == [])
    jobs.undo.undo()
    qtbot.waitUntil(lambda: names() == ["uno", "two"])
    jobs.undo.undo()
    qtbot.waitUntil(lambda: names() == ["one", "two"])
    jobs.undo.redo()
    qtbot.waitUntil(lambda: names() == ["uno", "two"])
    assert workspace.runs.get(one).folder.is_dir()


def test_a_run_in_training_is_not_deleted(qtbot: QtBot, jobs: Jobs, length: Callable[[int], None]):
    jobs.do(actions.create_and_launch, run_called("busy"))
    qtbot.waitUntil(lambda: status_of(jobs, "busy") == "running", timeout=8_000)
    with qtbot.waitSignal(jobs.failed) as told:
        jobs.delete([jobs.runs[0].id])
    assert "Stop it first" in told.args[0]
    assert jobs.undo.count() == 0


def test_a_taken_name_is_told_and_nothing_changes(qtbot: QtBot, workspace: Workspace, jobs: Jobs):
    for name in ("one", "two"):
        workspace.runs.change(workspace.runs.create(run_called(name)), status="finished")
    qtbot.waitUntil(lambda: len(jobs.runs) == 2)
    with qtbot.waitSignal(jobs.failed) as told:
        jobs.rename(jobs.runs[0].id, "two")
    assert "two" in told.args[0]
    qtbot.wait(700)
    assert [run.name for run in jobs.runs] == ["one", "two"]


def test_a_copy_has_the_name_of_a_run_that_nobody_named(qtbot: QtBot, workspace: Workspace, jobs: Jobs):
    original = config.Run(name="one", seed=7, objective=config.Cloob(inv_tau=20.0))
    workspace.runs.change(workspace.runs.create(original), status="finished")
    qtbot.waitUntil(lambda: len(jobs.runs) == 1)
    copies: list[config.Run] = []
    jobs.do(actions.copy_of, jobs.runs[0].id, done=copies.append)
    qtbot.waitUntil(lambda: bool(copies))
    assert config.difference(original, copies[0]) == [("name", "one", "cloob-scenes")]


def test_an_invalid_run_is_told_in_a_sentence(qtbot: QtBot, jobs: Jobs):
    with qtbot.waitSignal(jobs.failed) as told:
        jobs.do(actions.create_and_launch, config.Run(name="bad", data=config.Folder(path="")))
    assert "choose the folder" in told.args[0]


def test_polling_slows_down_when_nothing_runs_and_nothing_changes(qtbot: QtBot, jobs: Jobs):
    qtbot.waitUntil(lambda: jobs.poll_timer.interval() == jobs_room.IDLE_POLL_MS, timeout=8_000)


def test_a_poll_never_runs_on_the_gui_thread(
    qtbot: QtBot, jobs: Jobs, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    threads: list[threading.Thread] = []
    true_changes = Workspace.changes

    def changes(self: Workspace) -> int:
        threads.append(threading.current_thread())
        return true_changes(self)

    monkeypatch.setattr(Workspace, "changes", changes)
    qtbot.waitUntil(lambda: len(threads) >= 2, timeout=6_000)
    assert threading.main_thread() not in threads
