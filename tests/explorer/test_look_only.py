"""The window of a workspace that is not this user's own."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from explorer.run_control import actions
from explorer.views import VIEWS
from explorer.window import Window
from trainer import config
from trainer.scheduling import launch, queue
from trainer.store import RunLog, Workspace


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Workspace]:
    """Return the copy of a workspace with a run marked as training, and one that waits."""
    original = Workspace(tmp_path / "original")
    with RunLog.claim(original, original.runs.create(config.Run(name="elsewhere"))) as log:
        log.scalars(1, {"train/loss": 1.0})
        log.status("stopped")
    original.runs.change(1, status="running")
    original.runs.create(config.Run(name="waits"), status="queued")
    original.close()
    shutil.copytree(original.folder, tmp_path / "copy")
    opened = Workspace(tmp_path / "copy")
    yield opened
    opened.close()


@pytest.fixture
def window(window_of, qtbot: QtBot, foreign: Workspace, monkeypatch: pytest.MonkeyPatch) -> Window:
    monkeypatch.setattr(launch, "spawn", lambda *_, **__: pytest.fail("a trainer was started"))
    made: Window = window_of(foreign.folder, [place for place in VIEWS if place.name in ("runs", "experiments")])
    qtbot.waitUntil(lambda: bool(made.services.jobs.runs), timeout=20_000)
    return made


def statuses(workspace: Workspace) -> list[str]:
    return [run.status for run in workspace.runs.all()]


def test_a_copied_workspace_is_shown_and_trains_nothing_until_it_is_made_mine(
    qtbot: QtBot, window: Window, foreign: Workspace
):
    jobs, banner = window.services.jobs, window.banner
    status = window.findChild(QToolButton, "statusLookOnly")
    qtbot.waitUntil(banner.isVisible, timeout=20_000)
    assert banner.message.text() == "Read-only: it is a copy of another workspace."
    assert status.isVisible()
    assert "copy" in status.toolTip()
    assert [run.name for run in jobs.runs] == ["elsewhere", "waits"]
    # What a person asks for all the same is answered by the same banner, and does nothing.
    banner.hide()
    jobs.do(actions.create_demo)
    qtbot.waitUntil(banner.isVisible, timeout=20_000)
    with qtbot.waitSignal(jobs.failed, timeout=20_000):
        jobs.do(launch.start_detached, 1)
    jobs.reconciled_at = float("-inf")
    with qtbot.waitSignal(jobs.poll_timer.timeout, timeout=20_000):
        jobs.poll()
    assert statuses(foreign) == ["running", "queued"]
    tags, home = window.inspector.pair_actions, window.pages.views["experiments"]
    others = [window.menus.actions.by_name()["saveView"], home.repeat, home.bring, home.first_start.ways["scenes"]]
    reason = f"This workspace is read-only: {jobs.look_only}"
    assert (tags.isEnabled(), tags.name.toolTip()) == (False, reason)
    assert [(other.isEnabled(), other.toolTip()) for other in others] == [(False, reason)] * 4
    assert home.first_start.ways["scenes"].detail == "This workspace is read-only", "the rest is in the tool tip"
    banner.hide()
    qtbot.mouseClick(status, Qt.MouseButton.LeftButton)
    assert banner.isVisible()

    qtbot.mouseClick(banner.findChild(QPushButton, "bannerAction"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: banner.message.text() == "This workspace is yours.", timeout=20_000)
    assert "1 run waits in its queue, which is held" in banner.next.text()
    qtbot.waitUntil(lambda: not status.isVisible(), timeout=20_000)
    assert tags.isEnabled()
    assert all(other.isEnabled() and other.toolTip() != reason for other in others)
    assert "Map lists it" in tags.name.toolTip()
    jobs.reconciled_at = float("-inf")
    jobs.poll()
    # Its trainer is none of this computer's; the queue waits for the person.
    qtbot.waitUntil(lambda: statuses(foreign) == ["interrupted", "queued"], timeout=20_000)
    assert queue.slots(foreign).held


def test_a_look_only_window_closes_without_a_question(qtbot: QtBot, window: Window):
    window.leave()
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=20_000)
