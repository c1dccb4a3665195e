"""The behavior common to all plots of the window."""

import math
from collections import deque

import numpy as np
import pyqtgraph as pg
import pytest
from matplotlib.figure import Figure
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPixmap
from PySide6.QtWidgets import QApplication

from explorer.render_qt.xy_plot import XYPlotWidget
from explorer.theme import SMALL_PX, SPACE, pixel_font
from explorer.widgets import layouts
from explorer.widgets.curves import CurveLine, CurvePlot, CurvePlotData, UnitLabel
from explorer.widgets.plot import Plot
from tests.explorer.widgets import add_widget, show_widget
from trainer.charts.marks import MARKER_ROOM, Axis, Bars, Marker, Series, XYPlot, axis_over, categories
from trainer.render_mpl.xy_plot import draw_plot


@pytest.fixture
def plot(qtbot) -> Plot:
    return add_widget(qtbot, Plot())


def ticks(plot: Plot) -> set[str]:
    axis = plot.getPlotItem().getAxis("bottom")
    return set(axis.tickStrings([0.0, 0.5, 1.0], 1.0, 0.5))


def test_a_plot_without_data_names_no_values(plot) -> None:
    assert ticks(plot) == {""}
    curve = plot.plot([], [])
    assert ticks(plot) == {""}
    curve.setData([0, 1], [2, 3])
    assert ticks(plot) == {"0", "0.5", "1.0"}
    axis = plot.getPlotItem().getAxis("bottom")
    assert axis.tickStrings([-500.0, 1500.0, 20_000.0], 1.0, 500.0) == ["−500", "1,500", "20,000"]


def test_numbers_of_a_narrow_axis_do_not_touch(plot) -> None:
    axis = plot.getPlotItem().getAxis("bottom")
    wide = QFontMetrics(pixel_font(SMALL_PX)).horizontalAdvance("1,920")
    for px in (60, 90, 140, 220, 900):
        (step, _), *_ = axis.tickSpacing(0.0, 1920.0, px)
        assert step * px / 1920 > wide, px
    assert axis.tickSpacing(0.0, 1920.0, 900)[0][0] <= 500


def test_tab_scrolls_to_all_of_a_plot(qtbot) -> None:
    plots = [Plot() for _ in range(3)]
    for plot in plots:
        plot.setFixedHeight(200)
        plot.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    area = show_widget(qtbot, layouts.scroll(layouts.panel(layouts.column(*plots))), 300, 250)
    area.ensureWidgetVisible(plots[1])
    plot, viewport = plots[1], area.viewport()
    assert 0 <= plot.mapTo(viewport, QPoint()).y() <= viewport.height() - plot.height()


@pytest.mark.parametrize("height", [30, 44, 60, 90, 300])
@pytest.mark.parametrize("high", [0.0013, 0.4, 3.3, 80.0, 720.0])
def test_numbers_of_a_low_plot_do_not_touch(plot: Plot, height: int, high: float) -> None:
    (step, _), *_ = plot.getPlotItem().getAxis("left").tickSpacing(0.0, high, height)
    assert step * height / high >= SMALL_PX
    mantissa = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert round(mantissa, 6) in (1, 2, 5)


def test_numbers_come_with_the_first_curve_although_the_axis_stays(qtbot, dressed) -> None:
    axes, line = (Axis("", 0, 1), Axis("", 0, 1)), Series("", "first", np.array([0.0, 1.0]), np.array([0.2, 0.8]))
    filled, fresh = XYPlotWidget(), XYPlotWidget()
    for plot in (filled, fresh):
        qtbot.addWidget(plot)
        plot.resize(240, 120)
        plot.show()
    filled.show_plot(XYPlot("p", "p", *axes))
    filled.grab()
    for plot in (filled, fresh):
        plot.show_plot(XYPlot("p", "p", *axes, (line,)))
    assert filled.grab().toImage() == fresh.grab().toImage()


def test_names_that_fit_below_a_plot_are_whole(plot, dressed, monkeypatch) -> None:
    names = [f"seed {seed}" for seed in range(5)]
    wide = QFontMetrics(pixel_font(SMALL_PX)).horizontalAdvance(names[0])
    axis, seen = plot.getPlotItem().getAxis("bottom"), []
    monkeypatch.setattr(axis, "setTicks", seen.append)
    axis.show_names(names)
    for room, whole in ((wide + SPACE + 1, True), (wide - 8, False)):
        axis.resize(5 * room, 30)
        assert (seen[-1] == [list(enumerate(names))]) is whole


def test_what_lies_outside_the_bounds_counts_as_shown(plot) -> None:
    plot.getPlotItem().addItem(pg.PlotCurveItem([0, 1], [2, 3]), ignoreBounds=True)
    assert ticks(plot) == {"0", "0.5", "1.0"}
    axis = plot.getPlotItem().getAxis("bottom")
    assert axis.tickStrings([-500.0, 1500.0, 20_000.0], 1.0, 500.0) == ["−500", "1,500", "20,000"]


def test_a_plot_has_no_widgets_of_a_menu_and_its_options_still_work(qtbot, dressed):
    before = len(QApplication.allWidgets())
    plot = add_widget(qtbot, Plot())
    assert len(QApplication.allWidgets()) - before < 25
    item, controls = plot.getPlotItem(), plot.getPlotItem().ctrl
    curve = item.plot([1.0, 10.0, 100.0], [1.0, 2.0, 3.0])
    item.setLogMode(x=True)
    assert controls.logXCheck.isChecked()
    assert curve.opts["logMode"] == [True, False]
    item.setLogMode(x=False)
    item.showGrid(x=False, y=True, alpha=0.5)
    assert item.getAxis("left").grid == 127
    assert item.getAxis("bottom").grid is False
    item.setDownsampling(ds=4, auto=False, mode="mean")
    assert item.downsampleMode() == (4, False, "mean")
    item.setClipToView(True)
    assert curve.opts["clipToView"]
    item.restoreState(item.saveState())
    item.clear()


def test_a_marker_at_the_limit_of_shares_is_drawn_whole(qtbot, dressed) -> None:
    plot = add_widget(qtbot, XYPlotWidget(), 400, 300)
    dots = (Marker("", "run_a", 0, 100.0), Marker("", "run_a", 1, 60.0))
    spec = XYPlot("p", "P", Axis("", -0.5, 1.5), axis_over("%", [[55, 101]], percent=True), dots=dots)
    plot.show_plot(spec)
    plot.show()
    qtbot.waitExposed(plot)
    low, high = plot.getPlotItem().getViewBox().viewRange()[1]
    assert (low, high) == (50, 100 + MARKER_ROOM * 50)
    ticks = [at for _, level in plot.getPlotItem().getAxis("left").tickValues(low, high, 240) for at in level]
    assert max(ticks) == 100
    figure = Figure()
    axes = figure.subplots()
    draw_plot(axes, spec)
    assert axes.get_ylim() == (low, high)
    bars = (Bars("", "quiet", (96.0,)),)
    plot.show_plot(XYPlot("key", "", categories("", ("one",)), Axis("%", 95, 100, percent=True), bars=bars, lying=True))
    plot.resize(500, 200)
    plot.grab()
    bottom = plot.getPlotItem().getAxis("bottom")
    painter = QPainter(page := QPixmap(9, 9))
    drawn = bottom.generateDrawSpecs(painter)[2]
    painter.end()
    assert not page.isNull()
    assert {"95", "100"} <= {text for _, _, text in drawn}, "also at the ends"


@pytest.mark.parametrize(
    ("values", "ends"), [((55, 101), (50, 100)), ((3.2, 4.1), (3, 4.5)), ((0, 97), (0, 100)), ((88.2, 97.4), (88, 98))]
)
def test_an_axis_of_shares_ends_at_ticks(values: tuple[float, float], ends: tuple[float, float]) -> None:
    axis = axis_over("%", [values], percent=True)
    assert (axis.low, axis.high) == ends


@pytest.mark.parametrize(("low", "high"), [(15.0, 18.0), (0.0, 1.0), (7.9, 8.1), (0.0, 6400.0), (1.0, 5.0)])
def test_an_axis_of_steps_has_whole_ticks_alone(qtbot, low: float, high: float) -> None:
    plot = Plot()
    plot.set_axes(Axis("how far", 0, 1, integer=True), Axis("", 0, 1))
    qtbot.addWidget(plot)
    plot.plot([low, high], [0, 1])
    axis = plot.getPlotItem().getAxis("bottom")
    (spacing, places), *_ = axis.tickValues(low, high, 900)
    assert len(places)
    assert list(places) == [round(place) for place in places]
    assert not any("." in text for text in axis.tickStrings(places, 1.0, spacing))
    plot.set_axes(Axis("step", 0, 1), Axis("", 0, 1))
    assert axis.tickSpacing(0.0, 1.0, 900)[0][0] < 1
    axes = Figure().subplots()
    draw_plot(axes, XYPlot("curve", "Curve", Axis("step", 0, 2000, integer=True), Axis("", 0, 1)))
    assert axes.xaxis.get_major_formatter()(1500) == "1,500"


def test_labels_of_near_markers_do_not_overlap_and_all_are_told_under_the_pointer(qtbot, dressed) -> None:
    places = [(0.5 + 0.004 * at, 0.5 + 0.003 * at) for at in range(12)] + [(0.98, 0.02)]
    dots = tuple(
        Marker("", "run_a", x, y, 10.0, label=f"#{at}, step 640", hint=f"run {at}") for at, (x, y) in enumerate(places)
    )
    widget = show_widget(qtbot, XYPlotWidget(), 700, 400)
    widget.show_plot(XYPlot("map", "Map", Axis("", 0, 1), Axis("", 0, 1), dots=dots))
    qtbot.waitUntil(lambda: len(widget.labels()) > 1)
    for _ in range(2):
        shown = widget.labels()
        assert shown[0][0] == "#0, step 640", "the first has its label"
        assert "#12, step 640" in [words for words, _ in shown], "what stands alone has one, also at the edge"
        assert len(shown) < len(dots)
        inside = widget.getPlotItem().getViewBox().sceneBoundingRect().adjusted(-1, -1, 1, 1)
        assert all(inside.contains(box) for _, box in shown)
        boxes = [box.adjusted(0.5, 0.5, -0.5, -0.5) for _, box in shown]
        assert not any(box.intersects(other) for place, box in enumerate(boxes) for other in boxes[:place])
        widget.resize(420, 300)
        qtbot.wait(50)
    box = widget.getPlotItem().getViewBox()
    at = widget.mapFromScene(box.mapViewToScene(QPointF(*places[12])))
    assert widget.hint_at(QPointF(at)) == "run 12"
    assert widget.hint_at(QPointF(at) - QPointF(60, 60)) == ""


def test_an_axis_shows_its_text_as_it_is(qtbot) -> None:
    text = "a < b & <img src='file:///x.png'> <b>bold</b>"
    plot = Plot()
    plot.set_axes(Axis(text, 0, 1), Axis("", 0, 1))
    qtbot.addWidget(plot)
    plot.resize(1_200, 300)
    plot.show()
    axis = plot.getPlotItem().getAxis("bottom")
    assert axis.label.toPlainText().strip() == text


def test_what_stands_behind_a_unit_is_whole_or_in_the_tip(qtbot, dressed) -> None:
    label = add_widget(qtbot, UnitLabel())
    label.unit = "%"
    label.setText("%  chance < 0.1 %")
    label.resize(label.sizeHint())
    label.show()
    assert (label.elided, label.toolTip()) == ("%  chance < 0.1 %", "")
    label.resize(label.width() - 6, label.height())
    assert (label.elided, label.toolTip()) == ("%", "%  chance < 0.1 %")


@pytest.mark.parametrize("ends", [(0, 1e-3), (0, 3e-6), (0.2701, 0.27015), (-2e-4, 3e-4), (0, 5e4), (0, 5e6)])
def test_the_axis_of_a_curve_has_numbers_on_the_screen_and_in_files(qtbot, dressed, ends: tuple[float, float]) -> None:
    x, y = np.arange(9.0), np.linspace(*ends, 9)
    plot = add_widget(qtbot, CurvePlot(), 340, 260)
    deque(plot.drawing(CurvePlotData("lr", "lr", "", 4, (CurveLine(1, "run", "#0a6338", x, y, y),))), 0)
    plot.show()
    qtbot.waitExposed(plot)
    axis = plot.plot.getPlotItem().getAxis("left")

    def texts() -> set[str]:
        painter = QPainter(page := QPixmap(9, 9))
        drawn = axis.generateDrawSpecs(painter)[2]
        painter.end()
        return set() if page.isNull() else {text for _, _, text in drawn}

    qtbot.waitUntil(lambda: len(texts()) > 1)
    figure = Figure()
    axes = figure.subplots()
    draw_plot(axes, XYPlot("lr", "lr", axis_over("", [x]), axis_over("", [y]), (Series("", "run_a", x, y),)))
    figure.draw_without_rendering()
    assert not axes.yaxis.get_offset_text().get_text()
    for seen in (texts(), {tick.get_text() for tick in axes.get_yticklabels()}):
        assert len(seen) > 1
        assert any(len(text) > 1 for text in seen)


def test_the_title_of_an_axis_wraps_and_has_no_ellipsis_inside(qtbot, dressed, plot) -> None:
    plot.set_axes(Axis("", 0, 1), Axis("Difference vs. CLIP (points)", 0, 1))
    plot.show()
    qtbot.waitExposed(plot)
    axis, widths = plot.getPlotItem().getAxis("left"), {300: set[float](), 160: set[float]()}
    for height in (160, 300, 160, 300):
        plot.resize(400, height)
        qtbot.waitUntil(lambda height=height: ("\n" in axis.label.toPlainText()) is (height == 160))
        qtbot.wait(20)
        lines = axis.label.toPlainText().strip().split("\n")
        assert lines == (["Difference vs.", "CLIP (points)"] if height == 160 else ["Difference vs. CLIP (points)"])
        widths[height].add(axis.width())
        assert axis.label.boundingRect().width() <= axis.size().height() + 4
    assert max(widths[300]) + 8 < min(widths[160]), "the second line has a place of its own"
