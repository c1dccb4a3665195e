"""The time machine in its real widgets: what it asks, what it shows, and the way from a curve to a replay."""

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication

from explorer.views import VIEWS
from explorer.views.explaining import ExplainingView
from explorer.widgets.curves import CurveGrid, CurveLine, CurvePlotData
from tests.explorer.widgets import add_widget
from trainer.charts.marks import Axis
from trainer.messages import Failure, ReplayStep, ReplayStepAnswer
from trainer.store.replay_records import ReplayRecord, write_replay


class Answers:
    """Stand in for the process: questions are recorded, and answered by the test."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.cancelled: list[int] = []

    def ask(self, question, **callbacks) -> int:
        self.asked.append(question)
        self.done, self.failed, self.progress = (callbacks[name] for name in ("done", "failed", "progress"))
        return len(self.asked)

    def cancel(self, number: int) -> None:
        self.cancelled.append(number)


@pytest.fixture
def view(qtbot, show_view) -> ExplainingView:
    made = show_view(ExplainingView, 1100, 760)
    qtbot.waitUntil(lambda: not made.busy and made.pane.answer is not None, timeout=8000)
    return made


@pytest.fixture
def answers(view: ExplainingView, monkeypatch) -> Answers:
    found = Answers()
    monkeypatch.setattr(view.context.client, "ask", found.ask)
    monkeypatch.setattr(view.context.client, "cancel", found.cancel)
    return found


def record(step: int) -> ReplayRecord:
    rows = np.eye(3, dtype=np.float32)
    words = ("a", "b", "c")
    return ReplayRecord(step, 0, 20, 0.5, words, words, ("CLIP",), np.ones((1, 3)), (1.0,), (rows, rows), (rows, rows))


def test_a_step_is_replayed_with_progress_and_shown(qtbot, view: ExplainingView, answers: Answers, two_runs):
    machine = view.time_machine
    assert not machine.isVisible()
    view.open_chart("replayed-step")
    assert machine.again.isVisible()
    qtbot.waitUntil(lambda: not view.busy, timeout=8000)
    machine.step.setFocus()
    machine.step.lineEdit().setText("7")
    qtbot.mouseClick(machine.again, Qt.MouseButton.LeftButton)
    assert answers.asked == [ReplayStep(run=two_runs[0], step=7)]
    assert not machine.again.isEnabled()
    answers.progress(0.5, "Making update 5 again")
    qtbot.waitUntil(lambda: "Making update 5 again" in machine.working.note.text(), timeout=8000)
    write_replay(view.context.workspace.runs.get(two_runs[0]).folder, record(7))
    answers.done(ReplayStepAnswer(step=7, began=0, verified=20))
    qtbot.waitUntil(lambda: not view.busy and "step 7: loss 0.5" in str(view.pane.panel.panel.head), timeout=8000)
    assert machine.again.isEnabled()
    assert not machine.busy


def test_what_was_not_asked_of_a_run_is_a_button(qtbot, view: ExplainingView, answers: Answers, two_runs):
    write_replay(view.context.workspace.runs.get(two_runs[0]).folder, record(7))
    view.open_chart("replayed-step")
    note, name = view.pane.area.note, view.context.workspace.runs.get(two_runs[1]).name
    qtbot.waitUntil(lambda: note.isVisible() and not view.busy, timeout=8000)
    assert (note.words.text(), note.button.text()) == (f"No step of {name} was replayed yet.", "Replay the step of B")
    assert not view.pane.warnings.isVisible(), "no command where a button does it"
    view.time_machine.step.lineEdit().setText("5")
    note.button.click()
    assert answers.asked[-1] == ReplayStep(run=two_runs[1], step=5)
    assert view.pane.area.kind == "ready", "nothing is offered while it is asked"
    view.time_machine.working.cancel()
    answers.failed(Failure("cancelled", "Cancelled."))
    assert (view.pane.area.kind, note.button.text()) == ("partial", "Replay the step of B")


def test_it_is_cancelled_and_a_failure_is_told(qtbot, view: ExplainingView, answers: Answers):
    view.open_chart("replayed-step")
    machine = view.time_machine
    machine.replay(1, 3)
    machine.working.cancel()
    assert answers.cancelled == [1]
    answers.failed(Failure("cancelled", "Cancelled."))
    assert machine.again.isEnabled()
    machine.replay(1, 3)
    with qtbot.waitSignal(view.failed) as told:
        answers.failed(Failure("unreadable", "It differs from its checkpoint.", "Replay it there."))
    assert told.args == ["It differs from its checkpoint.", "Replay it there."]
    machine.step.lineEdit().setText("x")
    with qtbot.waitSignal(view.failed) as told:
        qtbot.mouseClick(machine.again, Qt.MouseButton.LeftButton)
    assert "not a whole number" in told.args[0]
    assert len(answers.asked) == 2


def test_another_question_goes_on_when_the_one_before_says_that_it_was_cancelled(
    view: ExplainingView, answers: Answers, two_runs
):
    view.open_chart("replayed-step")
    machine = view.time_machine
    machine.replay(two_runs[0], 3)
    before = answers.failed
    machine.replay(two_runs[0], 4)
    assert answers.cancelled == [1]
    before(Failure("cancelled", "Cancelled."))
    assert machine.busy
    assert not machine.again.isEnabled()
    answers.failed(Failure("cancelled", "Cancelled."))
    assert not machine.busy


def test_a_right_click_on_a_curve_offers_the_nearest_step(qtbot):
    grid = add_widget(qtbot, CurveGrid(), 500, 300)
    x = np.array([1.0, 5.0, 9.0])
    line = CurveLine(3, "clip", "#0072b2", x, x, x)
    grid.show_panels([CurvePlotData("loss", "Loss", "", 3, (line,))], Axis("step", 0, 1))
    grid.show()
    qtbot.waitUntil(lambda: grid.is_complete)
    plot = grid.plots["loss"].plot
    qtbot.wait(50)
    box = plot.getViewBox()
    where = plot.mapFromScene(box.mapViewToScene(box.viewRect().center()))
    with qtbot.waitSignal(grid.menu_asked) as told:
        event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, where, plot.viewport().mapToGlobal(where))
        QApplication.sendEvent(plot.viewport(), event)
    assert told.args[1] == {3: 5.0}
    # The menu key asks at the crosshair.
    plot.setFocus()
    qtbot.keyClick(plot, Qt.Key.Key_Right)
    grid.plots["loss"].point_at(9.0)
    with qtbot.waitSignal(grid.menu_asked) as told:
        QApplication.sendEvent(plot, QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(2, 2), QPoint(2, 2)))
    assert told.args[1] == {3: 9.0}


def test_the_window_goes_from_the_curve_to_the_replay(window_of, qtbot, two_runs, tmp_path: Path, monkeypatch):
    window = window_of(tmp_path / "workspace", [entry for entry in VIEWS if entry.name in ("runs", "explaining")])
    runs = window.pages.views["runs"]
    window.selection.select_runs(two_runs[1], two_runs[0])
    found = Answers()
    monkeypatch.setattr(window.services.client, "ask", found.ask)
    monkeypatch.setattr(window.services.client, "cancel", found.cancel)
    pane = runs.curves
    qtbot.waitUntil(lambda: len(pane._runs) == 2, timeout=30_000)
    pane._show_menu(QPoint(10, 10), {two_runs[0]: 12.0, two_runs[1]: 0.0})
    (action,) = pane.menu_of_point.actions()
    assert action.text().startswith("Replay this step (12")
    action.trigger()
    pane.menu_of_point.close()
    qtbot.waitUntil(lambda: bool([q for q in found.asked if isinstance(q, ReplayStep)]), timeout=30_000)
    assert ReplayStep(run=two_runs[0], step=12) in found.asked
    assert window.selection.run_a == two_runs[0]
    assert window.selection.run_b == two_runs[1]
    assert window.selection.view == "explaining"
