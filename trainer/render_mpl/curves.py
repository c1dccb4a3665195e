"""Training curves on paper: a panel a metric, the faint raw line under the smoothed one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.analysis.curves import thin
from trainer.charts.curves import CurvePanel, CurvesChart, RunCurve
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import COLUMN_IN, PAGE_IN, columns_of, footnote, heading, in_style, new_figure, run_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS: Final = 1500
"""Most points of a drawn line: more than a printed page resolves; peaks are kept."""
_PANEL_IN: Final = 2.15


@in_style
def draw(chart: CurvesChart) -> Figure:
    """The figure of the chart: panels two abreast, one legend for all."""
    columns = min(2, len(chart.panels))
    lines = -(-len(chart.panels) // columns)
    figure = new_figure(PAGE_IN if columns == 2 else COLUMN_IN * 1.3, 0.55 + _PANEL_IN * lines)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06, hspace=0.06, wspace=0.04)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes, panel in zip(grid.flat, chart.panels):
        _draw_panel(axes, panel, chart)
    for axes in list(grid.flat)[len(chart.panels) :]:
        axes.set_axis_off()
    _legend(figure, chart)
    footnote(figure, f"Smoothed with weight {chart.smoothing:g}; faint: as logged." if chart.smoothing else "")
    return figure


def rows(chart: CurvesChart) -> NumberRows:
    """Every logged value, and the smoothed one beside it; shares are in [0, 1]."""
    x = "step" if chart.axis == "step" else "seconds"
    return NumberRows(("metric", "run", "name", "objective", "n", x, "value", "smoothed"), _rows(chart))


def _rows(chart: CurvesChart) -> Iterator[tuple[Any, ...]]:
    for panel in chart.panels:
        for series in panel.series:
            facts = (panel.metric, series.run, series.name, series.objective, panel.n)
            xs = series.x.astype(np.int64).tolist() if chart.axis == "step" else series.x.round(3).tolist()
            for x, raw, smoothed in zip(xs, series.raw.tolist(), series.smooth.tolist()):
                yield *facts, x, raw, smoothed


def _draw_panel(axes: Axes, panel: CurvePanel, chart: CurvesChart) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for series in panel.series:
        _draw_series(axes, series, scale=100 if panel.percent else 1, smoothed=chart.smoothing > 0)
    # A blank line where n is not known keeps the titles of a row on one height.
    detail = f"n = {panel.n:,} pairs" if panel.n else " " if any(other.n for other in chart.panels) else ""
    heading(axes, f"{panel.label} ({panel.unit})" if panel.unit else panel.label, detail)
    if chart.axis == "time":
        _time_axis(axes, max(float(series.x.max()) for series in panel.series))
    else:
        axes.set_xlabel("Step")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.grid(axis="y")
    axes.margins(x=0.015, y=0.06)


def _draw_series(axes: Axes, series: RunCurve, *, scale: int, smoothed: bool) -> None:
    color = run_color(series.index)
    raw = np.where(np.isfinite(series.raw), series.raw, np.nan) * scale
    kept = thin(raw, _POINTS)
    few = len(raw) <= 40 and not smoothed
    faint: dict[str, Any] = {"alpha": 0.28, "linewidth": 0.7} if smoothed else {"marker": "o" if few else None}
    axes.plot(series.x[kept], raw[kept], color=color, markersize=2.6, **faint)
    if smoothed:
        smooth = np.where(np.isfinite(series.smooth), series.smooth, np.nan) * scale
        kept = thin(smooth, _POINTS)
        axes.plot(series.x[kept], smooth[kept], color=color)


def _time_axis(axes: Axes, longest_s: float) -> None:
    """Ticks at round seconds, minutes or hours, whichever the longest curve calls for."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    unit, seconds = ("s", 1) if longest_s < 180 else ("min", 60) if longest_s < 3 * 3600 else ("h", 3600)
    ticks = np.array(MaxNLocator(6, steps=[1, 2, 3, 5, 10]).tick_values(0, longest_s / seconds))
    axes.set_xticks(ticks[ticks <= 1.001 * longest_s / seconds] * seconds)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / seconds:g}"))
    axes.set_xlabel(f"Training time ({unit})")


def _legend(figure: Figure, chart: CurvesChart) -> None:
    from matplotlib.lines import Line2D

    runs = {series.index: series.name for panel in chart.panels for series in panel.series}
    order = sorted(runs)
    handles = [Line2D([], [], color=run_color(index), linewidth=1.6) for index in order]
    names = [runs[index] for index in order]
    figure.legend(handles, names, loc="outside upper left", ncols=columns_of(names), borderaxespad=0.7)
