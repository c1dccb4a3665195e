"""The inspector: the selected pair in each run, neighbors, state and tags with undo, and its place in the window."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from explorer.models.thumbnails import Thumbnails
from explorer.views import ViewEntry
from explorer.views.chart_tab import ChartTab
from explorer.views.selected import PairTable, pair_load
from explorer.views.selected.inspector import PairInspector
from explorer.views.selected.pair_cards import PER_ROW
from explorer.views.selected.table import LINE_PX
from explorer.views.view import View
from explorer.window import Window
from explorer.window.pages import INSPECTOR_KEY, LEAST_DETAILS
from explorer.window.side_panel import SidePanel
from tests.explorer.widgets import show_widget
from trainer.charts.one_pair import OnePair, one_pair, open_snapshots
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Request, Target
from trainer.store import Items, read_snapshot


@pytest.fixture
def inspector(make_context: Callable, two_runs: tuple[int, int], qtbot) -> PairInspector:
    """Return an inspector of both runs with pairs 3, 7 and 20 selected."""
    context = make_context()
    made = show_widget(qtbot, PairInspector(context), 300, 900)
    context.jobs.watch()
    qtbot.waitUntil(lambda: context.jobs.is_read, timeout=30_000)
    context.selection.select_runs(*two_runs)
    context.selection.pairs = (3, 7, 20)
    wait_for(qtbot, made, 3)
    return made


def wait_for(qtbot, inspector: PairInspector, row: int) -> None:
    qtbot.waitUntil(lambda: inspector.area.kind == "ready" and inspector.pair.row == row, timeout=30_000)


def as_computed(inspector: PairInspector, row: int) -> OnePair:
    context = inspector.context
    request = Request(tuple(Target(run) for run in context.selection.runs))
    return one_pair(context.workspace, open_snapshots(context.workspace, request), row)


def test_it_shows_the_first_selected_pair_as_both_runs_see_it(qtbot, inspector: PairInspector) -> None:
    wanted = as_computed(inspector, 3)
    assert inspector.pair == wanted
    assert inspector.caption.text() == wanted.caption
    for column, one in enumerate(wanted.runs, start=1):
        assert inspector.ranks.text(0, column) == f"{one.caption_rank:,}"
        assert inspector.ranks.text(1, column) == f"{one.image_rank:,}"
    for row in range(3):  # the name of a measure explains it as its values do
        assert inspector.ranks.cells[row, 1].toolTip() in inspector.ranks.cells[row, 0].toolTip() != ""
    assert inspector.place.text() == "1 of 3"
    assert "n\u00a0=\u00a048" in inspector.about.text()
    inspector.about.setText("class orange of scenes " * 9)
    for label in (inspector.caption, inspector.about):
        qtbot.waitUntil(lambda label=label: label.height() >= label.heightForWidth(label.width()))
    end = inspector.about.mapTo(inspector, inspector.about.rect().bottomLeft()).y()
    assert 0 <= inspector.ranks.mapTo(inspector, inspector.ranks.rect().topLeft()).y() - end < 40, (
        "no void in the middle"
    )
    shown = [[tile.pair for tile in row.tiles.items] for row in inspector.near.rows]
    assert shown == [[near.row for near in one.near] for one in wanted.runs]
    assert len(inspector.course.plot.spec.curves) == 2


def test_in_a_high_inspector_the_picture_is_large_and_the_nearest_ones_fill_its_width(qtbot, inspector) -> None:
    for high, is_large in ((900, False), (1380, True)):
        inspector.resize(300, high)
        qtbot.waitUntil(lambda large=is_large: (inspector.picture.width() > 200) is large)
        end = inspector.picture.rect().bottomLeft()
        qtbot.waitUntil(
            lambda large=is_large, end=end: (
                (inspector.caption.mapTo(inspector, QPoint()).y() > inspector.picture.mapTo(inspector, end).y())
                is large
            )
        )
    row = inspector.near.rows[0]
    qtbot.waitUntil(lambda: inspector.near.isVisible() and row.cell.size.width() > 50)
    lines = [row.visualRect(row.tiles.index(line)).top() for line in range(row.tiles.rowCount())]
    assert lines.count(lines[0]) == PER_ROW


def test_picture_and_caption_do_not_wait_for_ranks_among_very_many(inspector, monkeypatch, qtbot) -> None:
    monkeypatch.setattr(pair_load, "MOST_AT_ONCE", 10)
    shown = []
    monkeypatch.setattr(inspector.area, "partial", lambda text: shown.append((inspector.caption.text(), text)))
    inspector.walk(1)
    wait_for(qtbot, inspector, 7)
    assert inspector.pair == as_computed(inspector, 7)
    assert shown == [(inspector.pair.caption, "Ranks and neighbors follow: 48 pairs are compared.")]


def test_it_walks_the_selected_pairs_and_every_view_rings_the_one_that_is_shown(inspector, qtbot) -> None:
    qtbot.mouseClick(inspector.forth, Qt.MouseButton.LeftButton)
    wait_for(qtbot, inspector, 7)
    assert inspector.context.selection.current == 7
    inspector.walk(-1)
    inspector.walk(-1)
    wait_for(qtbot, inspector, 20)
    inspector.context.selection.pairs = (1, 20)
    wait_for(qtbot, inspector, 20)
    assert inspector.place.text() == "2 of 2"


def test_a_click_on_a_neighbor_selects_it(inspector, qtbot) -> None:
    row = inspector.near.rows[0]
    first = row.tiles.index(0)
    wanted = row.tiles.items[0].pair
    qtbot.mouseClick(row.viewport(), Qt.MouseButton.LeftButton, pos=row.visualRect(first).center())
    assert inspector.context.selection.pairs.tolist() == [wanted]
    wait_for(qtbot, inspector, wanted)


def test_a_state_is_stored_and_undone(inspector, qtbot) -> None:
    context, key = inspector.context, inspector.pair.key
    flag = inspector.findChild(QPushButton, "inspector-flagged")
    qtbot.mouseClick(flag, Qt.MouseButton.LeftButton)
    stored = lambda: {one.pair: one.state for one in context.workspace.reviews.all()}  # noqa: E731
    qtbot.waitUntil(lambda: stored() == {key: "flagged"})
    assert flag.isChecked()
    context.selection.undo.undo()
    qtbot.waitUntil(lambda: stored() == {})
    qtbot.waitUntil(lambda: not flag.isChecked())
    context.selection.undo.redo()
    qtbot.waitUntil(lambda: stored() == {key: "flagged"} and flag.isChecked())
    inspector.pair_actions.decide("flagged")  # once more takes it back
    qtbot.waitUntil(lambda: stored() == {} and not context.background.busy)
    assert not flag.isChecked()


def test_a_tag_is_a_kept_selection_and_is_undone(inspector, qtbot) -> None:
    context = inspector.context
    kept = lambda: {one.name: one.items for one in context.workspace.selections.all()}  # noqa: E731
    inspector.pair_actions.name.setText("odd")
    QTest.keyClick(inspector.pair_actions.name, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: kept() == {"odd": (inspector.pair.id,)})
    assert inspector.loaded.pair.row == 3
    chip = inspector.pair_actions.chips[0]
    assert chip.isVisible()
    assert chip.accessibleName() == "Remove tag odd"
    inspector.context.selection.pairs = (7,)
    wait_for(qtbot, inspector, 7)
    assert not chip.isVisible()
    first = as_computed(inspector, 3).id
    inspector.pair_actions.tag("odd", on=True)
    qtbot.waitUntil(lambda: kept() == {"odd": (first, inspector.pair.id)})
    qtbot.mouseClick(chip, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: kept() == {"odd": (first,)})
    context.selection.undo.undo()
    qtbot.waitUntil(lambda: kept() == {"odd": (first, inspector.pair.id)})


def test_without_a_pair_it_says_how_to_select_one_and_other_data_are_a_sentence(inspector, qtbot) -> None:
    inspector.context.selection.pairs = ()
    assert inspector.area.kind == "empty"
    inspector.context.selection.pairs = (4_000,)
    qtbot.waitUntil(lambda: inspector.area.kind == "failed", timeout=30_000)
    assert "rows 0 to 47" in inspector.area.page.text.text()
    inspector.context.selection.pairs = (5,)
    wait_for(qtbot, inspector, 5)


class Blank(View):
    """A view of pairs."""

    title = "Blank"


class Runs(View):
    """A view without pairs."""

    title = "Blank"
    shows_pairs = False


class OwnEntry(ViewEntry):
    def load(self) -> type[View]:
        return Runs if self.name == "runs" else Blank


@pytest.fixture
def window(window_of, tmp_path: Path) -> Window:
    return window_of(tmp_path, [OwnEntry(name, "Blank", "square", "Blank") for name in ("one", "two", "runs")])


def test_it_comes_with_a_selection_in_every_view_and_leaves_with_esc_or_its_button(window: Window, qtbot) -> None:
    window.selection.propose(run_a=1)
    for name in ("one", "two"):
        window.navigation.go_to(name)
        assert not window.inspector.isVisible(), "nothing is selected"
        window.selection.pairs = (1,)
        assert window.inspector.isVisible()
        qtbot.waitUntil(lambda: window.pages.sizes()[1] >= LEAST_DETAILS)
        if name == "one":
            qtbot.keyClick(window, Qt.Key.Key_Escape)
        else:
            window.inspector.close_button.click()
        assert not window.inspector.isVisible()
    window.selection.pairs = (1,)
    window.menus.bindings.actions["toggleInspector"].trigger()
    assert not window.inspector.isVisible()
    assert window.settings.value(INSPECTOR_KEY, True) is False
    window.pages.toggle_inspector()
    assert window.inspector.isVisible()
    window.navigation.go_to("runs")
    assert not window.inspector.isVisible(), "a page such as Home shows no pairs"


def test_the_inspector_gets_what_the_part_above_it_does_not_fill(qtbot, background, dressed) -> None:
    side, table = SidePanel(), PairTable(Thumbnails(background), name="t", label="t", narrow=True)
    qtbot.addWidget(side)
    side.resize(300, 900)
    side.set_inspector(QPushButton())
    side.show()
    side.show_parts(table, pair=True)
    for rows, is_full in ((3, False), (90, True)):
        items = Items(np.arange(rows), [""] * rows, ["a cross"] * rows, ["red"] * rows, [""] * rows)
        table.pairs.show(items, np.arange(rows))
        qtbot.waitUntil(lambda full=is_full: (side.own.height() > 500) is full and side.own.height() > 3 * LINE_PX)
        qtbot.waitUntil(lambda full=is_full: table.verticalScrollBar().isVisible() is full)
    side.show_parts(table, pair=False)
    qtbot.waitUntil(lambda: side.own.height() == side.height())


def test_a_view_that_shows_the_neighbors_has_none_in_the_inspector(window: Window, monkeypatch) -> None:
    window.navigation.go_to("two")
    monkeypatch.setattr(window.pages.open_view, "shows_neighbors", True)
    for name, is_hidden in (("one", False), ("two", True)):
        window.navigation.go_to(name)
        assert window.inspector.near_panel.isHidden() == is_hidden


def test_selected_pairs_are_ticked_under_the_histograms_and_ringed_in_the_clouds(
    make_context: Callable, two_runs: tuple[int, int], qtbot
) -> None:
    context = make_context()
    context.selection.select_runs(*two_runs)
    context.selection.pairs = (3, 7)
    cosines, gap = (ChartTab(context, name, Thumbnails(context.background)) for name in ("similarity", "gap"))
    for tab in (cosines, gap):
        qtbot.addWidget(tab)
        tab.show()
        tab.refresh()
        qtbot.waitUntil(lambda t=tab: t.pane.answer is not None and not t.pane.busy, timeout=60_000)
    for place, run in enumerate(two_runs):
        shot = read_snapshot(choose_snapshot(context.workspace, context.workspace.runs.get(run)).folder)
        matched = [sum(float(a) * float(b) for a, b in zip(shot.image[row], shot.text[row])) for row in (3, 7, 20)]
        plot = cosines.pane.panel.cards[f"cosines-{place}"].plot
        assert plot.ticked() == pytest.approx(matched[:2], abs=1e-5)
        assert len(gap.pane.panel.cards[f"clouds-{place}"].plot.lit()) == 4  # two images and two texts
    context.selection.pairs = (20,)
    assert plot.ticked() == pytest.approx(matched[2:], abs=1e-5)
    context.selection.pairs = ()
    assert not len(plot.ticked())
