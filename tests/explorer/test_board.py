"""A panel keeps every mark readable, however narrow the window is."""

import time
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QObject, QPoint, Signal

from explorer.event_loop.idle_scheduler import PORTION_MS, idle_scheduler
from explorer.render_qt import panel as panel_module
from explorer.render_qt.panel import TABLES_PX, TABLES_WIDE, PanelWidget
from explorer.render_qt.shaded_table import CELL_PX
from explorer.widgets import curves
from explorer.widgets.curves import CurveGrid
from explorer.widgets.plot import Plot
from tests.explorer.test_idle_scheduler import compute
from tests.explorer.widgets import add_widget
from trainer.charts.marks import Axis, Panel, Series, ShadedTable, XYPlot


class NoPictures(QObject):
    """The thumbnails of a panel without images."""

    arrived = Signal(str)


@pytest.mark.parametrize(("width", "beside"), [(1600, True), (620, False)])
def test_tables_that_do_not_fit_beside_each_other_stand_under_each_other(qtbot, width: int, beside: bool) -> None:
    names = tuple(f"a run with a long name {place}" for place in range(3))
    cells = {"values": np.ones((3, 6)), "digits": 1, "top": 1.0}
    tables = tuple(ShadedTable(f"table-{side}", side, names, tuple("abcdef"), **cells) for side in ("left", "right"))
    pane = add_widget(qtbot, PanelWidget(NoPictures(), "test"))
    pane.show_panel(Panel(title="Title", rows=(tables,), notes=("What it is.",)))
    pane.resize(width, 900)
    pane.show()
    left, right = (pane.cards[table.key] for table in tables)

    def fits() -> None:
        ends = [card.mapTo(pane.viewport(), QPoint(card.width(), 0)).x() for card in (left, right)]
        assert (left.y() == right.y()) is beside
        assert max(ends) <= min(pane.viewport().width(), max(TABLES_PX, TABLES_WIDE * 900))
        assert pane.notes.y() - right.geometry().bottom() < 40, "the rows stay together on a large screen"
        assert right.height() < 300
        assert left.cells.rowHeight(0) > CELL_PX + 20 or not beside, "cells grow with the room"

    qtbot.waitUntil(fits)


@pytest.mark.parametrize("equal", [False, True])
def test_a_plot_under_a_legend_of_many_lines_keeps_its_axis(qtbot, equal: bool) -> None:
    line = np.linspace(0.0, 1.0, 5)
    curves = tuple(Series(f"a run with a rather long name {place}", "ab"[place % 2], line, line) for place in range(9))
    axis = Axis("how much it is", 0.0, 1.0)
    spec = XYPlot("plot", "Plot", axis, axis, curves=curves, equal=equal)
    pane = add_widget(qtbot, PanelWidget(NoPictures(), "test"))
    panel = Panel(title="Title", rows=((spec,),))
    assert [pane.prepare_for(panel) for _ in range(2)] == [False, True], "a turn makes a plot or shows the panel"
    pane.show_panel(panel)
    pane.resize(420, 300)
    pane.show()
    card = pane.cards["plot"]
    qtbot.waitUntil(lambda: card.legend.height() >= card.legend.heightForWidth(card.legend.width()) > 60)
    qtbot.waitUntil(lambda: card.plot.height() >= card.plot.minimumHeight() >= 150)
    assert card.rect().contains(card.plot.geometry())
    pane.resize(420, 1400)
    qtbot.waitUntil(lambda: pane.widget().height() > 1300)
    assert card.height() < 800
    assert pane.notes.height() < 100, "where a plot is as high as it may be, the notes stay under it"


def test_a_note_without_room_stands_below_the_title_and_no_number_of_either_is_cut(dressed, qtbot) -> None:
    axis = Axis("x", 0.0, 1.0)
    line = np.linspace(0.0, 1.0, 5)
    plots = tuple(
        XYPlot(key, title, axis, axis, curves=(Series("a", "run_a", line, line),), note=note)
        for key, title, note in (
            (
                "long",
                "Undecided with 1 seed each; A and B do not differ in R@1 (p = 0.511)",
                "n = 1,024 · 95 %",
            ),
            ("short", "Short", "n = 9"),
        )
    )
    pane = add_widget(qtbot, PanelWidget(NoPictures(), "test"))
    pane.show_panel(Panel(title="Title", rows=(plots,)))
    pane.show()
    alike = lambda *cards: len({card.plot.mapTo(pane, QPoint()).y() for card in cards}) == 1  # noqa: E731
    beside = {1600: alike, 900: alike, 400: lambda long, short: long.y() < short.y()}
    for wide in beside:
        pane.resize(wide, 700)
        long, short = (pane.cards[plot.key] for plot in plots)

        def is_whole(wide=wide, long=long, short=short) -> None:
            assert long.title.elided.replace("\n", " ") == plots[0].title
            assert [card.below.isVisible() for card in (long, short)] == [wide < 1600] * 2
            shown = [card.below.text() if card.below.isVisible() else card.note.elided for card in (long, short)]
            assert shown == [plot.note for plot in plots]
            assert beside[wide](long, short)

        qtbot.waitUntil(is_whole, timeout=5_000)


def turns_of_plots(monkeypatch) -> list[int]:
    """Return a list of the turn in which each plot is made, each of which fills its turn."""
    turns: list[int] = []
    make = Plot.__init__

    def slow(self: Plot, *arguments: Any) -> None:
        turns.append(idle_scheduler().number)
        make(self, *arguments)
        compute(PORTION_MS)

    monkeypatch.setattr(Plot, "__init__", slow)
    return turns


def test_plots_made_beforehand_come_one_in_a_turn_though_all_panels_are_due_at_once(qtbot, monkeypatch) -> None:
    turns = turns_of_plots(monkeypatch)
    monkeypatch.setattr(panel_module, "PREPARE_MS", 1)
    monkeypatch.setattr(panel_module, "PREPARED", 2)
    panes = [PanelWidget(NoPictures(), f"test-{number}") for number in range(3)]
    for pane in panes:
        qtbot.addWidget(pane)
    time.sleep(0.01)
    qtbot.waitUntil(lambda: len(turns) == 6)
    assert len(set(turns)) == 6


def test_plots_of_curves_made_beforehand_come_one_in_a_turn(qtbot, monkeypatch) -> None:
    turns = turns_of_plots(monkeypatch)
    grids = [CurveGrid() for _ in range(2)]
    for grid in grids:
        qtbot.addWidget(grid)
    qtbot.waitUntil(lambda: len(turns) == 2 * curves.PREPARED)
    assert len(set(turns)) == len(turns)
