"""The Runs view: its table, curves, log, configuration and actions, through the real widgets."""

import contextlib
import math
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QItemSelectionModel, QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QRegion, QResizeEvent, QTextCursor, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMenu, QScrollArea, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from explorer import theme
from explorer.event_loop.background import Background
from explorer.intents import OpenSample, ShowExperiment
from explorer.models.runs import LETTERS_ROLE, SWATCH_ROLE, RunColumn, RunsModel, display_text
from explorer.run_control import stop_timeout
from explorer.state.view_link import ViewLink
from explorer.views.runs import RunsView
from explorer.views.runs.config_pane import ConfigPane
from explorer.views.runs.curves_pane import DEFAULT_METRICS
from explorer.views.runs.drawn_runs import DRAWN_AT_MOST
from explorer.views.runs.tag_sheets import NoteSheet, TagSheet
from explorer.views.view import Context
from explorer.widgets import curves
from explorer.widgets.curves import CurveGrid, CurveLine, CurvePlot, CurvePlotData, columns_for, read_at
from explorer.widgets.min_size_scroll import MinSizeScroll
from explorer.widgets.plot import EDGE_PX
from tests.explorer.widgets import add_widget, show_widget
from trainer import config
from trainer.analysis.smoothing import smooth
from trainer.charts.marks import Axis
from trainer.experiments.run_style import run_style
from trainer.scheduling import launch
from trainer.store import RunLog, Workspace
from trainer.store.results_table import ResultsTable
from trainer.trackers.import_curves import import_curves


def show(qtbot: QtBot, context: Context) -> RunsView:
    view = show_widget(qtbot, RunsView(context), 1280, 800)
    context.jobs.watch()
    return view


def log_steps(log: RunLog, steps: range, *, scale: float = 1.0) -> None:
    for step in steps:
        log.scalars(step, {"train/loss": scale * math.exp(-step / 50) + 0.01 * (step % 7)})
        if step % 10 == 0:
            log.scalars(step, {"val/image_to_text_R@1": step / 100, "val/text_to_image_R@1": step / 120})
    log.progress(step=steps[-1], total_steps=100, phase="training", eta_s=12.0)
    log.flush()


def finished(workspace: Workspace, run: config.Run, *, best: float | None = 0.5, status: str = "finished") -> int:
    number = workspace.runs.create(run, preset="clip-scenes")
    with RunLog.claim(workspace, number) as log:
        log_steps(log, range(1, 101), scale=5.0 if run.objective.kind == "clip" else 3.0)
        if best is not None:
            log.headline(best, best)
        log.status(status)
    return number


@pytest.fixture(scope="module")
def three_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with three runs that ended."""
    workspace = Workspace(tmp_path_factory.mktemp("three") / "workspace")
    finished(workspace, config.Run(name="clip small"), best=0.70)
    finished(workspace, config.Run(name="cloob small", objective=config.Cloob()), best=0.90)
    finished(workspace, config.Run(name="clip large", seed=1), best=None, status="stopped")
    workspace.close()
    return workspace.folder


@pytest.fixture
def three(workspace: Workspace, three_once: Path) -> list[int]:
    shutil.copytree(three_once, workspace.folder, dirs_exist_ok=True)
    workspace.adopt()
    return [1, 2, 3]


def test_a_value_that_one_run_lacks_is_gray_in_the_theme_in_use(
    qtbot: QtBot, dressed: QApplication, workspace: Workspace, three: list[int]
) -> None:
    pane = add_widget(qtbot, ConfigPane(workspace, Background()))
    pane.show_runs([workspace.runs.get(run) for run in three[:2]])
    qtbot.waitUntil(lambda: pane.table.rowCount() > 0)
    lacking = pane.table.findItems("–", Qt.MatchFlag.MatchExactly)
    assert lacking
    try:
        for mode in ("dark", "light"):
            theme.theme().mode = mode
            assert all(item.foreground().color() == theme.color("secondary") for item in lacking)
    finally:
        theme.theme().mode = "light"


def names(view: RunsView) -> list[str]:
    return [run.name for run in view.table.shown.runs()]


def choose(qtbot: QtBot, view: RunsView, *runs: int) -> None:
    view.table.choose(list(runs))
    qtbot.waitUntil(lambda: {run.id for run in view.table.chosen()} == set(runs))
    assert {run.id for run in view.drawn()} >= set(runs)


def shown(qtbot: QtBot, context: Context, count: int) -> RunsView:
    view = show(qtbot, context)
    qtbot.waitUntil(lambda: view.table.runs.rowCount() == count)
    return view


@pytest.fixture
def view(qtbot: QtBot, context: Context, three: list[int]) -> RunsView:
    return shown(qtbot, context, len(three))


# -- table ---------------------------------------------------------------------------------------------------


def test_an_empty_workspace_offers_finished_runs_and_home(qtbot: QtBot, context: Context):
    view = show(qtbot, context)
    assert view.is_empty
    context.jobs.poll()
    page = view.area.page
    qtbot.waitUntil(lambda: page.button.isVisible() and page.button.text() == "Look at finished runs")
    asked: list[object] = []
    view.requested.connect(asked.append)
    for button in (page.button, page.other):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert asked == [OpenSample(), ShowExperiment()]


def test_rows_do_not_move_under_the_pointer(qtbot: QtBot, view: RunsView, workspace: Workspace, three: list[int]):
    view.table.sortByColumn(RunColumn.NAME, Qt.SortOrder.AscendingOrder)
    assert names(view) == ["clip large", "clip small", "cloob small"]
    viewport = view.table.viewport()
    QApplication.sendEvent(viewport, QEvent(QEvent.Type.Enter))
    workspace.runs.rename(three[1], "a first cloob")
    qtbot.waitUntil(lambda: "a first cloob" in names(view))
    assert names(view) == ["clip large", "clip small", "a first cloob"]
    QApplication.sendEvent(viewport, QEvent(QEvent.Type.Leave))
    menu = QMenu(view)  # as that of the rows, whose actions concern what was clicked
    menu.addAction("Stop")
    menu.popup(view.mapToGlobal(QPoint(5, 5)))
    qtbot.waitUntil(lambda: QApplication.activePopupWidget() is menu)
    view.table.release_order()
    assert names(view) == ["clip large", "clip small", "a first cloob"]
    menu.close()
    qtbot.waitUntil(lambda: names(view) == ["a first cloob", "clip large", "clip small"])


def test_rows_say_what_the_store_says(qtbot: QtBot, view: RunsView):
    row = {run.name: run for run in view.table.runs.runs}["cloob small"]
    words = {column: display_text(row, column) for column in RunColumn}
    assert words[RunColumn.STATUS] == "Finished"
    assert words[RunColumn.OBJECTIVE] == "CLOOB"
    assert words[RunColumn.DATA] == "Scenes"
    assert words[RunColumn.PROGRESS] == "100 / 100"
    assert words[RunColumn.BEST] == "90.0 %"
    assert words[RunColumn.ETA] == ""
    assert words[RunColumn.STARTED].startswith("Today ")


def test_numbers_stand_right(qtbot: QtBot, view: RunsView):
    for column in (RunColumn.BEST, RunColumn.LAST, RunColumn.ETA, RunColumn.DURATION):
        alignment = view.table.shown.index(0, column).data(Qt.ItemDataRole.TextAlignmentRole)
        assert alignment & int(Qt.AlignmentFlag.AlignRight)


def test_sorting_is_by_value_and_a_missing_one_is_last_both_ways(qtbot: QtBot, view: RunsView):
    view.table.sortByColumn(RunColumn.BEST, Qt.SortOrder.AscendingOrder)
    assert names(view) == ["clip small", "cloob small", "clip large"]
    view.table.sortByColumn(RunColumn.BEST, Qt.SortOrder.DescendingOrder)
    assert names(view) == ["cloob small", "clip small", "clip large"]
    view.table.sortByColumn(RunColumn.NAME, Qt.SortOrder.AscendingOrder)
    assert names(view) == ["clip large", "clip small", "cloob small"]


def test_every_typed_word_must_be_there(qtbot: QtBot, view: RunsView):
    qtbot.keyClicks(view.filter, "CLIP finished")
    assert names(view) == ["clip small"]
    assert view.count.text() == "1 of 3 runs"
    qtbot.waitUntil(lambda: {run.id for run in view.drawn()} == {1})
    view.filter.setText("nothing like this")
    assert view.list_area.page.isVisible()
    assert view.list_area.page.text.text() == "The filter is “nothing like this”."
    assert view.drawn() == []
    qtbot.waitUntil(lambda: view.curves.area.page.title.text() == "No run to draw")
    qtbot.mouseClick(view.list_area.page.button, Qt.MouseButton.LeftButton)
    assert view.table.isVisible()
    assert len(names(view)) == 3


def test_a_poll_keeps_the_selection_and_a_name_being_typed(
    qtbot: QtBot, context: Context, workspace: Workspace, three: list[int], view: RunsView
):
    choose(qtbot, view, three[0])
    view.actions_of_runs["rename"].trigger()
    editor = view.table.findChild(QLineEdit, "rename-editor")
    editor.selectAll()
    qtbot.keyClicks(editor, "half a na")
    workspace.runs.change(three[0], note="changed meanwhile")
    with qtbot.waitSignal(context.jobs.runs_changed):
        pass
    assert editor.text() == "half a na"
    qtbot.keyClicks(editor, "me")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "half a name" in names(view))
    assert workspace.runs.get(three[0]).name == "half a name"
    assert [run.id for run in view.table.chosen()] == [three[0]]


@pytest.mark.usefixtures("dressed")
def test_the_longest_usual_words_fit_their_columns(qtbot: QtBot, view: RunsView):
    sign_and_margins = 40
    longest = {
        RunColumn.STARTED: "Yesterday 22:22",
        RunColumn.ETA: "59 min 59 s",
        RunColumn.DURATION: "59 min 59 s",
        RunColumn.STATUS: "Interrupted",
    }
    for column, words in longest.items():
        view.table.show_column(column, True)
        room = view.table.columnWidth(column) - (sign_and_margins if column == RunColumn.STATUS else 24)
        assert view.table.fontMetrics().horizontalAdvance(words) <= room, words


def test_columns_splitter_tab_and_look_are_found_again(qtbot: QtBot, context: Context, view: RunsView):
    view.table.sortByColumn(RunColumn.BEST, Qt.SortOrder.DescendingOrder)
    view.tabs.setCurrentIndex(1)
    view.table.show_column(RunColumn.DATA, True)
    view.table.setColumnWidth(RunColumn.DATA, 177)
    view.curves.slider.setValue(30)
    view.curves.by_time.setChecked(True)
    view.curves.menu.choose(["val/auc_hard10"])
    qtbot.wait(1)
    again = shown(qtbot, context, 3)
    assert again.table.columnWidth(RunColumn.DATA) == 177
    assert names(again) == names(view)
    assert again.tabs.currentIndex() == 1
    assert (again.curves.smoothing, again.curves.axis, again.curves.metrics) == (0.3, "time", ("val/auc_hard10",))


def test_curves_of_another_program_are_drawn_by_its_own_names(qtbot: QtBot, context: Context, tmp_path: Path):
    log = tmp_path / "own.csv"
    log.write_text("step,lr,Loss/train,acc,val/acc\n0,0.1,2.0,0.1,0.2\n10,0.1,1.5,0.3,0.4\n")
    (imported,) = import_curves(context.workspace, log)
    assert (context.workspace.runs.get(imported.id).metric, context.workspace.runs.get(imported.id).best) == (
        *("Loss/train", 1.5),
    )
    view = shown(qtbot, context, 1)
    curves, own = view.curves, ("Loss/train", "val/acc", "acc")
    titles = lambda: {plot.panel.title.partition(",")[0] for plot in curves.grid.plots.values()}  # noqa: E731
    qtbot.waitUntil(lambda: titles() == {*own})
    assert {*curves.metrics} == {*DEFAULT_METRICS, *own}
    curves.menu.choose(["train/learning_rate"])
    assert curves.metrics == ("train/learning_rate", "Loss/train")


def test_a_lone_value_takes_no_chart_beside_curves(qtbot: QtBot, context: Context, tmp_path: Path):
    def titles() -> list[str]:
        return [plot.panel.title.partition(",")[0] for plot in view.curves.grid.plots.values()]

    (tmp_path / "point.csv").write_text("step,mAP\n0,0.9\n")
    (tmp_path / "curve.csv").write_text("step,acc\n0,0.1\n10,0.4\n")
    import_curves(context.workspace, tmp_path / "point.csv")
    view = shown(qtbot, context, 1)
    qtbot.waitUntil(lambda: titles() == ["mAP"], timeout=9000)
    import_curves(context.workspace, tmp_path / "curve.csv")
    context.jobs.poll()
    qtbot.waitUntil(lambda: "acc" in titles(), timeout=9000)
    assert titles() == ["acc"]


# -- actions -------------------------------------------------------------------------------------------------


def test_keys_a_and_b_choose_the_compared_runs_and_swap_them(
    qtbot: QtBot, context: Context, three: list[int], view: RunsView
):
    for run, key in ((three[0], Qt.Key.Key_A), (three[1], Qt.Key.Key_B)):
        choose(qtbot, view, run)
        view.table.setFocus()
        view.actions_of_runs["show-a" if key == Qt.Key.Key_A else "show-b"].trigger()
    assert context.selection.runs == (three[0], three[1])
    indices = [view.table.runs.index(view.table.runs.row_of(run), RunColumn.NAME) for run in three]
    assert [index.data(LETTERS_ROLE) for index in indices] == ["A", "B", ""]
    colors = [index.data(SWATCH_ROLE) for index in indices]
    choose(qtbot, view, three[0])
    view.actions_of_runs["show-b"].trigger()
    assert context.selection.runs == (three[1], three[0])
    assert [index.data(LETTERS_ROLE) for index in indices] == ["B", "A", ""]
    assert [index.data(SWATCH_ROLE) for index in indices] == colors, "a run keeps its color, whichever letter it has"
    context.selection.undo.undo()
    assert context.selection.runs == (three[0], three[1])


def test_delete_is_announced_and_undone(qtbot: QtBot, context: Context, three: list[int], view: RunsView):
    context.selection.select_runs(three[0], three[1])
    choose(qtbot, view, three[0], three[2])
    with qtbot.waitSignal(context.jobs.deleted) as told:
        view.actions_of_runs["delete"].trigger()
    assert [run.id for run in told.args[0]] == [three[0], three[2]]
    qtbot.waitUntil(lambda: names(view) == ["cloob small"])
    context.selection.propose(run_a=three[1], run_b=None)  # as the window does of a run that is gone
    context.selection.undo.undo()
    qtbot.waitUntil(lambda: {run.id for run in view.table.chosen()} == {three[0], three[2]}, timeout=10_000)
    assert context.selection.runs == (three[0], three[1])


def test_only_what_can_be_done_is_offered(
    qtbot: QtBot, context: Context, workspace: Workspace, three: list[int], view: RunsView
):

    def possible() -> set[str]:
        return {name for name, action in view.actions_of_runs.by_name.items() if action.isEnabled()}

    always = {"new", "import", "queue-slots"}
    one = {"duplicate", "rename", "delete", "show-a", "show-b", "folder", "repeat", "branch", "experiment", "note"}
    one |= {"decode", "inspect", "fine-tune", "mix"}
    running = {"stop", "stop-epoch", "pause", "save", "evaluate", "kill"}
    view.table.clearSelection()
    assert possible() == always
    several = {"tag", "archive", "inspect", "mix"}
    one |= several
    choose(qtbot, view, three[0])
    assert possible() == always | one
    choose(qtbot, view, three[2])
    assert possible() == always | one | {"resume", "queue-again"}
    choose(qtbot, view, three[0], three[1])
    assert possible() == always | several | {"delete"}
    with RunLog.claim(workspace, three[2]) as log:
        qtbot.waitUntil(lambda: bool(context.jobs.run(three[2]).pid))
        choose(qtbot, view, three[2])
        assert possible() == (always | running | one) - {"delete", "archive"}
        log.status("stopped")


def test_stop_asks_the_trainer(qtbot: QtBot, context: Context, workspace: Workspace):
    number = workspace.runs.create(config.Run(name="busy"))
    with RunLog.claim(workspace, number) as log:
        view = shown(qtbot, context, 1)
        choose(qtbot, view, number)
        view.actions_of_runs["stop"].trigger()
        qtbot.waitUntil(lambda: log.asked() == "stop")
        log.status("stopped")
    qtbot.waitUntil(lambda: context.jobs.run(number).status == "stopped")


def test_a_trainer_that_does_not_stop_can_be_ended(
    qtbot: QtBot, context: Context, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stop_timeout, "PATIENCE_MS", 200)
    ended: list[int] = []
    monkeypatch.setattr(launch, "end", lambda _, run, **grace: ended.append(run) or True)
    with RunLog.claim(workspace, workspace.runs.create(config.Run(name="unresponsive"))) as log:
        log.status("running")
        view = shown(qtbot, context, 1)
        choose(qtbot, view, log.run.id)
        end = view.actions_of_runs["end"]
        assert not end.isVisible()
        assert view.findChild(QToolButton, "end-button").isHidden()
        view.actions_of_runs["stop"].trigger()
        qtbot.waitUntil(end.isVisible, timeout=3_000)
        button = view.findChild(QToolButton, "end-button")
        assert button.isVisible()
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: ended == [log.run.id])
        log.status("stopped")
    context.jobs.poll()
    qtbot.waitUntil(lambda: not end.isVisible(), timeout=3_000)


def test_a_new_run_begins_with_a_preset_that_could_start_and_stays_drawn(
    qtbot: QtBot, context: Context, three: list[int], monkeypatch: pytest.MonkeyPatch
):
    context.selection.select_runs(*three[:2])
    view = shown(qtbot, context, 3)
    sheet = view.open_new_run()
    assert sheet.preset_name == "clip-scenes"
    assert sheet.start.isEnabled()
    kind = sheet.section("objective").kind
    assert sheet.focusWidget() is kind, "what is compared is chosen first"
    kind.setCurrentIndex(0)
    qtbot.waitUntil(sheet.foot.queue.isHidden)  # both wait in the queue in any case
    qtbot.waitUntil(lambda: sheet.foot.copy.isVisible() and sheet.foot.copy.isEnabled() and sheet.start.isEnabled())
    assert sheet.command()[:2] == ["experiment", "both"], "one command trains both"
    assert (sheet.start.text(), sheet.foot.reason.text()) == ("Queue both", "")
    kind.setCurrentIndex(2)
    qtbot.waitUntil(lambda: sheet.foot.queue.isVisible() and sheet.foot.queue.isEnabled())
    assert (sheet.foot.copy.isEnabled(), sheet.foot.copy.toolTip()) == (True, "")
    assert (sheet.start.text(), sheet.foot.reason.text()) == ("Start now", "")
    monkeypatch.setattr(context.jobs, "do", lambda *_arguments, done, **_options: done(three[2]))
    sheet.foot.queue.click()
    again = shown(qtbot, context, 3)
    assert three[2] in {run.id for run in again.drawn()}, "also after a restart: nobody has hidden it"


def test_duplicate_opens_the_sheet_with_the_same_values(
    qtbot: QtBot, context: Context, three: list[int], monkeypatch: pytest.MonkeyPatch
):
    from explorer.views.runs import view as view_room

    monkeypatch.setattr(view_room.presets, "presets", lambda: {"clip-scenes": config.Run(name="clip-scenes")})
    view = shown(qtbot, context, 3)
    choose(qtbot, view, three[1])
    view.actions_of_runs["duplicate"].trigger()
    qtbot.waitUntil(lambda: view.findChild(object, "new-run") is not None)
    sheet = view.findChild(object, "new-run")
    assert config.difference(sheet.run(), context.workspace.runs.config_of(three[1])) == [
        ("name", "cloob-scenes", "cloob small")
    ]
    sheet.reject()


# -- curves --------------------------------------------------------------------------------------------------


def drawn_curve(view: RunsView, panel: str, run: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, raw and smoothed values as passed to pyqtgraph."""
    plot = next((p for p in view.curves.grid.plots.values() if p.panel.title == panel), None)
    assert plot, "not drawn yet"
    raw, smoothed, _points = plot.curve(run)
    return raw.xData, raw.yData, smoothed.yData


def test_curves_given_to_pyqtgraph_equal_the_stored_series(
    qtbot: QtBot, view: RunsView, workspace: Workspace, three: list[int]
):
    choose(qtbot, view, *three)
    view.curves.slider.setValue(60)
    qtbot.waitUntil(lambda: len(view.curves.grid.plots) == 4 and not view.curves.draw_later.isActive())
    qtbot.waitUntil(lambda: view.curves.grid.is_complete)
    for title, run in (("Training loss, CLIP", three[0]), ("Training loss, CLOOB", three[1])):
        steps, values, _ = workspace.results.series(run, "train/loss")
        x, raw, smoothed = drawn_curve(view, title, run)
        np.testing.assert_array_equal(x, steps)
        np.testing.assert_array_equal(raw, values)
        np.testing.assert_allclose(smoothed, smooth(values, 0.6), rtol=1e-12)
    steps, values, _ = workspace.results.series(three[1], "val/image_to_text_R@1")
    x, raw, _ = drawn_curve(view, "Image to text R@1, held-out", three[1])
    np.testing.assert_array_equal(x, steps)
    np.testing.assert_allclose(raw, 100 * values)


def test_losses_of_two_objectives_never_share_a_panel(qtbot: QtBot, view: RunsView, three: list[int]):
    choose(qtbot, view, *three)
    qtbot.waitUntil(lambda: len(view.curves.grid.plots) == 4 and view.curves.grid.is_complete)
    panels = {plot.panel.title: plot.panel for plot in view.curves.grid.plots.values()}
    assert {line.key for line in panels["Training loss, CLIP"].lines} == {three[0], three[2]}
    assert {line.key for line in panels["Training loss, CLOOB"].lines} == {three[1]}
    assert {line.key for line in panels["Image to text R@1, held-out"].lines} == set(three)


def test_of_many_selected_runs_the_first_are_drawn_and_the_number_is_said(
    qtbot: QtBot, context: Context, workspace: Workspace
):
    runs = [workspace.runs.create(config.Run(name=f"run {number}")) for number in range(30)]
    for run in runs:
        workspace.runs.change(run, status="finished")
    context.selection.select_runs(runs[0], runs[1])
    view = shown(qtbot, context, 30)
    view.table.selectAll()
    qtbot.waitUntil(lambda: len(view.table.chosen()) == 30)
    newest_first = [run.id for run in view.table.shown.runs() if run.id not in runs[:2]]
    assert [run.id for run in view.drawn()] == [*runs[:2], *sorted(newest_first[: DRAWN_AT_MOST - 2])]
    assert view.curves.partial.text() == "24 of 30 runs drawn, the first in the list."
    assert view.curves.partial.isVisibleTo(view)
    view.table.clearSelection()
    training = runs[2:5]
    drawn = lambda: {run.id for run in view.drawn()}  # noqa: E731
    with contextlib.ExitStack() as logs:
        for run in training:
            logs.enter_context(RunLog.claim(workspace, run)).status("running")
        context.jobs.poll()
        qtbot.waitUntil(lambda: drawn() == {*runs[:2], *training})
        view.toggle_eyes(training[:1])
        context.jobs.poll()
        assert drawn() == {*runs[:2], *training[1:]}, "an eye that was closed by hand stays closed"
        view.table.selectAll()
        qtbot.waitUntil(lambda: len(drawn()) == DRAWN_AT_MOST and drawn() > {*training[1:]})
        view.table.clearSelection()
    context.jobs.poll()
    qtbot.waitUntil(lambda: not context.jobs.run(training[1]).active)
    assert drawn() == {*runs[:2], *training[1:]}, "its curve stays after its end"
    view.table.choose(runs[:3])
    assert not view.curves.partial.isVisibleTo(view)


@pytest.mark.nightly
def test_what_a_plot_waits_for_is_wrapped(qtbot, dressed) -> None:
    grid = show_widget(qtbot, CurveGrid(), 380, 260)
    words = "Downloading open_clip_model.safetensors of ViT-B-32 from the hub: 34 of 605 MB, 12 minutes left"
    grid.show_panels([CurvePlotData("loss", "Loss", "", 2, (), words)], Axis("step", 0, 1))
    (label,) = (one for one in grid.findChildren(QLabel) if one.text() == words)
    qtbot.waitUntil(label.isVisible)
    assert label.fontMetrics().horizontalAdvance(words) > label.width()
    assert label.heightForWidth(label.width()) <= label.height()
    assert label.geometry().right() <= label.parentWidget().width()


def test_selecting_every_run_asks_nothing_of_each_cell(
    qtbot: QtBot, context: Context, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    for number in range(90):
        workspace.runs.create(config.Run(name=f"run {number}"))
    view = shown(qtbot, context, 90)
    asked: list[int] = []
    flags = RunsModel.flags
    monkeypatch.setattr(RunsModel, "flags", lambda self, index: (asked.append(1), flags(self, index))[1])
    view.table.selectAll()
    view.table.repaint()
    view.table.horizontalHeader().repaint()
    assert len(asked) < 300  # of a thousand cells


def test_curves_of_many_runs_are_drawn_in_turns_and_the_newest_panels_win(qtbot: QtBot):
    grid = add_widget(qtbot, CurveGrid())
    x = np.arange(5.0)
    lines = tuple(CurveLine(key, f"run {key}", "#336699", x, x + key, x * key) for key in range(200))
    grid.show_panels([CurvePlotData("loss", "Loss", "", 2, lines)], Axis("step", 0, 1))
    assert not grid.is_complete
    grid.show_panels([CurvePlotData("loss", "Loss", "", 2, lines[:150])], Axis("step", 0, 1))
    newest = CurvePlotData("loss", "Loss", "", 2, lines[:3])
    grid.show_panels([newest], Axis("step", 0, 1))
    qtbot.waitUntil(lambda: grid.is_complete, timeout=60_000)
    plot = grid.plots["loss"]
    assert plot.panel is newest
    assert plot.curve(3) is None
    for line in newest.lines:
        raw, smoothed, _points = plot.curve(line.key)
        np.testing.assert_array_equal(raw.yData, line.raw)
        np.testing.assert_array_equal(smoothed.yData, line.smooth)
    shown = [item for item in plot.plot.listDataItems() if item.isVisible()]
    assert len(shown) == 9
    assert not plot.legend.entries, "names stand at the ends"
    grid.show_panels([CurvePlotData("loss", "Loss", "", 2, lines[:10])], Axis("step", 0, 1))
    qtbot.waitUntil(lambda: [entry.words for entry in plot.legend.entries] == [line.name for line in lines[:10]])


@pytest.mark.parametrize("value", [0.02, 300.0, -4.0])
def test_the_axis_of_a_constant_curve_fits_its_value(qtbot: QtBot, value: float):
    grid = show_widget(qtbot, CurveGrid(), 600, 400)
    x = np.arange(5.0)
    for values in (np.full(5, value), np.full(5, value) + x):
        line = CurveLine(1, "run", "#336699", x, values, values)
        grid.show_panels([CurvePlotData("rate", "", "", 2, (line,))], Axis("step", 0, 4))
        qtbot.waitUntil(lambda: grid.is_complete)
        grid.grab()
        low, high = grid.plots["rate"].plot.getViewBox().viewRange()[1]
        if np.ptp(values) == 0:
            assert (low, high) == pytest.approx((value - 0.05 * abs(value), value + 0.05 * abs(value)))
        else:
            assert high - low > 4, "it grows with the values"


def test_panels_are_drawn_after_others_failed(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch):
    grid = add_widget(qtbot, CurveGrid())
    x = np.arange(5.0)
    line, other = (CurveLine(key, "run", "#336699", x, x, x, symbol=key - 1) for key in (1, 2))

    def broken(*_: object) -> None:
        raise RuntimeError("no room on the graphics card")

    panels = [CurvePlotData("loss", "", "", 2, (line, other))]
    grid.show_panels(panels, Axis("step", 0, 1))
    qtbot.waitUntil(lambda: grid.is_complete)
    symbols = [grid.plots["loss"].curve(key)[2].opts["symbol"] for key in (1, 2)]
    assert symbols == ["o", "s"], "another experiment is told by its symbol"
    many = np.arange(400.0)
    lines = tuple(CurveLine(key, "run", "#336699", many, many, many, symbol=key - 1) for key in (1, 2))
    grid.show_panels([CurvePlotData("loss", "", "", 2, lines)], Axis("step", 0, 1))
    qtbot.waitUntil(lambda: grid.plots["loss"].curve(2)[2].xData.tolist() == many[::50].tolist())
    assert not grid.plots["loss"].curve(1)[2].isVisible(), "of the first experiment where points are few"
    with monkeypatch.context() as once:
        once.setattr(CurvePlot, "drawing", broken)
        with pytest.raises(RuntimeError, match="no room"):
            grid.show_panels(panels, Axis("step", 0, 1))
    grid.show_panels(panels, Axis("step", 0, 1))
    qtbot.waitUntil(lambda: grid.is_complete)
    assert np.array_equal(grid.plots["loss"].curve(1)[0].yData, x)


def test_names_take_the_room_of_their_own_axis_and_stand_behind_the_longest_curve(qtbot: QtBot):
    grid = add_widget(qtbot, CurveGrid(), 800, 300)
    x = np.arange(50.0)
    short = CurveLine(1, "s0", "#336699", x, x, x)
    young = CurveLine(2, "a name of many letters", "#993366", x[:46], x[:46], x[:46])
    panels = [
        CurvePlotData("a", "", "", 2, (short,), axis="a"),
        CurvePlotData("b", "", "", 2, (short, young), axis="b"),
    ]
    grid.show_panels(panels, Axis("step", 0, 1))
    qtbot.waitUntil(lambda: grid.is_complete)
    narrow, wide = (grid.plots[key].plot.getPlotItem().layout.getContentsMargins()[2] for key in "ab")
    assert narrow < wide / 2
    names, drawn = grid.plots["b"].names, QImage(400, 300, QImage.Format.Format_ARGB32)
    drawn.fill(Qt.GlobalColor.transparent)
    names.render(drawn, QPoint(), QRegion(), QWidget.RenderFlag(0))
    box = grid.plots["b"].plot.getViewBox().sceneBoundingRect()
    inked = [
        column for column in range(drawn.width()) if any(drawn.pixelColor(column, row).alpha() for row in range(300))
    ]
    assert inked[0] > box.left() + 0.9 * box.width(), "not over the other curve, which goes a little farther"


def test_a_change_of_size_while_panels_change_finds_those_that_are_left(qtbot: QtBot):
    grid = add_widget(qtbot, CurveGrid())
    x = np.arange(5.0)
    line = CurveLine(1, "run", "#336699", x, x, x)
    long = CurveLine(1, "a longer name", "#336699", x, x, x)
    panels = [CurvePlotData(key, key, "", 2, (long if key == "loss" else line,)) for key in ("loss", "recall", "rate")]
    grid.show_panels(panels, Axis("step", 0, 1))
    qtbot.waitUntil(lambda: grid.is_complete)
    rooms = {plot.names.room_px: plot.plot.getPlotItem().layout.getContentsMargins()[2] for plot in grid.plots.values()}
    assert len(rooms) == 2
    assert set(rooms.values()) == {max(rooms) - EDGE_PX}, (
        "the axes of all panels are as wide, whatever is written at their curves"
    )
    for _ in grid.showing(panels[1:2], Axis("step", 0, 1)):
        for width in (300, 1600):
            grid.resize(width, 400)
            QApplication.sendEvent(grid, QResizeEvent(grid.size(), grid.size()))
    assert set(grid.plots) == {"recall"}


def test_a_recall_that_is_never_0_has_an_axis_that_begins_at_0(qtbot: QtBot):
    """One value of 2.5 % had an axis from -1.5 to 8.5."""
    grid = add_widget(qtbot, CurveGrid())
    lows = []
    for value in (2.5, 0.0):
        line = CurveLine(1, "run", "#336699", *(np.array([each]) for each in (0.0, value, value)))
        grid.show_panels([CurvePlotData("recall", "Recall", "%", 1, (line,), percent=True)], Axis("step", 0, 1))
        qtbot.waitUntil(lambda: grid.is_complete)
        (plot,) = grid.plots.values()
        plot.plot.setYRange(value - 5, value + 5)
        lows.append(plot.plot.viewRange()[1][0])
    assert lows[0] == 0
    assert lows[1] < 0, "a point at 0 is drawn as a whole"


def test_panels_of_other_data_have_a_range_of_steps_of_their_own(qtbot: QtBot):
    grid = add_widget(qtbot, CurveGrid())
    x = np.arange(49.0)
    line = partial(CurveLine, color="#336699")
    lines = {axis: (line(1, axis, x=x[:n], raw=x[:n], smooth=x[:n]),) for axis, n in (("scenes", 49), ("emoji", 27))}
    panels = [
        CurvePlotData("recall 0", "", "", 2, lines["scenes"], axis="scenes"),
        CurvePlotData("recall 1", "", "", 2, lines["emoji"], axis="emoji", until=480),
        CurvePlotData("rate 0", "", "", 2, lines["scenes"], axis="scenes"),
    ]
    grid.show_panels(panels, Axis("step", 0, 1))
    qtbot.waitUntil(lambda: grid.is_complete)
    last = [round(grid.plots[panel.key].plot.getViewBox().viewRange()[0][1] / 1.02) for panel in panels]
    assert last == [48, 480, 48]
    grid.plots["rate 0"].plot.setXRange(10, 20, padding=0)
    ranges = [grid.plots[panel.key].plot.getViewBox().viewRange()[0] for panel in panels]
    assert ranges[0] == ranges[2] == [10, 20]
    assert ranges[1][1] > 400


def test_panels_that_are_left_fill_the_rows_and_new_ones_lie_over_no_other(qtbot: QtBot, dressed):
    grid = show_widget(qtbot, CurveGrid(), 800, 600)
    x = np.arange(5.0)
    six, four = (
        [CurvePlotData(key, key, "", 2, (CurveLine(1, "run", "#336699", x, x, x),)) for key in keys]
        for keys in ("aAbBcd", "abcd")
    )
    grid.show_panels(four, Axis("step", 0, 1))
    qtbot.waitUntil(lambda: grid.is_complete)
    for _ in grid.showing(six, Axis("step", 0, 1)):
        QApplication.sendPostedEvents()
        places = [plot.pos().toTuple() for plot in grid.findChildren(CurvePlot) if plot.isVisible()]
        assert len(places) == len(set(places))
    grid.show_panels(four, Axis("step", 0, 1))
    qtbot.waitUntil(lambda: grid.is_complete)
    layout = grid.layout()
    cells = [layout.getItemPosition(layout.indexOf(grid.plots[key]))[:2] for key in "abcd"]
    assert cells == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_curve_has_the_color_of_its_run_whatever_a_and_b_are(
    qtbot: QtBot, context: Context, three: list[int], view: RunsView
):
    choose(qtbot, view, *three)
    styles = run_style(context.jobs.runs)
    for pair in ((three[1], three[0]), (three[0], three[2])):
        context.selection.select_runs(*pair)
        qtbot.waitUntil(lambda: any(len(p.panel.lines) == 3 for p in view.curves.grid.plots.values()))
        qtbot.waitUntil(lambda: view.curves.grid.is_complete)
        plot = next(p for p in view.curves.grid.plots.values() if p.panel.title == "Image to text R@1, held-out")
        colors = {line.key: line.color for line in plot.panel.lines}
        assert colors == {run: theme.run_shade(styles[run].hue, styles[run].tone) for run in three}
        assert len({*colors.values()}) == 3
        dashes = {run: tuple(plot.curve(run)[1].opts["pen"].dashPattern()) for run in three}
        assert {run: bool(dash) for run, dash in dashes.items()} == {run: styles[run].hue % 2 == 1 for run in three}
        rows = {run: context.workspace.runs.get(run) for run in three}
        names_at_ends = {(label.text, label.color) for label in plot.names.labels}
        assert names_at_ends == {(rows[run].short_name, colors[run]) for run in three}


def wheel_over(widget: QWidget, keys: Qt.KeyboardModifier) -> bool:
    """Return whether the widget handled a wheel event itself."""
    middle = QPointF(widget.rect().center())
    event = QWheelEvent(
        middle, widget.mapToGlobal(middle), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton, keys,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)
    return event.isAccepted()


def test_the_wheel_scrolls_with_ctrl_it_zooms_and_a_double_click_follows_again(
    qtbot: QtBot, view: RunsView, three: list[int]
):
    choose(qtbot, view, *three)
    qtbot.waitUntil(lambda: len(view.curves.grid.plots) == 4 and not view.curves.draw_later.isActive())
    plot = next(p for p in view.curves.grid.plots.values() if p.panel.title == "Image to text R@1, held-out").plot
    qtbot.waitUntil(lambda: view.curves.grid.is_complete and np.ptp(plot.viewRange()[0]) > 1)
    qtbot.waitUntil(lambda: not view.context.background.busy)  # a late poll would draw and range the curves anew
    before = plot.viewRange()[0]
    wheel_over(plot.viewport(), Qt.KeyboardModifier.NoModifier)
    assert plot.viewRange()[0] == before
    assert not view.curves.resume.isVisible()
    wheel_over(plot.viewport(), Qt.KeyboardModifier.ControlModifier)
    assert np.ptp(plot.viewRange()[0]) < np.ptp(before)
    assert view.curves.resume.isVisible()
    assert "paused" in view.curves.resume.text()
    QTest.mouseDClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=plot.viewport().rect().center())
    assert plot.viewRange()[0] == before
    assert not view.curves.resume.isVisible()


def test_a_share_stays_between_0_and_100_percent(qtbot: QtBot, view: RunsView, three: list[int]):
    choose(qtbot, view, *three)
    qtbot.waitUntil(lambda: len(view.curves.grid.plots) == 4 and not view.curves.draw_later.isActive())
    shares = [p.plot for p in view.curves.grid.plots.values() if p.panel.unit.startswith("%")]
    assert shares
    for plot in shares:
        # As around one value of 0, where all there is to see has no height.
        plot.setYRange(-20, 120)
        low, high = plot.viewRange()[1]
        assert -4 <= low <= 0, "a point at 0 is not cut by the frame"
        assert 100 < high <= 104


def test_live_rows_extend_the_curve_without_reading_it_again(
    qtbot: QtBot, context: Context, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    number = workspace.runs.create(config.Run(name="live"))
    with RunLog.claim(workspace, number) as log:
        log_steps(log, range(1, 30))
        view = shown(qtbot, context, 1)
        choose(qtbot, view, number)
        qtbot.waitUntil(lambda: "Training loss, CLIP" in {p.panel.title for p in view.curves.grid.plots.values()})
        read: list[str] = []
        monkeypatch.setattr(ResultsTable, "series", lambda self, run, name: read.append(name))
        log_steps(log, range(30, 61))
        qtbot.waitUntil(lambda: len(drawn_curve(view, "Training loss, CLIP", number)[0]) == 60)
        assert read == []
        log.status("finished")
    monkeypatch.undo()
    steps, values, _ = workspace.results.series(number, "train/loss")
    x, raw, _ = drawn_curve(view, "Training loss, CLIP", number)
    np.testing.assert_array_equal(x, steps)
    np.testing.assert_array_equal(raw, values)


def test_a_new_run_waits_for_its_first_step(qtbot: QtBot, context: Context, workspace: Workspace):
    number = workspace.runs.create(config.Run(name="fresh"))
    with RunLog.claim(workspace, number) as log:
        view = shown(qtbot, context, 1)
        choose(qtbot, view, number)
        qtbot.waitUntil(lambda: view.curves.area.kind == "empty")
        assert view.curves.area.page.title.text() == "Waiting for the first step", "once, and not in three charts"
        log.progress(step=0, total_steps=100, phase="Drawing Scenes: 64 of 128")
        qtbot.waitUntil(
            lambda: display_text(context.jobs.run(number), RunColumn.PROGRESS) == "Drawing Scenes: 64 of 128"
        )
        log_steps(log, range(1, 10))
        qtbot.waitUntil(lambda: view.curves.area.kind == "ready")
        qtbot.waitUntil(lambda: len(view.curves.grid.plots) == 3)
        log.scalars(9, {"val/image_to_text_R@1": 0.001})
        log.flush()
        qtbot.waitUntil(lambda: any("Image to text" in plot.title.text() for plot in view.curves.grid.plots.values()))
        recall = next(plot for plot in view.curves.grid.plots.values() if "Image to text" in plot.title.text())
        box = recall.plot.getViewBox()
        qtbot.waitUntil(lambda: box.viewRange()[0][1] >= 100, timeout=5_000)
        for other in view.curves.grid.plots.values():
            qtbot.waitUntil(lambda other=other: other.plot.getViewBox().viewRange()[0][0] < 0, timeout=5_000)
        # Nothing below 0 but what a dot needs, and 0.1 is not magnified.
        qtbot.waitUntil(lambda: box.viewRange()[1] == pytest.approx([-1.5, 8.5], abs=0.01), timeout=5_000)
        log.status("finished")


def test_a_skeleton_stays_until_the_curves_are_drawn(qtbot: QtBot, context: Context, three: list[int], monkeypatch):
    turns: list[Callable[[], None]] = []
    busy = SimpleNamespace(is_full=True, later=lambda _owner, go_on, unseen=False: unseen or turns.append(go_on))
    monkeypatch.setattr(curves, "idle_scheduler", lambda: busy)
    view = shown(qtbot, context, 3)
    qtbot.waitUntil(lambda: bool(turns))
    while turns:
        assert view.curves.area.kind == "loading", "the page would be blank"
        turns.pop()()
    assert view.curves.area.kind == "ready"
    assert all(plot.isVisible() for plot in view.curves.grid.plots.values())


def test_a_resumed_run_draws_nothing_twice(qtbot: QtBot, context: Context, workspace: Workspace):
    number = finished(workspace, config.Run(name="again"), status="stopped")
    view = shown(qtbot, context, 1)
    choose(qtbot, view, number)
    qtbot.waitUntil(lambda: len(view.curves.grid.plots) == 3)
    with RunLog.claim(workspace, number) as log:
        log.rewind(50)
        log.progress(step=50, total_steps=100, phase="loading")
        qtbot.waitUntil(lambda: context.jobs.run(number).step == 50)
        log_steps(log, range(51, 81), scale=9.0)
        log.status("finished")
    qtbot.waitUntil(lambda: len(drawn_curve(view, "Training loss, CLIP", number)[0]) == 80)
    steps, values, _ = workspace.results.series(number, "train/loss")
    x, raw, _ = drawn_curve(view, "Training loss, CLIP", number)
    np.testing.assert_array_equal(x, steps)
    np.testing.assert_array_equal(raw, values)


def test_the_crosshair_reads_every_panel(qtbot: QtBot, view: RunsView, three: list[int]):
    choose(qtbot, view, three[0], three[1])
    qtbot.waitUntil(lambda: len(view.curves.grid.plots) == 4)
    plots = list(view.curves.grid.plots.values())
    plots[0].hovered.emit(42.0)
    assert all(plot.readout.isVisibleTo(plot) for plot in plots)
    assert "clip small" in plots[0].readout.text()
    plots[0].hovered.emit(math.nan)
    assert not any(plot.readout.isVisibleTo(plot) for plot in plots)
    line = plots[0].panel.lines[0]
    assert read_at(line, 42.0) == (40.0, pytest.approx(line.smooth[3]))


@pytest.mark.parametrize(
    ("panels", "width", "height", "columns"),
    [
        (4, 750, 690, 2),
        (4, 2050, 1340, 2),
        (3, 2050, 1340, 2),
        (2, 2050, 1340, 1),
        (3, 2050, 500, 3),
        (6, 1200, 690, 3),
        (1, 90, 500, 1),
        (0, 900, 500, 1),
    ],
)
def test_panels_fill_the_room(panels: int, width: int, height: int, columns: int):
    assert columns_for(panels, width, height) == columns


def test_the_command_names_what_is_drawn(qtbot: QtBot, context: Context, three: list[int]):
    context.selection.select_runs(three[1], three[0])
    view = shown(qtbot, context, 3)
    choose(qtbot, view, three[0], three[1])
    view.curves.menu.choose(["train/loss", "val/image_to_text_R@1"])
    view.curves.slider.setValue(50)
    assert view.command() == [
        *("export", "curves", "--runs", str(three[1]), str(three[0])),
        *("--metrics", "val/image_to_text_R@1", "train/loss", "--smoothing", "0.5"),
    ]


# -- log and configuration -----------------------------------------------------------------------------------


def test_the_log_follows_its_end_unless_scrolled(qtbot: QtBot, context: Context, workspace: Workspace, three):
    log = workspace.runs.get(three[0]).folder / "log.txt"
    log.write_text("".join(f"line {n}\n" for n in range(300)), encoding="utf-8")
    view = shown(qtbot, context, 3)
    view.inspect(True)
    view.details().show()
    view.tabs.setCurrentWidget(view.log)
    choose(qtbot, view, three[0])
    text, bar = view.log.text, view.log.text.verticalScrollBar()
    qtbot.waitUntil(lambda: "line 299" in text.toPlainText())
    assert bar.value() == bar.maximum()

    def add(words: str) -> None:
        with log.open("ab") as file:
            file.write(words.encode())
        qtbot.waitUntil(lambda: words.splitlines()[0] in text.toPlainText())

    add("more ä\nhalf")
    assert bar.value() == bar.maximum()
    assert "half" not in text.toPlainText(), "only whole lines"
    bar.setValue(10)
    add(" a line\n")
    assert bar.value() == 10
    view.log.search.setText("line 29")
    assert view.log.found.text() == "11 found"
    text.moveCursor(QTextCursor.MoveOperation.Start)
    assert view.log.find_next()
    assert text.textCursor().selectedText() == "line 29"


def test_one_run_shows_its_toml_and_two_their_difference(qtbot: QtBot, view: RunsView, workspace: Workspace, three):
    view.inspect(True)
    view.details().show()
    view.tabs.setCurrentWidget(view.config)
    choose(qtbot, view, three[0])
    qtbot.waitUntil(lambda: config.to_toml(workspace.runs.config_of(three[0])) == view.config.toml.toPlainText())
    choose(qtbot, view, three[0], three[2])
    qtbot.waitUntil(lambda: view.config.table.isVisible())
    table = view.config.table
    assert [table.item(0, column).text() for column in range(3)] == ["seed", "0", "1"]
    names = [workspace.runs.get(run).short_name for run in (three[0], three[2])]
    assert [table.horizontalHeaderItem(column).text() for column in (1, 2)] == names
    assert table.rowCount() == 1


def test_in_a_narrow_view_the_curves_are_below_the_list_and_one_page_scrolls(qtbot: QtBot, view: RunsView):
    qtbot.waitUntil(lambda: view.curves.grid.is_complete and bool(view.curves.grid.plots))
    page = next(each for each in view.findChildren(MinSizeScroll) if each.isAncestorOf(view.splitter))
    before = view.splitter.sizes()[0]
    view.resize(580, 260)
    qtbot.waitUntil(lambda: view.curves.y() > view.table.height())
    assert view.curves.width() == view.splitter.width()
    inner = next(each for each in view.curves.findChildren(QScrollArea) if each.isAncestorOf(view.curves.grid))
    qtbot.waitUntil(lambda: page.verticalScrollBar().maximum() > 0 and inner.verticalScrollBar().maximum() == 0)
    view.resize(1280, 800)
    qtbot.waitUntil(lambda: page.verticalScrollBar().maximum() == 0 and view.splitter.sizes()[0] == before)


def test_shift_selects_a_range_from_the_keyboard(qtbot: QtBot, view: RunsView):
    first = view.table.shown.index(0, 0)
    view.table.selectionModel().setCurrentIndex(
        first, QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
    )
    qtbot.keyClick(view.table, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert len(view.table.chosen()) == 2


def test_the_filter_knows_fields_tags_and_the_archive(
    qtbot: QtBot, context: Context, workspace: Workspace, three: list[int]
) -> None:
    workspace.runs.tag([three[0]], ["paper"])
    view = shown(qtbot, context, 3)
    view.show_link(ViewLink({}, "tag:paper"))
    qtbot.waitUntil(lambda: names(view) == ["clip small"])
    view.show_link(ViewLink({}, "beta:8"))
    qtbot.waitUntil(lambda: names(view) == ["cloob small"])
    view.show_link(ViewLink({}, "beta>"))
    assert "value is missing" in view.count.text()
    assert names(view) == ["cloob small"], "what is no filter yet changes nothing"
    view.show_link(ViewLink({}, ""))
    choose(qtbot, view, three[0])
    view.actions_of_runs["archive"].trigger()
    qtbot.waitUntil(lambda: "clip small" not in names(view))
    context.jobs.undo.undo()
    qtbot.waitUntil(lambda: "clip small" in names(view))
    context.jobs.undo.redo()
    view.show_link(ViewLink({}, "is:archived"))
    qtbot.waitUntil(lambda: names(view) == ["clip small"])
    choose(qtbot, view, three[0])
    view.actions_of_runs["archive"].trigger()
    qtbot.waitUntil(lambda: names(view) == [])


@pytest.mark.parametrize("by", ["enter", "save"])
def test_typed_tags_are_saved_with_the_focus_that_the_dialog_has(
    qtbot: QtBot, context: Context, workspace: Workspace, three: list[int], by: str
) -> None:
    workspace.runs.tag([three[2]], ["goodbye"])
    view = shown(qtbot, context, 3)
    qtbot.waitUntil(lambda: context.jobs.run(three[2]).tags == "goodbye")
    choose(qtbot, view, three[0])
    view.actions_of_runs["tag"].trigger()
    sheet = view.findChild(TagSheet)
    qtbot.waitUntil(sheet.isVisible)
    qtbot.keyClicks(sheet.focusWidget(), "good")
    if by == "enter":
        popup = sheet.tags.completer().popup()
        assert popup.isVisible(), "another tag begins like it"
        qtbot.keyClick(popup, Qt.Key.Key_Return)
    else:
        qtbot.mouseClick(sheet.confirm, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: workspace.runs.get(three[0]).tags == "good")
    qtbot.waitUntil(lambda: context.jobs.run(three[0]).tags == "good")
    choose(qtbot, view, three[1])
    view.actions_of_runs["note"].trigger()
    note = view.findChild(NoteSheet)
    qtbot.waitUntil(note.isVisible)
    qtbot.keyClicks(note.focusWidget(), "why")
    assert note.note.toPlainText() == "why"
    note.reject()


def test_tags_and_a_note_are_written_in_dialogs(
    qtbot: QtBot, context: Context, workspace: Workspace, three: list[int]
) -> None:
    workspace.runs.tag(three[:2], ["paper"])
    workspace.runs.tag(three[:1], ["old"])
    view = shown(qtbot, context, 3)
    qtbot.waitUntil(lambda: context.jobs.run(three[0]).tags == "paper old")
    choose(qtbot, view, three[0], three[1])
    view.actions_of_runs["tag"].trigger()
    sheet = view.findChild(TagSheet)
    assert sheet.tags.text() == "paper"
    assert "old, which stay" in sheet.message.text()
    sheet.tags.setText("figure")
    sheet.confirm.click()
    qtbot.waitUntil(lambda: workspace.runs.get(three[1]).tags == "figure")
    assert workspace.runs.get(three[0]).tags == "old figure"
    choose(qtbot, view, three[1])
    view.actions_of_runs["note"].trigger()
    note = view.findChild(NoteSheet)
    note.note.setPlainText("# Why\n![x](file:///etc/hostname)")
    note.show_read()
    assert "Why" in note.read.toPlainText()
    note.confirm.click()
    qtbot.waitUntil(lambda: workspace.runs.get(three[1]).note.startswith("# Why"))
