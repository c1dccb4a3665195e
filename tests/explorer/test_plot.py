"""What every plot of the window does, whatever it shows."""

from __future__ import annotations

import pyqtgraph as pg

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


def test_what_lies_outside_the_bounds_counts_as_shown(qtbot) -> None:
    plot = Plot(x_label="step")
    qtbot.addWidget(plot)
    plot.getPlotItem().addItem(pg.PlotCurveItem([0, 1], [2, 3]), ignoreBounds=True)
    assert ticks(plot) == {"0", "0.5", "1.0"}
