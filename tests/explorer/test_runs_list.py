"""The list of runs: what stands on top, which eyes are open, and what may share an axis; through the real widgets."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QHoverEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QStyle, QStyleOptionViewItem
from pytestqt.qtbot import QtBot

from explorer import theme
from explorer.models.runs import DRAWN_ROLE, NOT_DRAWN, NOW, STATE_ROLE, GroupRow, RunColumn, turn_text
from explorer.views.runs.view import RunsView
from explorer.views.view import Context
from explorer.widgets.cells import EYE_ROOM_PX
from explorer.widgets.end_labels import LINE_PX, EndLabel, EndLabels, give_room, spread
from explorer.widgets.plot import Plot
from tests.explorer.widgets import show_widget
from trainer import config
from trainer.store import RunLog, Workspace

STEPS = range(48, 385, 48)


def finish(workspace: Workspace, run: config.Run, *, experiment: str = "", arm: str = "", n: int = 1024) -> int:
    number = workspace.runs.create(run, experiment=experiment, arm=arm)
    with RunLog.claim(workspace, number) as log:
        log.facts(heldout_pairs={"renderings": n})
        for step in STEPS:
            value = step / 384 * (1.0 if run.objective.kind == "cloob" else 0.9) - 0.05 * run.seed
            log.scalars(step, {"train/loss": 6 / step, "val/image_to_text_R@1": value, "val/text_to_image_R@1": value})
        log.progress(step=384, total_steps=384)
        log.headline(value, value)
        log.flush()
        log.status("finished")
    return number


def fill(workspace: Workspace) -> dict[str, int]:
    """Write two arms over two seeds that ended, a run of other data, one that waits, and return ids by name."""
    ids = {}
    for seed in (0, 1):
        for arm, objective in (("CLIP", config.Clip()), ("CLOOB", config.Cloob())):
            run = config.Run(name=f"duel, {arm}, seed {seed}", seed=seed, objective=objective)
            ids[f"{arm} {seed}"] = finish(workspace, run, experiment="duel", arm=arm)
    ids["other"] = finish(workspace, config.Run(name="own pairs"), n=15)
    waits = config.Run(name="duel, CLIP, seed 2", seed=2)
    ids["waits"] = workspace.runs.create(waits, experiment="duel", arm="CLIP", status="queued")
    return ids


@pytest.fixture
def context(make_context: Any) -> Context:
    return make_context()


def opened(qtbot: QtBot, context: Context, count: int) -> RunsView:
    view = show_widget(qtbot, RunsView(context), 1136, 732)
    context.jobs.watch()
    qtbot.waitUntil(lambda: len(view.table.runs.runs) == count)
    qtbot.waitUntil(lambda: any(isinstance(row, GroupRow) for row in view.table.shown.rows()))
    return view


def lines(view: RunsView) -> list[str | int]:
    return [row.title if isinstance(row, GroupRow) else row.id for row in view.table.shown.rows()]


def test_what_runs_is_on_top_then_the_queue_then_experiments_seed_by_seed(qtbot: QtBot, context: Context):
    ids = fill(context.workspace)
    running = context.workspace.runs.create(
        config.Run(name="duel, CLOOB, seed 2", seed=2), experiment="duel", arm="CLOOB"
    )
    with RunLog.claim(context.workspace, running) as log:
        log.status("running")
        log.progress(step=46, total_steps=384, phase="training")
        view = opened(qtbot, context, 7)
        seeds = [ids["CLIP 0"], ids["CLOOB 0"], ids["CLIP 1"], ids["CLOOB 1"]]
        expected = [NOW, running, ids["waits"], "Experiment: duel", *seeds, "No experiment", ids["other"]]
        qtbot.waitUntil(lambda: lines(view) == expected)
        states = [view.table.shown.index(row, RunColumn.LAST).data(STATE_ROLE) for row in (1, 2, 4)]
        assert states == ["46 of 384", "next", ""]
        assert view.table.shown.index(4, RunColumn.N).data() == "1,024"
        for column in (RunColumn.LAST, RunColumn.N):
            usual, other = (view.table.shown.index(row, column) for row in (4, 9))
            assert usual.data(Qt.ItemDataRole.ForegroundRole) is None
            assert other.data(Qt.ItemDataRole.ForegroundRole) == theme.color("secondary"), "15 pairs beside 1,024"
            why = (
                "One pair of 15 is 6.7 points. Most runs are measured on Scenes, unseen renderings, n = 1,024: "
                "not comparable."
            )
            assert other.data(Qt.ItemDataRole.ToolTipRole).endswith(why)
        assert view.table.shown.headerData(RunColumn.LAST, Qt.Orientation.Horizontal) == "R@1"
        view.table.collapse_all()
        assert lines(view) == [NOW, running, ids["waits"], "Experiment: duel", "No experiment"], "what runs is in sight"
        log.scalars(0, {log.run.metric: 0.312})
        log.headline(0.312, 0.312)
        log.status("stopped")
    qtbot.waitUntil(lambda: running not in lines(view), timeout=10_000)
    view.table.collapse([])
    row = lines(view).index(running)
    cell = view.table.shown.index(row, RunColumn.LAST)
    assert (cell.data(STATE_ROLE), cell.data()) == ("", "31.2 %")
    assert not cell.data(Qt.ItemDataRole.DecorationRole).isNull(), "a value of a stopped run is no result"
    assert cell.data(Qt.ItemDataRole.ForegroundRole) == theme.color("secondary")
    beside = cell.siblingAtColumn(RunColumn.N).data(Qt.ItemDataRole.ToolTipRole)
    assert beside == cell.data(Qt.ItemDataRole.ToolTipRole), "both say how far it came"
    assert "31.2 % at step 0" in beside
    best = view.table.shown.index(row, RunColumn.BEST)
    assert best.data(Qt.ItemDataRole.ForegroundRole) == theme.color("secondary")
    for index in (cell, best):
        for role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            assert "Not a finished result: stopped at 46 of 384." in index.data(role)
    before, model = lines(view), view.table.runs
    QApplication.sendEvent(view.table.viewport(), QEvent(QEvent.Type.Enter))
    model.show([replace(run, status="finished") if run.status == "queued" else run for run in model.runs])
    assert lines(view) == before, "the last run of its group ended, and no row went up under the pointer"
    QApplication.sendEvent(view.table.viewport(), QEvent(QEvent.Type.Leave))
    qtbot.waitUntil(lambda: NOW not in lines(view))


def test_the_whole_row_under_the_pointer_looks_hovered(qtbot: QtBot, context: Context):
    fill(context.workspace)
    view = opened(qtbot, context, 6)
    table = view.table
    at = QPointF(table.visualRect(table.shown.index(2, RunColumn.NAME)).center())

    def hovered() -> list[tuple[int, int]]:
        columns = [column for column in RunColumn if not table.isColumnHidden(column)]
        found = []
        for row in range(table.shown.rowCount()):
            for column in columns:
                option, index = QStyleOptionViewItem(), table.shown.index(row, column)
                option.widget = table
                table.itemDelegateForIndex(index).initStyleOption(option, index)
                if option.state & QStyle.StateFlag.State_MouseOver:
                    found.append((row, column))
        return found

    QApplication.sendEvent(table.viewport(), QHoverEvent(QEvent.Type.HoverMove, at, at, at))
    assert hovered() == [(2, RunColumn.NAME), (2, RunColumn.LAST), (2, RunColumn.N)]
    QApplication.sendEvent(table.viewport(), QHoverEvent(QEvent.Type.HoverLeave, at, at, at))
    assert not hovered()


def test_nine_runs_are_seen_and_the_charts_fill_the_rest(qtbot: QtBot, context: Context):
    ids = fill(context.workspace)
    context.selection.select_runs(ids["CLIP 0"], ids["CLOOB 0"])
    view = opened(qtbot, context, 6)
    table, grid = view.table, view.curves.grid
    assert table.viewport().height() // table.verticalHeader().defaultSectionSize() >= 9 + 3, "with three groups"
    assert 300 <= view.splitter.sizes()[0] <= 364
    qtbot.waitUntil(lambda: len(grid.plots) == 4 and grid.is_complete, timeout=10_000)
    qtbot.waitUntil(lambda: len({plot.y() for plot in grid.plots.values()}) == 2)  # two rows of two, once laid out
    walked = [grid.plots[next(iter(grid.plots))].plot]
    while len(walked) < 4:
        after = walked[-1].nextInFocusChain()
        while not isinstance(after, Plot):
            after = after.nextInFocusChain()
        walked.append(after)
    by_place = sorted(grid.plots.values(), key=lambda plot: (plot.y(), plot.x()))
    assert walked == [plot.plot for plot in by_place], "Tab goes through them as they are read"
    titles = {plot.panel.title: {line.key for line in plot.panel.lines} for plot in grid.plots.values()}
    assert titles["Training loss, CLIP"] == {ids["CLIP 0"], ids["CLIP 1"]}
    assert titles["Training loss, CLOOB"] == {ids["CLOOB 0"], ids["CLOOB 1"]}


def test_an_eye_hides_and_shows_and_other_data_have_axes_of_their_own(qtbot: QtBot, context: Context):
    ids = fill(context.workspace)
    context.selection.select_runs(ids["CLIP 0"], ids["CLOOB 0"])
    view = opened(qtbot, context, 6)
    duel = [ids["CLIP 0"], ids["CLOOB 0"], ids["CLIP 1"], ids["CLOOB 1"]]
    assert [run.id for run in view.drawn()][:4] == duel, "the eyes of the experiment of A and B are open"

    def eye(name: str) -> QPoint:
        index = view.table.shown.index(lines(view).index(ids[name]), RunColumn.NAME)
        rect = view.table.visualRect(index)
        return QPoint(rect.left() + EYE_ROOM_PX // 2, rect.center().y())

    QTest.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=eye("CLIP 1"))
    assert ids["CLIP 1"] not in {run.id for run in view.drawn()}
    assert view.table.chosen() == [], "an eye selects nothing"
    below = QPoint(40, view.table.viewport().height() - 4)
    reason = QContextMenuEvent.Reason.Mouse
    QApplication.sendEvent(view.table.viewport(), QContextMenuEvent(reason, below, view.table.mapToGlobal(below)))
    menu = QApplication.activePopupWidget()
    assert [action.objectName() for action in menu.actions() if action.isEnabled()] == ["run-new", "run-import"]
    menu.close()
    QTest.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=eye("other"))
    drawn = lambda: {p.panel.title: {line.key for line in p.panel.lines} for p in view.curves.grid.plots.values()}  # noqa: E731
    recall = "Image to text R@1, held-out, n = "
    qtbot.waitUntil(lambda: drawn().get(f"{recall}15") == {ids["other"]}, timeout=10_000)
    loss = "Training loss, CLIP"  # which needs no common data
    qtbot.waitUntil(lambda: drawn().get(loss) == {ids["CLIP 0"], ids["other"]}, timeout=10_000)
    assert (
        ids["other"] not in drawn()[next(title for title in drawn() if title.startswith(recall) and "15" not in title)]
    )
    QTest.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=eye("other"))
    assert ids["other"] not in {run.id for run in view.drawn()}
    view.table.choose([ids["CLOOB 0"], ids["CLOOB 1"]])
    view.table.setFocus()
    QTest.keyClick(view.table, Qt.Key.Key_Space)
    assert {run.id for run in view.drawn()} & set(duel) == {ids["CLIP 0"]}
    row = view.table.shown.index(lines(view).index(ids["CLOOB 1"]), RunColumn.NAME)
    assert row.data(DRAWN_ROLE) is False
    again = opened(qtbot, context, 6)
    assert {run.id for run in again.drawn()} & set(duel) == {ids["CLIP 0"]}, "eyes are remembered"


def test_what_another_program_trained_while_the_window_was_open_is_drawn_after_a_restart(qtbot, context: Context):
    ids = fill(context.workspace)
    context.selection.select_runs(ids["CLIP 0"], ids["CLOOB 0"])
    run = context.workspace.runs.create(config.run_elsewhere("watched", config.NoData(called="pairs")))
    with RunLog.claim(context.workspace, run) as log:
        log.status("running")
        view = opened(qtbot, context, 7)
        qtbot.waitUntil(lambda: run in {row.id for row in view.drawn()})
        log.status("stopped")
    context.jobs.poll()
    qtbot.waitUntil(lambda: not context.jobs.run(run).active)
    again = opened(qtbot, context, 7)
    assert {row.id for row in again.drawn()} == {row.id for row in view.drawn()}
    assert run in {row.id for row in again.drawn()}
    again.toggle_eyes([run])
    closed = opened(qtbot, context, 7)
    assert run not in {row.id for row in closed.drawn()}, "nor does it open what was closed"
    hint = closed.table.shown.index(lines(closed).index(run), RunColumn.NAME).data(Qt.ItemDataRole.ToolTipRole)
    assert NOT_DRAWN in hint.split("\n")


def test_other_runs_as_a_and_b_close_no_eye(qtbot: QtBot, context: Context):
    ids = fill(context.workspace)
    context.selection.select_runs(ids["other"], None)
    view = opened(qtbot, context, 6)
    assert {run.id for run in view.drawn()} == {ids["other"]}
    context.selection.select_runs(ids["CLIP 0"], ids["CLOOB 0"])
    assert {run.id for run in view.drawn()} == {ids["other"], ids["CLIP 0"], ids["CLOOB 0"]}, "theirs alone opens"
    view.toggle_eyes([ids["CLIP 0"]])
    context.selection.select_runs(ids["other"], ids["CLIP 0"])
    assert {run.id for run in view.drawn()} == {ids["other"], ids["CLOOB 0"]}, "one that was closed stays closed"


def test_a_group_folds_over_a_run_that_is_chosen(qtbot: QtBot, context: Context):
    ids = fill(context.workspace)
    view = opened(qtbot, context, 6)
    view.table.choose([ids["other"], ids["CLOOB 1"]])
    for title in ("Experiment: duel", "No experiment"):
        index = view.table.shown.index(lines(view).index(title), RunColumn.NAME)
        QTest.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=view.table.visualRect(index).center())
    assert not {ids["other"], ids["CLOOB 1"]} & set(lines(view))
    assert view.table.chosen() == []


def test_enter_opens_log_and_configuration_and_esc_closes_them(qtbot: QtBot, context: Context):
    ids = fill(context.workspace)
    view = opened(qtbot, context, 6)
    assert view.details() is None
    view.table.choose([ids["CLIP 1"]])
    view.table.setFocus()
    with qtbot.waitSignal(view.details_changed):
        QTest.keyClick(view.table, Qt.Key.Key_Return)
    assert view.details() is view.tabs
    assert [view.tabs.widget(tab) for tab in range(2)] == [view.log, view.config]
    assert view.close_panel(), "Esc of the window"
    assert view.details() is None
    assert not view.close_panel()


def test_names_at_ends_of_curves_do_not_overlap_and_lose_what_all_share_where_room_is_scarce(dressed):
    tops = spread([50.0, 50.0, 52.0, 190.0, 10.0], 0.0, 200.0)
    ordered = sorted(tops)
    assert all(after - before >= LINE_PX for before, after in pairwise(ordered))
    assert (min(tops), max(tops)) == (10.0, 200.0 - LINE_PX)
    plots = [EndLabels(Plot()) for _ in range(2)]
    for run, end in zip(("CLIP", "CLOOB"), plots, strict=True):
        end.show_labels([EndLabel(f"{run} · clothes · s0", "text", 1.0, 0.0)])
    for panel_px, written in (
        (900, ["CLIP · clothes · s0", "CLOOB · clothes · s0"]),
        (300, ["CLIP", "CLOOB"]),
    ):
        give_room(plots, panel_px)
        assert [end.written(end.labels[0]) for end in plots] == written


def test_a_curve_that_has_just_begun_leaves_its_name_room_in_the_plot(dressed):
    """At 16 % of its axis the name stood in the plot, and an empty gutter took a third of it."""
    names, margins = EndLabels(plot := Plot()), []
    plot.setXRange(0.0, 100.0, padding=0)
    for step in (0.0, 16.0, 80.0, 100.0):
        names.show_labels([EndLabel("CLIP · mypairs · s0", "text", step, 0.0)])
        give_room([names], 375)
        margins.append(plot.getPlotItem().layout.getContentsMargins()[2])
    assert margins[:2] == [0, 0]
    assert 0 < margins[2] < margins[3]
    turns = ["next", *(f"{turn} in queue" for turn in ("2nd", "3rd", "4th", "11th", "21st"))]
    assert [turn_text(n) for n in (1, 2, 3, 4, 11, 21)] == turns
