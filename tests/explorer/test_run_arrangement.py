"""Columns of one's own and groups of the table of runs: shown, sorted, kept, linked, and reached by keys."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from explorer import theme
from explorer.models.runs import GroupRow, RunColumn, RunsFilter, RunsModel
from explorer.state.view_link import ViewLink, link_to, read_link
from explorer.views.runs.columns_sheet import ColumnsSheet
from explorer.views.runs.runs_table import RunsTable
from explorer.views.runs.view import RunsView
from explorer.views.view import Context
from explorer.widgets.finder import Choice
from tests.explorer.test_many_runs import row
from tests.explorer.widgets import add_widget, show_widget
from tests.nightly import few_plain
from trainer import config
from trainer.store import RunLog, RunRow
from trainer.store.run_values import ValueColumn

OWN = len(RunColumn)


@pytest.fixture
def view(qtbot: QtBot, make_context: Any) -> RunsView:
    """Return the view over two CLOOB runs of different beta, one of them of an experiment, and a CLIP run."""
    context: Context = make_context()
    runs = [config.Run(name="plain"), config.Run(name="small", objective=config.Cloob())]
    runs.append(config.replace(config.Run(name="large", objective=config.Cloob()), "beta", "14"))
    for place, run in enumerate(runs):
        number = context.workspace.runs.create(run, experiment="duel" if place == 2 else "")
        with RunLog.claim(context.workspace, number) as log:
            log.scalars(1, {"val/image_to_text_R@1": 0.1 * (3 - place)})
            log.status("finished")
    made = show_widget(qtbot, RunsView(context), 1280, 800)
    context.jobs.watch()
    qtbot.waitUntil(lambda: len(made.table.runs.runs) == 3)
    return made


def lines(view: RunsView) -> list[str]:
    """Return names of runs and titles of groups as the table shows them."""
    return [row.title if isinstance(row, GroupRow) else row.name for row in view.table.shown.rows()]


def test_a_field_and_a_metric_become_columns_that_sort(qtbot: QtBot, view: RunsView):
    view.arrangement.choose(columns=["objective.scale_hopfield", "image_to_text_R@1"], group="")
    table = view.table
    qtbot.waitUntil(lambda: table.shown.index(0, OWN + 1).data() not in (None, ""))
    header = [table.shown.headerData(OWN + place, Qt.Orientation.Horizontal) for place in range(2)]
    assert header == ["objective.scale_hopfield", "Image to text R@1, held-out"]
    table.sortByColumn(OWN, Qt.SortOrder.DescendingOrder)
    assert [run.name for run in table.shown.runs()] == ["large", "small", "plain"]
    table.sortByColumn(OWN + 1, Qt.SortOrder.AscendingOrder)
    assert [run.name for run in table.shown.runs()] == ["large", "small", "plain"]
    assert [table.shown.index(place, OWN + 1).data() for place in range(3)] == ["10.0 %", "20.0 %", "30.0 %"]
    view.filter.setText("scale_hopfield>8")
    qtbot.waitUntil(lambda: lines(view) == ["large"])
    table.choose([3])
    view.arrangement.choose(columns=[])
    assert table.shown.columnCount() == OWN
    assert [run.id for run in table.chosen()] == [3]


def test_columns_and_groups_are_there_the_next_time(qtbot: QtBot, view: RunsView):
    view.arrangement.choose(columns=["seed"], group="experiment")
    view.table.setColumnWidth(OWN, 233)
    qtbot.waitUntil(lambda: "Experiment: duel" in lines(view))
    view.table.runs.hold_order(True)  # as the pointer over the rows does
    view.arrangement.choose(group="")
    qtbot.waitUntil(lambda: "Experiment: duel" not in lines(view))
    view.table.runs.hold_order(False)
    view.arrangement.choose(group="experiment")
    qtbot.waitUntil(lambda: "Experiment: duel" in lines(view))
    view.table.collapse(["Experiment: duel"])
    again = show_widget(qtbot, RunsView(view.context))
    again.refresh()
    qtbot.waitUntil(lambda: lines(again) == ["Experiment: duel", "No experiment", "small", "plain"])
    assert again.table.columnWidth(OWN) == 233
    assert again.hidden.isVisible(), "what a stored group hides is told"
    assert again.hidden.text() == "1 in collapsed groups · Expand all"
    QTest.mouseClick(again.hidden, Qt.MouseButton.LeftButton)
    assert (len(lines(again)), again.hidden.isVisible()) == (5, False)


def test_groups_are_collapsed_and_left_by_keys(qtbot: QtBot, view: RunsView):
    view.arrangement.choose(group="objective.scale_hopfield")
    eight, fourteen = "objective.scale_hopfield: 8", "objective.scale_hopfield: 14"
    whole = [eight, "small", fourteen, "large", "No objective.scale_hopfield", "plain"]
    qtbot.waitUntil(lambda: lines(view) == whole)
    table = view.table
    table.setFocus()
    table.choose([3])
    assert table.currentIndex().row() == 3
    QTest.keyClick(table, Qt.Key.Key_Left)
    assert table.currentIndex().row() == 2
    QTest.keyClick(table, Qt.Key.Key_Left)
    assert lines(view) == [eight, "small", fourteen, "No objective.scale_hopfield", "plain"]
    QTest.keyClick(table, Qt.Key.Key_Right)
    assert lines(view) == whole
    QTest.keyClick(table, Qt.Key.Key_Up)
    assert [run.name for run in table.chosen()] == ["small"]
    table.collapse_all()
    assert lines(view) == [eight, fourteen, "No objective.scale_hopfield"]
    assert view.count.text() == "3 runs"
    table.selectAll()
    assert table.chosen() == []


def test_a_filter_hides_groups_without_a_run_that_fits(qtbot: QtBot, view: RunsView):
    view.arrangement.choose(group="experiment")
    qtbot.waitUntil(lambda: len(lines(view)) == 5)
    view.filter.setText("small")
    assert lines(view) == ["No experiment", "small"]
    group = view.table.group_at(0)
    assert group is not None
    assert view.table.shown.count_of(group) == 1
    assert (view.hidden.text(), view.hidden.isVisible()) == ("2 hidden by the filter · Clear filter", True)
    QTest.mouseClick(view.hidden, Qt.MouseButton.LeftButton)
    assert (view.filter.text(), len(lines(view)), view.hidden.isVisible()) == ("", 5, False)
    view.context.workspace.runs.change(1, archived_at=1.0)
    view.context.jobs.runs_changed.emit(view.context.workspace.runs.all())
    assert view.hidden.text() == "1 archived · Show archived"
    QTest.mouseClick(view.hidden, Qt.MouseButton.LeftButton)
    assert [run.id for run in view.table.shown.runs()] == [1]


def test_a_link_keeps_columns_and_groups(qtbot: QtBot, view: RunsView):
    view.arrangement.choose(columns=["seed", "val/image_to_text_R@1"], group="tag")
    link = link_to(view.context.selection.now, "small", view.link_state()[1])
    found = read_link(link)
    view.arrangement.choose(columns=[], group="")
    view.show_link(ViewLink({}))
    assert (view.arrangement.columns, view.arrangement.group) == ((), "")
    view.show_link(found)
    assert (view.arrangement.columns, view.arrangement.group) == (("seed", "val/image_to_text_R@1"), "tag")
    assert view.filter.text() == "small"
    older = read_link("contrastive-explorer://open?view=runs")
    assert (older.columns, older.group) == (None, None)
    view.show_link(ViewLink({}, columns=("x" * 300, *map(str, range(99))), group=""))
    assert len(view.arrangement.columns) == 30


def test_columns_are_searched_added_moved_and_removed(qtbot: QtBot):
    choices = [Choice(name, words, name, kind) for name, words, kind in (
        ("seed", "seed", "Configuration"),
        ("objective.beta", "objective.beta", "Configuration"),
        ("val/image_to_text_R@1", "Image to text R@1, held-out, n = 512", "Metric"),
        ("tag", "Tags", "Run"),
    )]  # fmt: skip
    sheet = show_widget(qtbot, ColumnsSheet(choices, ["tag", "gone"]))
    sheet.activateWindow()
    qtbot.waitUntil(sheet.isActiveWindow)
    kept: list[Sequence[str]] = []
    sheet.chosen.connect(kept.append)
    QTest.keyClicks(sheet.search, "image r@1")
    QTest.keyClick(sheet.search, Qt.Key.Key_Return)
    assert sheet.columns == ["tag", "gone", "val/image_to_text_R@1"]
    sheet.names.setFocus()
    QTest.keyClick(sheet.names, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert sheet.columns == ["tag", "val/image_to_text_R@1", "gone"]
    sheet.names.setCurrentRow(2)
    QTest.keyClick(sheet.names, Qt.Key.Key_Delete)
    sheet.confirm.click()
    assert kept == [["tag", "val/image_to_text_R@1"]]


@few_plain(2, "seed", range(5))
def test_any_change_of_groups_ends_in_what_a_fresh_table_shows(qapp: QApplication, seed: int):
    rng = random.Random(seed)
    model, by = RunsModel(), ValueColumn("status", "Status")
    shown = RunsFilter(model)
    for _ in range(30):
        deed = rng.randrange(4)
        if deed == 0:
            model.show_groups(None if model.group_by is not None else by)
        elif deed == 1:
            shown.look_for(rng.choice(["", "clip", "is:failed", "run"]))
        elif deed == 2:
            shown.collapse([f"Status: {rng.choice(['failed', 'finished'])}"])
        else:
            numbers = sorted(rng.sample(range(1, 30), rng.randrange(0, 25)))
            model.show([
                replace(row(number), last=rng.random(), status=rng.choice(["failed", "finished", "stopped"]))
                for number in numbers
            ])  # fmt: skip
        fresh = RunsModel()
        fresh.show_groups(model.group_by)
        fresh.show(model.runs)
        assert titles(model) == titles(fresh)
        seen = [shown.index(place, RunColumn.NAME).data() for place in range(shown.rowCount())]
        assert seen == [one.title if isinstance(one, GroupRow) else one.short_name for one in shown.rows()]


def titles(model: RunsModel) -> list[str | int]:
    return [one.id if isinstance(one, RunRow) else one.title for one in model.rows]


def test_without_the_column_of_the_arrow_the_order_is_its_own(dressed: QApplication, qtbot: QtBot):
    table = add_widget(qtbot, RunsTable())
    table.runs.show([row(number, started_at=float(number)) for number in range(1, 6)])
    table.runs.show_columns([ValueColumn("seed", "seed", {number: -number for number in range(1, 6)})])
    table.sortByColumn(OWN, Qt.SortOrder.DescendingOrder)
    assert [run.id for run in table.shown.runs()] == [1, 2, 3, 4, 5]
    table.show()
    table.runs.show_columns([])
    newest_first = [5, 4, 3, 2, 1]
    assert [run.id for run in table.shown.runs()] == newest_first
    saved = table.save_columns()
    theme.theme().mode = "dark"
    assert table.shown.headerData(OWN, Qt.Orientation.Horizontal) is None, "a header asks for a column that is gone"
    table.sortByColumn(RunColumn.NAME, Qt.SortOrder.AscendingOrder)
    table.restore_columns(saved)
    assert table.horizontalHeader().sortIndicatorSection() == -1
    assert [run.id for run in table.shown.runs()] == newest_first


def test_n_is_read_whole(dressed: QApplication, qtbot: QtBot):
    table = add_widget(qtbot, RunsTable(), 352, 300)
    measured = {"last": 0.5, "metric": "val/image_to_text_R@1"}
    runs = [row(number, **measured, facts={"heldout_pairs": {"val": 4**number}}) for number in range(1, 13)]
    for count in (3, len(runs)):
        table.runs.show(runs[:count])
        longest = table.shown.index(0, RunColumn.N)
        assert longest.data() == f"{4**count:,}"
        assert table.columnWidth(RunColumn.N) >= table.sizeHintForIndex(longest).width()
    table.runs.show([replace(runs[0], facts={"heldout_pairs": {"val": 10**12}}), *runs[1:]])
    longest = next(index for line in range(12) if (index := table.shown.index(line, RunColumn.N)).data()[-4:] == ",000")
    assert table.columnWidth(RunColumn.N) >= table.sizeHintForIndex(longest).width()
    watched = replace(runs[0], metric="train_loss", status="stopped", last=1234.5678)
    table.runs.show([watched, *runs[1:]])
    value = next(index for line in range(12) if "loss" in (index := table.shown.index(line, RunColumn.LAST)).data())
    assert table.columnWidth(RunColumn.LAST) >= table.sizeHintForIndex(value).width()


def test_one_entry_offers_the_built_in_columns_and_all_others(qtbot: QtBot, view: RunsView):
    arrangement = view.arrangement
    entries = [action.text() for action in arrangement.button.menu().actions()]
    assert [text for text in entries if "olumn" in text] == ["Columns…"]
    arrangement.findChild(QAction, "runs-built-in-columns").trigger()
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    texts = [action.text() for action in menu.actions()]
    menu.close()
    assert "Status" in texts
    assert texts[-1] == "More columns…"
