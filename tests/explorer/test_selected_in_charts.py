"""The selected pairs in charts that are not of single pairs: ticked where they count, and selected by dragging."""

import math
from typing import Any

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from explorer.models.thumbnails import Thumbnails
from explorer.render_qt.panel import PanelWidget
from explorer.views.chart_pane import ChartPane, request_of
from explorer.views.runs.curves_pane import CurvesPane
from tests.explorer.widgets import add_widget, show_widget
from trainer.charts.marks import Axis, Panel, Series, XYPlot
from trainer.charts.registry import load
from trainer.charts.snapshots import choose_snapshot
from trainer.store.snapshot_files import read_snapshot

CHOSEN = np.array([1, 5, 30], np.int64)


@pytest.fixture
def context(make_context, two_runs: tuple[int, int]):
    """Return a view's context with both runs selected."""
    made = make_context()
    made.selection.select_runs(*two_runs)
    return made


def shown(qtbot: QtBot, context: Any, name: str) -> ChartPane:
    """Return a pane that shows this chart."""
    pane = show_widget(qtbot, ChartPane(context, name), 900, 700)
    chart = load(name)
    pane.ask(chart, request_of(context.selection), chart.settings())
    qtbot.waitUntil(lambda: pane.answer is not None and not pane.busy, timeout=30_000)
    return pane


def snapshot_of(context: Any, run: int) -> Any:
    return read_snapshot(choose_snapshot(context.workspace, context.workspace.runs.get(run)).folder)


def mean_angles(rows: np.ndarray) -> list[float]:
    """Return the mean angle of each row with all others in degrees, by loops."""
    unit = [row / math.sqrt(sum(float(x) ** 2 for x in row)) for row in rows.astype(np.float64)]
    found = []
    for i, one in enumerate(unit):
        others = [math.acos(max(-1.0, min(1.0, float(one @ two)))) for j, two in enumerate(unit) if j != i]
        found.append(math.degrees(sum(others) / len(others)))
    return found


def test_a_selected_pair_is_ticked_at_its_mean_angle(qtbot: QtBot, context: Any, two_runs: tuple[int, int]) -> None:
    pane = shown(qtbot, context, "geometry")
    context.selection.pairs = CHOSEN
    naive = [mean_angles(snapshot_of(context, run).image) for run in two_runs]
    wanted = sorted(angles[pair] for angles in naive for pair in CHOSEN)
    plot = pane.panel.cards["angles-image"].plot
    assert sorted(plot.ticked()) == pytest.approx(wanted, abs=1e-3)

    # In the widest gaps between angles: one at an end would be in or out by its rounding.
    ends = sorted(angle for angles in naive for angle in angles)
    parts = (range(2, 20), range(len(ends) // 2, len(ends) - 1))
    widest = [max(part, key=lambda k: ends[k + 1] - ends[k]) for part in parts]
    low, high = (ends[k] + (ends[k + 1] - ends[k]) / 2 for k in widest)
    pane.panel.plot_brushed.emit("angles-image", (low, high))
    inside = {pair for angles in naive for pair, angle in enumerate(angles) if low <= angle <= high}
    assert {*context.selection.pairs.tolist()} == inside
    pane.panel.plot_brushed.emit("angles-image", None)
    assert not len(context.selection.pairs)


def test_a_selected_pair_is_ticked_at_how_often_its_image_is_found(
    qtbot: QtBot, context: Any, two_runs: tuple[int, int]
) -> None:
    pane = shown(qtbot, context, "hubness")
    shot, found = snapshot_of(context, two_runs[0]), pane.answer.data.found[0]
    texts: dict[bytes, int] = {}
    images: dict[bytes, list[int]] = {}
    for pair in range(shot.n):
        texts.setdefault(shot.items.caption[pair].encode(), pair)
        images.setdefault(shot.items.path[pair].encode(), []).append(pair)
    counts = dict.fromkeys(range(shot.n), 0)
    for text in texts.values():
        first = {
            key: float(shot.image[rows[0]].astype(float) @ shot.text[text].astype(float))
            for key, rows in images.items()
        }
        for key in sorted(first, key=lambda one: -first[one])[: found.k]:
            for pair in images[key]:
                counts[pair] += 1
    context.selection.pairs = CHOSEN
    plot = pane.panel.cards["hubs-0"].plot
    assert sorted(plot.ticked()) == pytest.approx(sorted(counts[pair] for pair in CHOSEN.tolist()))
    top = max(counts.values())
    pane.panel.plot_brushed.emit("hubs-0", (top - 0.5, top + 0.5))
    assert context.selection.pairs.tolist() == [pair for pair, n in counts.items() if n == top]


def test_a_plot_that_is_not_of_pairs_changes_no_selection(qtbot: QtBot, context: Any) -> None:
    pane = shown(qtbot, context, "geometry")
    context.selection.pairs = CHOSEN
    pane.panel.plot_brushed.emit("course", (0.0, 10.0))
    assert context.selection.pairs.tolist() == CHOSEN.tolist()


def test_training_curves_say_why_no_pair_is_drawn_in_them(qtbot: QtBot, context: Any) -> None:
    pane = add_widget(qtbot, CurvesPane(context))
    assert pane.whole.text() == ""
    context.selection.pairs = CHOSEN
    assert pane.whole.text().startswith("3 pairs are selected and not drawn here")


def test_a_legend_is_told_once_where_the_plots_below_repeat_it(qtbot: QtBot, context: Any) -> None:
    line, axis = np.array([0.0, 1.0]), Axis("x", 0, 1)
    two = (Series("one", "run_a", line, line), Series("two", "run_b", line, line))
    third = (*two, Series("three", "quiet", line, line))
    plots = [XYPlot(key, key, axis, axis, curves) for key, curves in zip("abcd", (two, two, third, two), strict=True)]
    widget = show_widget(qtbot, PanelWidget(Thumbnails(context.background, None, edge=32), "panel"), 700, 900)
    widget.show_panel(Panel(title="", rows=((plots[0],), (plots[1],), (plots[2], plots[3]))))
    qtbot.waitUntil(lambda: not widget.filling)
    hidden = [widget.cards[key].legend.isHidden() for key in "abcd"]
    assert hidden == [False, True, False, False], "of a row all or none, or its axes would differ"
