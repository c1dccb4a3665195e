"""The slider closes the gap in both runs and shows the effect; the Geometry view shows the tests' numbers."""

from dataclasses import replace
from threading import Event

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from explorer.render_qt.xy_plot import XYPlotCard
from explorer.views import chart_pane
from explorer.views.gap import GapView
from explorer.views.geometry import GeometryView
from explorer.widgets.progress_row import Cancelled, ProgressRow
from tests.explorer.test_board import turns_of_plots
from trainer.analysis.gap import close_gap
from trainer.analysis.geometry import ajne, alignment, modality_gap
from trainer.analysis.retrieval import ranks, recall_at
from trainer.analysis.uniformity_tests import gine_of, pair_sums
from trainer.charts.measures import gap, geometry
from trainer.store import read_snapshot


def shown_gap(qtbot, show_view) -> GapView:
    view = show_view(GapView, 1096, 716)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy, timeout=30_000)
    return view


def test_moving_the_slider_closes_the_gap_at_once_and_then_exactly(qtbot, show_view, two_runs, monkeypatch):
    monkeypatch.setattr(gap, "LIVE", 20)
    # Long enough to look at the sample before all pairs are measured, also next to other work.
    monkeypatch.setattr(chart_pane, "REST_MS", 3_000)
    view = shown_gap(qtbot, show_view)
    cards = view.pane.panel.cards
    board = view.pane.panel
    view.resize(view.width() + 1104 - board.viewport().width(), view.height() + 692 - board.viewport().height())
    qtbot.waitUntil(lambda: not board.verticalScrollBar().maximum())  # as in a window of 1280x800
    sizes = {entry.words: entry.size for entry in cards["clouds-0"].legend.entries}
    assert sizes["images"] < sizes["mean image"] == 15, "marks of the legend are as those of the plot"
    before = [list(cards[f"clouds-{place}"].shown()) for place in (0, 1)]
    view.controls["gap"].controls["share"].slider.setValue(95)
    assert view.pane._work is None, "nothing is computed while the slider moves"
    qtbot.waitUntil(lambda: not view.pane.panel.filling, timeout=30_000)
    cards = view.pane.panel.cards
    assert cards["now"].title.text() == "95 % closed"
    assert cards["now"].text("n pairs") == "20"
    assert all(old != list(cards[f"clouds-{place}"].shown()) for place, old in enumerate(before)), "both clouds moved"
    qtbot.waitUntil(lambda: not view.busy, timeout=30_000)
    for place, run in enumerate(two_runs):
        snapshot = read_snapshot(view.context.workspace.results.snapshots(run)[-1].folder)
        image, text = close_gap(snapshot.image, snapshot.text, 0.95)
        assert cards["now"].text("n pairs", place) == "48"
        assert cards["now"].text("Gap", place) == f"{modality_gap(image, text)[1]:.4f}"
        assert cards["open"].text("Gap", place) == f"{modality_gap(snapshot.image, snapshot.text)[1]:.4f}"
        recall = "Image to text R@1, unseen renderings, n = 48"
        assert cards["now"].text(recall, place) == f"{recall_at(ranks(image, text), 1):.3f}"
    assert view.command()[-2:] == ["--share", "95"]


def test_the_plots_of_a_chart_are_made_one_in_a_turn(qtbot, show_view, monkeypatch):
    turns = turns_of_plots(monkeypatch)
    view = shown_gap(qtbot, show_view)
    plots = [card for card in view.pane.panel.cards.values() if isinstance(card, XYPlotCard)]
    assert len(turns) == len(set(turns)) == len(plots) > 2


def test_all_pairs_are_measured_when_asked_and_those_of_other_runs_are_not(qtbot, show_view, monkeypatch):
    monkeypatch.setattr("explorer.views.gap.MOST_PAIRS", 20)
    view = shown_gap(qtbot, show_view)
    assert view.whole.isVisible()
    assert view.pane.panel.cards["open"].text("n pairs", 1) == "20"
    assert view.whole.text() == "Measure all 48 pairs"
    QTest.mouseClick(view.whole, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not view.busy and not view.whole.isVisible(), timeout=30_000)
    assert view.pane.panel.cards["open"].text("n pairs", 1) == "48"
    assert view.command()[-2:] == ["--most", "48"]
    view.context.selection.run_b = None
    qtbot.waitUntil(lambda: not view.busy and len(view.pane.answer.data.found) == 1, timeout=30_000)
    assert view.pane.panel.cards["open"].text("n pairs") == "20"


def test_each_run_is_measured_at_its_own_step(qtbot, show_view, two_runs):
    view = shown_gap(qtbot, show_view)
    view.context.selection.select_snapshots((two_runs[0], 20), (two_runs[1], 10))
    qtbot.waitUntil(lambda: not view.busy and view.pane.answer.data.found[1].step == 10, timeout=30_000)
    titles = [view.pane.panel.cards[f"clouds-{place}"].title.text() for place in (0, 1)]
    assert titles == ["good", "bad"], "only one run at two steps is told apart by them"
    assert [run.step for run in view.pane.answer.data.found] == [20, 10]
    words = view.command()
    assert words[words.index("--step") + 1 :][:2] == ["20", "10"]


def test_one_run_and_none(qtbot, show_view):
    view = shown_gap(qtbot, show_view)
    view.context.selection.run_b = None
    qtbot.waitUntil(lambda: not view.busy and len(view.pane.answer.data.found) == 1, timeout=30_000)
    view.context.selection.run_a = None
    assert view.is_empty
    assert view.command() is None


def test_geometry_shows_the_tests(qtbot, show_view, two_runs, monkeypatch):
    monkeypatch.setattr(geometry, "DRAWS", 39)
    view = show_view(GeometryView, 1096, 716)
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy, timeout=20_000)
    cards = view.pane.panel.cards
    notes, panel = view.pane.panel.notes, view.pane.panel
    below = panel.viewport().height() - notes.mapTo(panel, notes.rect().bottomLeft()).y()
    assert below < 60, "no blank space below but the head of the numbers"
    for index, run in enumerate(two_runs):
        snapshot = read_snapshot(view.context.workspace.results.snapshots(run)[-1].folder)
        assert cards["pairs"].text("Alignment", index) == f"{alignment(snapshot.image, snapshot.text):.3f}"
        for modality in ("image", "text"):
            rows, numbers = getattr(snapshot, modality), cards[f"{modality}s"]
            assert numbers.text("Ajne A", index) == f"{ajne(rows):.3f}"
            gine = gine_of(pair_sums(rows)[1], *rows.shape)
            assert numbers.text("Giné G", index) == f"{gine:.3f}"
            assert numbers.text("n (angles)", index) == "48"
            assert 0.02 < float(numbers.text("p (Ajne)", index)) <= 1
    assert view.command()[:2] == ["export", "geometry"]
    QTest.mouseClick(view.controls["geometry"].controls["course"].buttons["angle"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: cards["course"].title.text() == "Mean angle over training", timeout=5000)
    assert view.command()[-2:] == ["--course", "angle"]


def test_a_view_draws_what_is_known_while_the_rest_is_computed(qtbot, show_view, two_runs, monkeypatch):
    go_on = Event()
    monkeypatch.setattr(chart_pane, "PART_S", 0.0)
    simulated = geometry.null_statistics

    def slow(*arguments, **named):
        assert go_on.wait(60)
        return simulated(*arguments, **named)

    monkeypatch.setattr(geometry, "null_statistics", slow)
    view = show_view(GeometryView, 1096, 716)
    pane = view.pane
    qtbot.waitUntil(lambda: pane.panel.panel is not None and not pane.panel.filling, timeout=30_000)
    qtbot.waitUntil(lambda: len(pane.panel.panel.mark("angles-image").curves) == 3)
    assert (view.busy, pane.answer, view.command()) == (True, None, None)
    assert (pane.area.note.words.text(), pane.area.currentWidget().isAncestorOf(pane.panel)) == (chart_pane.GROWS, True)
    qtbot.waitUntil(lambda: len(pane.panel.panel.mark("course").curves) == 4)
    pane.computing.cancel()
    assert pane.area.kind == "stale"
    pane.retry()
    go_on.set()
    qtbot.waitUntil(lambda: not view.busy, timeout=30_000)
    assert (pane.area.kind, pane.area.note.isVisible()) == ("ready", False)
    assert view.command()[:2] == ["export", "geometry"]
    before = pane.panel.panel
    bare = replace(pane.answer, panel=replace(before, rows=before.rows[:1]))
    pane.computing.start().part = bare
    qtbot.waitUntil(lambda: pane.computing.ticket.part is None)
    assert pane.panel.panel is before, "fewer cards do not take the place of a whole result"
    pane.computing.end()


def test_a_ticket_that_is_cancelled_ends_the_work(qtbot):
    working = ProgressRow("working")
    qtbot.addWidget(working)
    ticket = working.start()
    ticket(0.4, "counting")
    assert not working.isVisible(), "what is done at once shows no bar"
    qtbot.waitUntil(working.button.isVisible, timeout=3000)
    assert "counting" in working.note.text()
    QTest.mouseClick(working.button, Qt.MouseButton.LeftButton)
    assert not working.busy
    with pytest.raises(Cancelled):
        ticket(0.5, "counting")
