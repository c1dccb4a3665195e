"""The queue, alerts and closing, through the real table, dialogs and window."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPointF, Qt
from PySide6.QtGui import QAction, QCloseEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QCheckBox, QLabel, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from explorer.models.runs import RunColumn
from explorer.run_control import jobs as jobs_room
from explorer.views.runs import RunsView
from explorer.views.runs.queue_sheets import Branch, QueueSheet, Repeat, SlotsSheet, parse_seeds
from explorer.views.runs.runs_table import QUEUED
from explorer.views.view import Context
from explorer.window import Window, close_dialog
from explorer.window.device_monitor import DeviceMonitor
from explorer.window.notifications import QUEUE_WAITS
from tests.explorer.widgets import show_widget
from tests.nightly import few_plain
from trainer import config
from trainer.config import ConfigError
from trainer.scheduling import queue
from trainer.store import RunLog, Workspace
from trainer.store.rows import WATCHED


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    opened = Workspace(tmp_path)
    # Held: what waits keeps waiting, so that its order can be looked at.
    queue.choose_slots(opened, held=True)
    yield opened
    opened.close()


@pytest.fixture
def four(workspace: Workspace) -> list[int]:
    return [workspace.runs.create(config.Run(name=name), status="queued") for name in ("a", "b", "c", "d")]


def show(qtbot: QtBot, context: Context, count: int) -> RunsView:
    view = show_widget(qtbot, RunsView(context), 1280, 800)
    context.jobs.watch()
    qtbot.waitUntil(lambda: view.table.runs.rowCount() == count)
    return view


def names(view: RunsView) -> list[str]:
    return [run.name for run in view.table.shown.runs()]


def drop(view: RunsView, runs: list[int], gap: int) -> None:
    """Deliver Qt's events for rows dropped on the gap above row `gap`."""
    table = view.table
    data = QMimeData()
    data.setData(QUEUED, json.dumps(runs).encode())
    at = QPointF(60, table.rowViewportPosition(0) + gap * table.verticalHeader().defaultSectionSize() + 2)
    move, copy = Qt.DropAction.MoveAction, (Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    over = QDragMoveEvent(at.toPoint(), move, data, *copy)
    table.dragMoveEvent(over)
    if over.isAccepted():
        table.dropEvent(QDropEvent(at, move, data, *copy))


def test_the_queue_stands_in_its_order_and_is_arranged_by_dragging_and_by_keys(
    qtbot: QtBot, context: Context, four: list[int]
):
    view = show(qtbot, context, 4)
    qtbot.waitUntil(lambda: names(view) == ["a", "b", "c", "d"])
    status = [view.table.shown.index(row, RunColumn.STATUS).data() for row in range(4)]
    assert status == ["Queued (1)", "Queued (2)", "Queued (3)", "Queued (4)"]
    drop(view, [four[3]], 1)
    qtbot.waitUntil(lambda: names(view) == ["a", "d", "b", "c"])
    drop(view, [four[0], four[3]], 4)
    qtbot.waitUntil(lambda: names(view) == ["b", "c", "a", "d"])
    context.selection.undo.undo()
    qtbot.waitUntil(lambda: names(view) == ["a", "d", "b", "c"])
    view.table.choose([four[1]])
    view.table.setFocus()
    qtbot.keyClick(view.table, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    qtbot.waitUntil(lambda: names(view) == ["a", "b", "d", "c"])
    qtbot.keyClick(view.table, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    qtbot.waitUntil(lambda: names(view) == ["a", "d", "b", "c"])
    # Turned around, the last of the queue is on top; a drop means what it looks like.
    view.table.sortByColumn(RunColumn.STARTED, Qt.SortOrder.AscendingOrder)
    assert names(view) == ["c", "b", "d", "a"]
    drop(view, [four[0]], 1)
    qtbot.waitUntil(lambda: names(view) == ["c", "a", "b", "d"])


def test_a_drop_beside_no_queued_run_does_nothing(qtbot: QtBot, context: Context, workspace: Workspace):
    done = [workspace.runs.create(config.Run(name=f"done {n}"), status="stopped") for n in range(3)]
    waits = workspace.runs.create(config.Run(name="waits"), status="queued")
    view = show(qtbot, context, 4)
    assert view.table.place_at(3, [waits]) is None
    assert not view.table.shown.index(3, 0).flags() & Qt.ItemFlag.ItemIsDragEnabled
    assert view.table.shown.index(0, 0).flags() & Qt.ItemFlag.ItemIsDragEnabled
    assert done


def test_repeat_queues_a_grid_of_the_chosen_run(qtbot: QtBot, context: Context, workspace: Workspace, four: list[int]):
    original = workspace.runs.create(config.Run(name="base", objective=config.Cloob()), status="stopped")
    view = show(qtbot, context, 5)
    view.table.choose([original])
    view.actions_of_runs["repeat"].trigger()
    qtbot.waitUntil(lambda: view.findChild(Repeat) is not None)
    sheet = view.findChild(Repeat)
    sheet.seeds.selectAll()
    qtbot.keyClicks(sheet.seeds, "0-1")
    qtbot.keyClicks(sheet.fields["beta"], "4, x")
    assert not sheet.confirm.isEnabled(), "a value that is no number is named"
    sheet.fields["beta"].clear()
    qtbot.keyClicks(sheet.fields["beta"], "4, 16")
    sheet.priority.set_value(3)
    sheet.after.setCurrentIndex(sheet.after.place_of(four[0]))
    assert "4 runs will wait" in sheet.message.text()
    words = ["--seeds", "0", "1", "--grid", "beta=4,16", "--priority", "3", "--after", str(four[0])]
    assert sheet.command() == ["queue", "add", "--run", str(original), *words]
    qtbot.mouseClick(sheet.confirm, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(view.table.runs.runs) == 9)

    def queued() -> list:
        return [run for run in context.jobs.runs if run.parent == original]

    # Their places in the queue are written after the runs themselves.
    qtbot.waitUntil(lambda: all(run.priority == 3 for run in queued()), timeout=10_000)
    made = queued()
    assert made[0].name == "base, beta 4, seed 0"
    assert {(run.priority, run.after, run.status) for run in made} == {(3, four[0], "queued")}


def test_repeat_makes_an_experiment_of_a_grid_and_runs_of_seeds_alone(
    qtbot: QtBot, context: Context, workspace: Workspace
):
    data = config.Scenes(train_pairs=64, heldout_pairs=16)
    base = config.Run(name="base", objective=config.Cloob(), data=data)
    original = workspace.runs.create(base, status="stopped")
    view = show(qtbot, context, 1)
    view.table.choose([original])
    view.actions_of_runs["repeat"].trigger()
    qtbot.waitUntil(lambda: view.findChild(Repeat) is not None)
    sheet = view.findChild(Repeat)
    sheet.seeds.setText("1-2")
    assert sheet.experiment() is None, "seeds alone compare nothing"
    assert "2 runs will wait in the queue" in sheet.message.text()
    sheet.fields["beta"].setText("4, 16")
    assert "4 runs of the experiment base, 2 arms over 2 seeds," in sheet.message.text()
    sheet.priority.set_value(1)
    assert "experiment" not in sheet.message.text(), "an experiment takes its own turn"
    sheet.priority.set_value(0)
    qtbot.mouseClick(sheet.confirm, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(view.table.runs.runs) == 5)
    (row,) = workspace.experiments.all()
    assert (row.name, row.state) == ("base", "going")
    made = [(run.arm, workspace.runs.config_of(run.id).seed) for run in workspace.runs.of_experiment("base")]
    assert made == [("beta 4", 1), ("beta 16", 1), ("beta 4", 2), ("beta 16", 2)]


def test_turn_branch_and_slots_do_what_they_say(
    qtbot: QtBot, context: Context, workspace: Workspace, four: list[int], monkeypatch: pytest.MonkeyPatch
):
    view = show(qtbot, context, 4)
    # The pointer rests over the rows, as it does after a click: other news wait, the queue arranged anew does not.
    QApplication.sendEvent(view.table.viewport(), QEvent(QEvent.Type.Enter))
    view.table.choose([four[2]])
    view.actions_of_runs["queue-turn"].trigger()
    turn = view.findChild(QueueSheet)
    assert turn.focusWidget() is turn.priority
    turn.priority.set_value(1)
    turn.accept()
    qtbot.waitUntil(lambda: names(view)[0] == "c")
    view.actions_of_runs["queue-slots"].trigger()
    qtbot.waitUntil(lambda: view.findChild(SlotsSheet) is not None)
    slots = view.findChild(SlotsSheet)
    assert slots.focusWidget() is slots.cpu, "typed numbers change the first field"
    assert slots.held.isChecked()
    slots.cpu.set_value(2)
    slots.accept()
    qtbot.waitUntil(lambda: context.jobs.slots.cpu == 2)
    branched: list[tuple[int, int, str]] = []
    monkeypatch.setattr(context.jobs, "do", lambda _action, run, step, name, done: branched.append((run, step, name)))
    with RunLog.claim(workspace, workspace.runs.create(config.Run(name="old"))) as log:
        for step in (10, 20):
            log.checkpoint(step, log.folder / "checkpoints" / f"step_{step:06d}")
        log.status("finished")
    old = log.run.id
    qtbot.waitUntil(lambda: view.table.runs.rowCount() == 5)
    view.table.choose([old])
    view.actions_of_runs["branch"].trigger()
    qtbot.waitUntil(lambda: view.findChild(Branch) is not None)
    sheet = view.findChild(Branch)
    assert sheet.focusWidget() is sheet.step
    sheet.step.setCurrentIndex(1)
    qtbot.mouseClick(sheet.confirm, Qt.MouseButton.LeftButton)
    assert branched == [(old, 10, "old from step 10")]


def test_pause_save_evaluate_and_stop_after_the_epoch_reach_the_trainer(
    qtbot: QtBot, context: Context, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("trainer.store.run_log.ASKED_S", 0.0)
    run = workspace.runs.create(config.Run(name="busy"))
    with RunLog.claim(workspace, run) as log:
        view = show(qtbot, context, 1)
        view.table.choose([run])
        for name, wish in (("save", "save"), ("evaluate", "evaluate"), ("pause", "pause")):
            view.actions_of_runs[name].trigger()
            qtbot.waitUntil(lambda wish=wish: log.asked() == wish)
        log.status("paused")
        qtbot.waitUntil(lambda: context.jobs.run(run).status == "paused")
        view.actions_of_runs["resume"].trigger()
        qtbot.waitUntil(lambda: log.asked() == "")
        log.status("running")
        qtbot.waitUntil(lambda: context.jobs.run(run).status == "running")
        view.actions_of_runs["stop-epoch"].trigger()
        qtbot.waitUntil(lambda: log.asked() == "stop-epoch")
        log.status("stopped")


def test_an_alert_is_a_badge_with_a_sentence_and_is_announced_once(
    qtbot: QtBot, context: Context, workspace: Workspace
):
    told: list[str] = []
    context.jobs.alerted.connect(lambda run, kind: told.append(kind))
    run = workspace.runs.create(config.Run(name="busy"))
    with RunLog.claim(workspace, run) as log:
        view = show(qtbot, context, 1)
        log.alert("diverging", "The loss rises.", 40)
        index = view.table.shown.index(0, RunColumn.STATUS)
        qtbot.waitUntil(lambda: index.data() == "Diverging")
        assert "The loss rises." in index.data(Qt.ItemDataRole.ToolTipRole)
        log.headline(0.1, 0.1)
        qtbot.waitUntil(lambda: context.jobs.run(run).last == 0.1)
        log.all_clear("diverging")
        qtbot.waitUntil(lambda: index.data() == "Running")
        assert told == ["diverging"]
        log.status("stopped")


def test_a_trainer_without_a_sign_of_life_is_called_stalled(
    qtbot: QtBot, context: Context, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs_room, "STALLED_S", 0.3)
    told: list[str] = []
    context.jobs.alerted.connect(lambda run, kind: told.append(kind))
    run = workspace.runs.create(config.Run(name="hangs"))
    with RunLog.claim(workspace, run) as log:
        show(qtbot, context, 1)
        qtbot.waitUntil(lambda: told == ["stalled"], timeout=5_000)
        qtbot.wait(300)
        assert told == ["stalled"]
        log.status("stopped")


@pytest.mark.slow
def test_seeds_are_read_and_nonsense_is_named():
    assert parse_seeds("0, 2-4; 7") == (0, 2, 3, 4, 7)
    assert parse_seeds("") == ()
    for text in ("x", "-1", "1-", "0-9999"):
        with pytest.raises(ConfigError):
            parse_seeds(text)


# -- the window ------------------------------------------------------------------------------------------------


@pytest.fixture
def open_window(window_of, qtbot: QtBot, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Window]:
    """Open the window with the Runs view alone, and wait for the first poll."""
    from explorer.views import VIEWS

    monkeypatch.setattr(jobs_room, "POLL_MS", 60)
    monkeypatch.setattr(jobs_room, "IDLE_POLL_MS", 120)

    def open_one() -> Window:
        window: Window = window_of(workspace.folder, tuple(place for place in VIEWS if place.name == "runs"))
        if workspace.runs.all():
            qtbot.waitUntil(lambda: bool(window.services.jobs.runs), timeout=2_000)
        return window

    return open_one


@few_plain(1, "by", ["status", "banner"])
def test_the_window_shows_what_starts_soon_and_holds_it(
    by: str, qtbot: QtBot, open_window, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs_room, "NOTICE_S", 500.0)
    monkeypatch.setattr(queue, "start_due", lambda _: pytest.fail("a run was started"))
    queue.choose_slots(workspace, cpu=2, gpus=[], held=False)
    for name in ("a", "b", "c"):
        workspace.runs.create(config.Run(name=name), status="queued")
    window = open_window()
    words, hold = window.findChild(QLabel, "statusStart"), window.findChild(QToolButton, "statusHold")
    qtbot.waitUntil(words.isVisible, timeout=8_000)
    assert words.text().startswith("2 runs start in ")
    assert window.banner.message.text() == QUEUE_WAITS
    first = window.banner.next.text()
    assert re.fullmatch(r"2 runs start in \d+ s\.", first)
    qtbot.waitUntil(lambda: window.banner.next.text() != first, timeout=90_000)
    qtbot.mouseClick(hold if by == "status" else window.banner.action, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not words.isVisible(), timeout=8_000)
    assert queue.slots(workspace).held
    assert window.banner.message.text() == "The queue is held: nothing in it starts."
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(words.isVisible, timeout=8_000)
    assert not queue.slots(workspace).held
    assert not window.banner.amend(QUEUE_WAITS, ""), "it was told once"


def test_the_banner_goes_when_the_queue_starts(
    qtbot: QtBot, open_window, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    started = []
    monkeypatch.setattr(jobs_room, "NOTICE_S", 2.0)
    monkeypatch.setattr(queue, "start_due", lambda _: started.append(window.banner.isVisible()) or [])
    queue.choose_slots(workspace, cpu=1, gpus=[], held=False)
    workspace.runs.create(config.Run(name="a"), status="queued")
    window = open_window()
    qtbot.waitUntil(lambda: window.banner.message.text() == QUEUE_WAITS, timeout=90_000)
    qtbot.waitUntil(lambda: bool(started), timeout=90_000)
    qtbot.waitUntil(lambda: not window.banner.isVisible(), timeout=90_000)


def press(qtbot: QtBot, window: Window, choice: str, *, remember: bool = False) -> None:
    qtbot.waitUntil(lambda: window.findChild(close_dialog.CloseDialog) is not None)
    dialog = window.findChild(close_dialog.CloseDialog)
    dialog.findChild(QCheckBox, "leaving-remember").setChecked(remember)
    qtbot.mouseClick(dialog.findChild(QPushButton, f"leaving-{choice}"), Qt.MouseButton.LeftButton)


def by_its_own_button(window: Window) -> None:
    """Close the window as the desktop does."""
    QApplication.sendEvent(window, QCloseEvent())


def test_a_window_with_nothing_under_way_closes_without_a_question(qtbot: QtBot, open_window):
    window = open_window()
    by_its_own_button(window)
    qtbot.waitUntil(lambda: not window.isVisible())


def test_closing_asks_before_an_export_is_lost(qtbot: QtBot, open_window, monkeypatch: pytest.MonkeyPatch):
    window = open_window()
    qtbot.waitUntil(lambda: window.job_center is not None)
    window.job_center.jobs._begin("export", "Export", "map.pdf")
    window.settings.set(close_dialog.KEY, "keep")
    by_its_own_button(window)
    qtbot.waitUntil(lambda: window.findChild(close_dialog.CloseDialog) is not None)
    dialog = window.findChild(close_dialog.CloseDialog)
    labels = [label.text() for label in dialog.findChildren(QLabel)]
    assert labels == ["Not finished, and will be lost: Export of map.pdf."]
    assert [button.text() for button in dialog.findChildren(QPushButton) if button.isVisible()] == [
        *("Close anyway", "Cancel")
    ]
    press(qtbot, window, "stay")
    qtbot.wait(50)
    assert window.isVisible()
    monkeypatch.setattr(queue, "keep_going_detached", lambda _workspace: pytest.fail("the queue is not touched"))
    window.leave()
    press(qtbot, window, "keep")
    qtbot.waitUntil(lambda: not window.isVisible())


def test_a_watch_is_named_as_a_watch_when_the_window_closes(qtbot: QtBot, open_window, workspace: Workspace):
    """It was a run that is training and can be resumed."""
    number = workspace.runs.create(config.run_elsewhere("theirs", config.NoData(called="val", source="/logs")))
    workspace.runs.add_facts(number, {WATCHED: "/logs"})
    with RunLog.claim(workspace, number) as log:
        log.progress(step=30, total_steps=120, phase="watching")
        window = open_window()
        qtbot.waitUntil(lambda: any(run.active for run in window.jobs.runs))
        by_its_own_button(window)
        qtbot.waitUntil(lambda: window.findChild(close_dialog.CloseDialog) is not None)
        dialog = window.findChild(close_dialog.CloseDialog)
        assert [label.text() for label in dialog.findChildren(QLabel)] == [
            "The watch continues.",
            "New values are recorded in the background.",
            "The other program trains on; it can be watched again.",
        ]
        assert dialog.buttons["stop"].text() == "Stop watching"
        press(qtbot, window, "stay")
    assert close_dialog.sentence(1, 0, 2) == "1 run is training and 2 watches continue."


def test_closing_asks_and_does_as_told_and_remembers(
    qtbot: QtBot, open_window, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    kept: list[Workspace] = []
    rested: list[Workspace] = []
    monkeypatch.setattr(queue, "keep_going_detached", lambda workspace: kept.append(workspace) or 1)
    monkeypatch.setattr(queue, "rest", rested.append)
    busy = workspace.runs.create(config.Run(name="busy"))
    waits = workspace.runs.create(config.Run(name="waits"), status="queued")
    with RunLog.claim(workspace, busy) as log:
        window = open_window()
        qtbot.waitUntil(lambda: window.services.jobs.run(busy).status == "running")
        by_its_own_button(window)
        press(qtbot, window, "stay")
        qtbot.wait(50)
        assert window.isVisible()
        window.leave()
        press(qtbot, window, "keep", remember=True)
        qtbot.waitUntil(lambda: not window.isVisible())
        assert len(kept) == 1, "what waits is left to a process of its own"
        assert log.asked() == ""
        again = open_window()
        assert again.settings.value(close_dialog.KEY) == "keep"
        again.findChild(QAction, "askAgain").trigger()
        again.leave()
        press(qtbot, again, "stop")
        qtbot.waitUntil(lambda: not again.isVisible())
        assert workspace.runs.asked(busy) == "stop"
        assert len(rested) == 1, "nor does a process of an earlier window start what waits"
        log.status("stopped")
    assert workspace.runs.get(waits).status == "queued"


def test_the_next_window_tells_what_ended_meanwhile_and_why(qtbot: QtBot, open_window, workspace: Workspace):
    good, bad = (workspace.runs.create(config.Run(name=name)) for name in ("good", "bad"))
    first, second = RunLog.claim(workspace, good), RunLog.claim(workspace, bad)
    second.memory = lambda: {"rss_mib": 1234.0}
    second.progress(step=70, total_steps=100, phase="training")
    window = open_window()
    qtbot.waitUntil(lambda: all(run.status == "running" for run in window.services.jobs.runs))
    window.close()
    with first as log:
        log.status("finished")
    (second.folder / "log.txt").write_text("step 70 of 100\n")
    # As a kill: the lock goes, nothing is said.
    second._lock.release()
    again = open_window()
    banner = again.banner
    qtbot.waitUntil(lambda: "no window was open" in banner.message.text(), timeout=5_000)
    assert "good finished" in banner.message.text()
    assert "bad was interrupted at step 70" in banner.message.text()
    assert "1,234 MiB" in banner.next.text()
    assert "step 70 of 100" in banner.next.text()
    again.close()
    third = open_window()
    qtbot.wait(300)
    assert "no window was open" not in third.banner.message.text(), "told once"


def test_an_alert_comes_as_a_banner_and_the_popover_names_the_job(qtbot: QtBot, open_window, workspace: Workspace):
    run = workspace.runs.create(config.Run(name="busy"))
    with RunLog.claim(workspace, run) as log:
        window = open_window()
        log.alert("tau", "1/tau is 100, at its limit of 100.", 40)
        qtbot.waitUntil(lambda: "emperature at its limit" in window.banner.message.text())
        assert "limit of 100" in window.banner.next.text()
        qtbot.mouseClick(window.status.findChild(QToolButton, "statusLoad"), Qt.MouseButton.LeftButton)
        monitor = window.findChild(DeviceMonitor)
        assert monitor.isVisible()
        qtbot.waitUntil(lambda: "CLIP · busy" in dict(monitor.lines()), timeout=5_000)
        assert {"Processor", "Memory", "Disk"} <= set(dict(monitor.lines()))
        monitor.hide()
        log.status("stopped")
