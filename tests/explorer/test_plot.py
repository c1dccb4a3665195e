"""The behavior common to all plots of the window."""

from __future__ import annotations

import math

import pyqtgraph as pg
import pytest
from PySide6.QtWidgets import QApplication

from explorer.theme import SMALL_PX
from explorer.widgets.plot import Plot


def ticks(plot: Plot) -> set[str]:
    axis = plot.getPlotItem().getAxis("bottom")
    return set(axis.tickStrings([0.0, 0.5, 1.0], 1.0, 0.5))


def test_a_plot_without_data_names_no_values(qtbot) -> None:
    plot = Plot(x_label="step")
    qtbot.addWidget(plot)
    assert ticks(plot) == {""}
    curve = plot.plot([], [])
    assert ticks(plot) == {""}
    curve.setData([0, 1], [2, 3])
    assert ticks(plot) == {"0", "0.5", "1.0"}


@pytest.mark.parametrize("height", [30, 44, 60, 90, 300])
@pytest.mark.parametrize("high", [0.0013, 0.4, 3.3, 80.0, 720.0])
def test_numbers_of_a_low_plot_do_not_touch(qtbot, height: int, high: float) -> None:
    plot = Plot()
    qtbot.addWidget(plot)
    (step, _), *_ = plot.getPlotItem().getAxis("left").tickSpacing(0.0, high, height)
    assert step * height / high >= SMALL_PX
    mantissa = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert round(mantissa, 6) in (1, 2, 5)


def test_what_lies_outside_the_bounds_counts_as_shown(qtbot) -> None:
    plot = Plot(x_label="step")
    qtbot.addWidget(plot)
    plot.getPlotItem().addItem(pg.PlotCurveItem([0, 1], [2, 3]), ignoreBounds=True)
    assert ticks(plot) == {"0", "0.5", "1.0"}


def test_a_plot_has_no_widgets_of_a_menu_and_its_options_still_work(qtbot, dressed):
    before = len(QApplication.allWidgets())
    plot = Plot()
    qtbot.addWidget(plot)
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
