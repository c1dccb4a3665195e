"""The state component: skeletons, old results while new ones are computed, error messages."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from explorer.views import PLACES
from explorer.views.geometry import GeometryView
from explorer.views.runs import RunsView
from explorer.widgets.progress_row import Cancelled, JobSlot, ProgressRow
from explorer.widgets.state_area import DIMMED_AFTER_MS, StateArea
from explorer.window.bar import READING, Bar
from explorer.window.picker_choices import PickerChoices
from explorer.window.view_menu import ViewMenu
from tests.explorer.widgets import add_widget, show_widget
from trainer.charts.snapshots import NoSnapshotYetError
from trainer.errors import UserError

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def area(qtbot: QtBot, dressed: QApplication) -> StateArea:
    return show_widget(qtbot, StateArea(QLabel("a result", objectName="result")), 600, 400)


def test_what_comes_by_itself_is_waited_for_without_a_warning(area: StateArea):
    area.failed("No map of this run", NoSnapshotYetError("It has no snapshot yet: wait."), retry=lambda: None)
    assert (area.kind, area.page.text.text()) == ("empty", "It has no snapshot yet: wait.")
    assert [button.text() for button in area.page.findChildren(QPushButton) if button.isVisible()] == []


def test_a_command_in_a_sentence_can_be_selected_with_the_mouse(area: StateArea):
    area.empty("info", "It is not read", 'Write it by python -c "print(1)"')
    assert area.page.text.textInteractionFlags() == Qt.TextInteractionFlag.TextSelectableByMouse


def test_nobody_has_looked_yet(area: StateArea):
    assert area.kind == "unknown"
    assert area.currentWidget().accessibleName() == "Loading"
    picture = area.grab().toImage()
    assert len({picture.pixel(x, 5) for x in range(0, 600, 5)}) > 1, "a skeleton is drawn"


def test_a_skeleton_stays_as_far_from_the_edges_as_the_content(dressed, qtbot: QtBot):
    grounds = []
    for inset in (0, 16):
        made = show_widget(qtbot, StateArea(QLabel("content"), inset=inset), 600, 400)
        picture = made.grab().toImage()
        grounds.append([picture.pixel(x, y) for x, y in ((9, 3), (590, 200), (300 - 100, 390))])
        inner = picture.pixel(300 - 100, 200)
        assert [pixel == inner for pixel in grounds[-1]] == [inset == 0] * 3


def test_a_skeleton_says_after_a_moment_what_is_waited_for(area: StateArea, qtbot: QtBot):
    skeleton = area.currentWidget()
    area.loading(what="Reading the pairs…")
    assert skeleton.line == "", "what is there sooner needs no words"
    bare = area.grab().toImage()
    qtbot.waitUntil(lambda: skeleton.line == "Reading the pairs…")
    assert area.grab().toImage() != bare
    view = add_widget(qtbot, QWidget())
    view.job_slot = JobSlot(view)
    area.setParent(view)
    working = ProgressRow("test-working", view)
    working.start("Computing Cosines")
    view.show()
    area.show()
    qtbot.waitUntil(lambda: skeleton.line == "Computing Cosines…")
    assert skeleton.accessibleDescription() == skeleton.line
    area.hide()
    assert skeleton.line == ""
    area.setParent(None)


def test_the_first_result_is_awaited_with_a_skeleton_and_the_next_with_the_old_one(area: StateArea, qtbot: QtBot):
    area.loading()
    qtbot.wait(DIMMED_AFTER_MS + 50)
    assert area.currentWidget().accessibleName() == "Loading"
    area.ready()
    bright = area.grab().toImage()
    area.loading()
    assert area.grab().toImage() == bright, "what is answered at once does not flicker"
    qtbot.waitUntil(lambda: area.grab().toImage() != bright)  # the old result is dimmed
    assert DIMMED_AFTER_MS < 150
    assert area.findChild(QLabel, "result").isVisible()
    area.ready()
    assert area.grab().toImage() == bright
    area.loading(keep=False)
    qtbot.wait(DIMMED_AFTER_MS + 50)
    assert area.currentWidget().accessibleName() == "Loading", "another question's result does not stay"


def test_empty_offers_what_fills_it(area: StateArea, qtbot: QtBot):
    done: list[str] = []
    action = QAction("Start the demo runs", area)
    action.triggered.connect(lambda: done.append("demo"))
    area.empty("info", "No run yet", "Train one.", action)
    qtbot.mouseClick(area.page.button, LEFT)
    assert (area.kind, done) == ("empty", ["demo"])


def test_a_double_click_does_not_cancel_what_its_first_click_began(area: StateArea, qtbot: QtBot):
    done: list[str] = []
    begin, cancel = QAction("Evaluate", area), QAction("Cancel", area)
    cancel.triggered.connect(lambda: done.append("cancelled"))
    begin.triggered.connect(lambda: area.page.show_message("loader", "Evaluating", "", cancel))
    area.empty("info", "Not evaluated yet", "", begin)
    qtbot.mouseClick(area.page.button, LEFT)
    qtbot.mouseClick(area.page.button, LEFT)
    assert (area.page.button.text(), done) == ("Cancel", [])
    assert area.page.button.property("role") != "primary"
    qtbot.wait(QGuiApplication.styleHints().mouseDoubleClickInterval() + 20)
    qtbot.mouseClick(area.page.button, LEFT)
    assert done == ["cancelled"]


def test_a_failure_is_a_sentence_with_repair_retry_and_details(area: StateArea, qtbot: QtBot):
    done: list[str] = []
    area.failed(
        "Could not train",
        UserError("42 pairs are fewer than a batch. Choose a smaller batch size."),
        retry=lambda: done.append("retry"),
        repair=("Use batch size 32", lambda: done.append("repair")),
    )
    assert area.page.text.text().startswith("42 pairs are fewer")
    assert [b.text() for b in area.page.buttons] == ["Use batch size 32", "Retry", "Copy details"]
    for button in area.page.buttons:
        qtbot.mouseClick(button, LEFT)
    assert done == ["repair", "retry"]
    assert "Could not train" in QApplication.clipboard().text()


def test_the_text_of_an_exception_is_in_the_details_only(area: StateArea, qtbot: QtBot):
    try:
        [][0]
    except IndexError as error:
        area.failed("Could not compute the saliency", error, retry=lambda: None)
    words = " ".join(label.text() for label in area.page.findChildren(QLabel))
    assert "IndexError" not in words
    assert "list index" not in words
    qtbot.mouseClick(area.page.other, LEFT)
    assert "IndexError: list index out of range" in QApplication.clipboard().text()
    assert "test_state_area.py" in area.details


def test_what_is_missing_and_what_is_old_stand_below_the_result_which_does_not_move(area: StateArea, qtbot: QtBot):
    done: list[str] = []
    result = area.findChild(QLabel, "result")
    area.ready()
    before = result.mapTo(area, result.rect().topLeft())
    area.partial("3 of 5 snapshots: two could not be read.", ("Retry", lambda: done.append("retry")))
    QApplication.processEvents()
    assert result.mapTo(area, result.rect().topLeft()) == before
    assert area.note.y() > result.y()
    assert area.note.words.text().startswith("3 of 5")
    assert area.findChild(QLabel, "result").isVisible()
    qtbot.mouseClick(area.note.button, LEFT)
    area.stale("Cancelled. The previous result is shown.")
    assert area.kind == "stale"
    assert not area.note.button.isVisible()
    area.ready()
    assert not area.note.isVisible()
    assert done == ["retry"]


def test_progress_and_cancel_have_one_place(qtbot: QtBot, make_context):
    view = show_widget(qtbot, GeometryView(make_context()))
    first, second = ProgressRow("first", view.pane), ProgressRow("second", view)
    tickets = [first.start(), second.start()]
    qtbot.waitUntil(second.isVisible)
    assert view.job_slot.isAncestorOf(first)
    assert view.job_slot.isAncestorOf(second)
    assert not first.isVisible(), "the newest is in front"
    qtbot.mouseClick(second.button, LEFT)
    qtbot.waitUntil(first.isVisible)
    tickets[0](0.5, "counting")
    with pytest.raises(Cancelled):
        tickets[1](0.5, "too late")
    first.end()
    assert not first.isVisible()


def test_before_the_store_is_read_nobody_says_that_there_is_no_run(qtbot: QtBot, make_context):
    context = make_context()
    bar = Bar(context.selection, ViewMenu(PLACES))
    views = [RunsView(context), GeometryView(context)]
    for widget in (bar, *views):
        qtbot.addWidget(widget)
        widget.show()
    bar.show_facts(PickerChoices())
    assert [view.area.kind for view in views] == ["unknown", "unknown"]
    assert {picker.placeholderText() for picker in (bar.run_a, bar.run_b, bar.dataset)} == {READING}
    context.jobs.runs_changed.connect(bar.show_runs)
    context.jobs.poll()
    qtbot.waitUntil(lambda: all(view.area.kind == "empty" for view in views))
    assert bar.run_a.placeholderText() == "No run yet"
    assert bar.dataset.placeholderText() == "No snapshots yet"


def test_a_chart_that_fails_keeps_its_tabs_and_can_be_retried(qtbot: QtBot, make_context, two_runs, monkeypatch):
    from explorer.views import chart_pane

    context, real, fails = make_context(), chart_pane.answer, [True]

    def answer(*arguments):
        if fails:
            raise UserError("The snapshot is damaged. Train again.")
        return real(*arguments)

    monkeypatch.setattr(chart_pane, "answer", answer)
    view = add_widget(qtbot, GeometryView(context))
    context.selection.propose(run_a=two_runs[0], run_b=two_runs[1])
    view.show()
    area = view.pane.area
    qtbot.waitUntil(lambda: area.kind == "failed")
    assert area.page.text.text() == "The snapshot is damaged. Train again."
    menu = view.main.itemAt(0).widget()
    assert menu.text().strip() == view.chart.label, "the charts stay within reach"
    fails.clear()
    qtbot.mouseClick(area.page.button, LEFT)
    qtbot.waitUntil(lambda: area.kind == "ready" and not view.busy)
    assert view.command() is not None
