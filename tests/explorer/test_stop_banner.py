"""Messages about runs that do not stop, their timing and text; no trainer is started here."""

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from explorer.event_loop.background import Background
from explorer.run_control import actions, stop_timeout
from explorer.run_control.actions import Responsiveness
from explorer.widgets.banner import Banner
from explorer.window import stop_banner
from explorer.window.stop_banner import StopBanner, next_words, resume_words
from trainer import config
from trainer.store import RunRow, Workspace


def unresponsive(kept: int | None = 120, left_s: float | None = 12.0, *, busy: str = "") -> stop_timeout.Unresponsive:
    return stop_timeout.Unresponsive(kept, left_s, busy)


def row(number: int, name: str, **more: object) -> RunRow:
    values = dict.fromkeys(RunRow.__dataclass_fields__) | {"id": number, "name": name}
    return RunRow(**{**values, **more})


class FakeJobs(QObject):
    """Jobs whose run states the test sets; all terminations are this window's."""

    became_unresponsive = Signal(object)
    runs_changed = Signal(list)

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, stop_timeout.Unresponsive] = {}
        self.ended: list[int] = []

    def unresponsive(self, run: int) -> stop_timeout.Unresponsive | None:
        return self.known.get(run)

    def was_forced(self, _row: RunRow) -> bool:
        return True

    def end(self, run: int) -> None:
        self.ended.append(run)

    def let_go_on(self, runs: list[int]) -> None:
        for run in runs:
            self.known[run] = dataclasses.replace(self.known[run], left_s=None)


class Told:
    """The real banner over a text field, with its reporter of runs."""

    def __init__(self, qtbot: QtBot, background: Background) -> None:
        self.window = QWidget()
        qtbot.addWidget(self.window)
        self.field = QLineEdit(self.window)
        self.banner, self.jobs = Banner(self.window), FakeJobs()
        self.on_the_desktop: list[str] = []
        desktop = SimpleNamespace(show_message=lambda title, _: self.on_the_desktop.append(title))
        context = SimpleNamespace(jobs=self.jobs, background=background, workspace=None)
        self.stopping = StopBanner(context, self.banner, desktop, self.window)
        self.window.resize(900, 500)
        self.window.show()

    def becomes_unresponsive(self, number: int, name: str, known: stop_timeout.Unresponsive | None = None) -> None:
        self.jobs.known[number] = known or unresponsive()
        self.jobs.became_unresponsive.emit(row(number, name))

    def is_ended(self, number: int, name: str) -> None:
        del self.jobs.known[number]
        self.jobs.runs_changed.emit([])
        assert self.stopping.show_end(row(number, name, status="interrupted"))

    @property
    def words(self) -> str:
        return self.banner.message.text() if self.banner.isVisible() else ""


@pytest.fixture
def told(dressed: QApplication, qtbot: QtBot, background: Background, monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.setattr(actions, "newest_checkpoint", lambda _workspace, run: 100 * run)
    return Told(qtbot, background)


def test_the_end_of_one_leaves_the_choice_that_is_left_for_the_other(told: Told, qtbot: QtBot) -> None:
    told.becomes_unresponsive(1, "one")
    told.becomes_unresponsive(2, "two")
    assert told.words == "one and two were asked to stop and are still running."
    told.is_ended(1, "one")
    qtbot.wait(2 * stop_banner.TICK_MS)
    assert told.words == "two was asked to stop and is still running."
    assert [told.banner.action.text(), told.banner.other.isVisible()] == ["End now", True]
    told.is_ended(2, "two")
    qtbot.waitUntil(lambda: told.words == "one and two did not stop and were ended.")
    assert told.banner.next.text() == "They can be resumed from steps 100 and 200."


def test_the_end_of_one_is_told_once_the_other_is_settled(told: Told, qtbot: QtBot) -> None:
    told.becomes_unresponsive(1, "one")
    told.becomes_unresponsive(2, "two")
    told.is_ended(1, "one")
    qtbot.waitUntil(lambda: told.stopping._untold)
    told.banner.other.click()
    assert told.words == "two will be stopped as soon as it responds."
    told.banner.dismiss.click()
    told.jobs.runs_changed.emit([])
    assert told.words == "one did not stop and was ended."


def test_who_is_waited_for_is_not_ended_with_the_next(told: Told) -> None:
    told.becomes_unresponsive(1, "one")
    told.banner.other.click()
    told.becomes_unresponsive(2, "two")
    assert told.words == "two was asked to stop and is still running."
    told.banner.action.click()
    assert told.jobs.ended == [2]


def test_what_was_closed_does_not_come_back_after_other_news(told: Told, qtbot: QtBot) -> None:
    told.becomes_unresponsive(1, "one")
    told.banner.dismiss.click()
    qtbot.wait(2 * stop_banner.TICK_MS)
    told.banner.show_message("Something else.")
    qtbot.wait(2 * stop_banner.TICK_MS)
    told.banner.dismiss.click()
    qtbot.wait(2 * stop_banner.TICK_MS)
    assert told.words == ""


def test_where_the_store_does_not_say_what_is_kept_nothing_is_made_up(
    told: Told, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError("the disk is gone")

    monkeypatch.setattr(actions, "newest_checkpoint", refuse)
    told.becomes_unresponsive(1, "one")
    told.is_ended(1, "one")
    qtbot.waitUntil(lambda: told.words == "one did not stop and was ended.")
    assert told.banner.next.text() == "It can be resumed in Runs."


def test_keys_on_a_button_do_not_do_what_another_message_puts_there(told: Told, qtbot: QtBot) -> None:
    done: list[str] = []
    told.field.setFocus()
    told.banner.show_message("three is deleted.", tone="info", action=("Undo", lambda: done.append("undo")))
    qtbot.keyClick(told.window, Qt.Key.Key_F6)
    assert told.window.focusWidget() is told.banner.action
    told.becomes_unresponsive(1, "one", unresponsive(left_s=None))
    assert told.banner.action.text() == "End now"
    qtbot.keyClick(told.window.focusWidget(), Qt.Key.Key_Space)
    assert (done, told.jobs.ended) == ([], [])
    # The same message told anew leaves the keys where they are.
    told.becomes_unresponsive(1, "one")
    qtbot.keyClick(told.window, Qt.Key.Key_F6)
    assert told.window.focusWidget() is told.banner.other
    told.becomes_unresponsive(2, "two")
    assert told.window.focusWidget() is told.banner.other


@pytest.fixture
def waiting(
    qapp: QApplication, background: Background, monkeypatch: pytest.MonkeyPatch
) -> Iterator[stop_timeout.StopTimeouts]:
    for name, short_ms in (("PATIENCE_MS", 30), ("LAST_MS", 30), ("SAVING_MS", 30)):
        monkeypatch.setattr(stop_timeout, name, short_ms)
    parent = QObject()
    made = stop_timeout.StopTimeouts(None, background, parent)
    yield made
    made.close()


def test_what_is_waited_for_is_told_once(
    qtbot: QtBot, waiting: stop_timeout.StopTimeouts, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats, seen, ends = itertools.count(), [], []

    def look(*_: object) -> Responsiveness:
        count = next(beats)
        return Responsiveness(120, measured=min(count, 6))

    monkeypatch.setattr(stop_timeout, "look", look)
    waiting.became_unresponsive.connect(lambda run: seen.append(waiting.of(run).busy))
    waiting.overdue.connect(ends.append)
    waiting.watch((row(1, "one", status="running", asked="stop", step=0, total_steps=9),))
    waiting.heard(1, by_signal=False)
    qtbot.waitUntil(lambda: bool(ends), timeout=20_000)
    assert next(beats) > 6
    assert seen == ["", "evaluating"]


@pytest.mark.parametrize(
    ("status", "eta_s", "step", "expected"),
    [
        ("running", None, 0, 15.0),
        ("running", 100.0, 0, 15.0),
        ("running", 4_000.0, 0, 120.0),
        ("running", 60.0, 99, 180.0),
        ("running", 1.0, 100, 15.0),
        ("paused", 28_800.0, 50, 15.0),  # what it estimates counts the pause
        ("running", 1e12, 50, (2**31 - 1) / 1000),
    ],
)
def test_slow_steps_are_given_time(status: str, eta_s: float | None, step: int, expected: float) -> None:
    slow = row(1, "slow", status=status, step=step, total_steps=100, eta_s=eta_s)
    assert stop_timeout.patience_ms(slow) == round(1_000 * expected)


WAITED = "and will be stopped after that."
SINCE = "since step 120, its last checkpoint."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("known", "words"),
    [
        (
            [unresponsive(None)],
            "It is ended in 12 s, which loses what it did since its last checkpoint, if it has one.",
        ),
        ([unresponsive(left_s=None)], f"It may be in a long step; ending it loses what it did {SINCE}"),
        ([unresponsive(left_s=0)], f"It is being ended, which loses what it did {SINCE}"),
        ([unresponsive(busy="writing its checkpoint")], f"It is writing its checkpoint, {WAITED}"),
        ([unresponsive(busy="evaluating")], f"It is evaluating, {WAITED}"),
        ([unresponsive(busy="evaluating"), unresponsive(busy="evaluating")], f"They are evaluating, {WAITED}"),
        (
            [unresponsive(busy="writing its checkpoint"), unresponsive()],
            f"B is ended in 12 s, which loses what it did {SINCE} A is writing its checkpoint, {WAITED}",
        ),
        (
            [unresponsive(left_s=None), unresponsive()],
            f"B is ended in 12 s, which loses what it did {SINCE} "
            f"A may be in a long step; ending it loses what it did {SINCE}",
        ),
        (
            [unresponsive(left_s=3), unresponsive()],
            "They are ended in 3 and 12 s, which loses what they did since their last checkpoints.",
        ),
        ([None], "It may be in a long step; ending it loses what it did since its last checkpoint."),
    ],
)
def test_the_words(known: list[stop_timeout.Unresponsive | None], words: str) -> None:
    assert next_words([*zip("AB", known, strict=False)]) == words


def test_the_words_of_the_end() -> None:
    assert resume_words([1_200]) == "It can be resumed from step 1,200."
    assert resume_words([None]) == "It had no checkpoint; resuming restarts it from step 0."
    assert resume_words([stop_banner.UNKNOWN]) == "It can be resumed in Runs."
    assert resume_words([None, 3]) == "They can be resumed in Runs."


@pytest.mark.slow
def test_what_a_look_tells(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "workspace")
    run = workspace.runs.create(config.Run(name="one"))
    assert actions.look(workspace, run, False) == Responsiveness()
    workspace.close()
