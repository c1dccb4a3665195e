"""The numbers of a panel, one per row: the contents of a CSV, equal to what the window shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from trainer.charts.marks import Bars, HeatMap, ImageRow, Mark, PairMap, Panel, Series, ShadedTable, XYPlot

HEADER: Final = ("chart", "part", "title", "series", "x", "y", "low", "high")


def panel_rows(panel: Panel, name: str) -> Iterator[tuple[Any, ...]]:
    """Yield every number of the panel of chart `name`: mark and its title, series, position, value, and interval.

    Last come the steps of its runs, where these differ.
    """
    for mark in panel.marks:
        for values in values_of(mark):
            yield (name, mark.key, mark.title, *values, *(None,) * (len(HEADER) - 3 - len(values)))
    for run, step in panel.steps:
        yield (name, "steps", "Step of the snapshot", run, None, step, None, None)


def values_of(mark: Mark) -> Iterator[tuple[Any, ...]]:
    """Yield the numbers of a mark: series, x, y, and the ends of its interval if it has one."""
    if isinstance(mark, XYPlot):
        yield from _plot_values(mark)
    elif isinstance(mark, ShadedTable):
        for name, row_values in zip(mark.rows, mark.values.tolist(), strict=True):
            yield from ((name, column, value) for column, value in zip(mark.columns, row_values, strict=True))
    elif isinstance(mark, HeatMap):
        for (row, column), value in np.ndenumerate(mark.values):
            where = mark.columns[column] if mark.columns else column
            yield mark.rows[row] if mark.rows else str(row), where, float(value)
    elif isinstance(mark, PairMap):
        for name, side in (("images", mark.images), ("texts", mark.texts)):
            yield from ((name, float(x), float(y)) for x, y in ([] if side is None else side))
    elif isinstance(mark, ImageRow):
        for cell in mark.cells:
            yield cell.name, cell.words, None if cell.share != cell.share else cell.share
    else:
        for label, line in mark.named():
            yield from ((column, label, value) for column, value in zip(mark.columns, line.values, strict=True))


def _plot_values(plot: XYPlot) -> Iterator[tuple[Any, ...]]:
    for curve in plot.curves:
        if curve.low is None or curve.high is None:
            yield from ((curve.name, x, y) for x, y in points(curve))
        else:
            ends = zip(points(curve), curve.low.tolist(), curve.high.tolist(), strict=True)
            yield from ((curve.name, x, y, low, high) for (x, y), low, high in ends)
    for cloud in plot.points:
        yield from ((cloud.name, float(x), float(y)) for x, y in cloud.xy)
    for bars in plot.bars:
        yield from _bar_values(plot, bars)
    for dot in plot.dots:
        if dot.name or dot.label:
            at = plot.names[round(dot.x)] if plot.names else dot.x
            ends = () if dot.low != dot.low else (dot.low, dot.high)
            yield (" ".join(filter(None, (dot.name, dot.label))), at, dot.y, *ends)


def _bar_values(plot: XYPlot, bars: Bars) -> Iterator[tuple[Any, ...]]:
    for index, (name, height) in enumerate(zip(plot.names, bars.heights, strict=True)):
        yield (bars.name, name, height, *((bars.low[index], bars.high[index]) if bars.low else ()))


def points(curve: Series) -> Iterator[tuple[float, float]]:
    """Yield the points of a curve; for a stepped one the bin centers."""
    x = (curve.x[1:] + curve.x[:-1]) / 2 if curve.stepped else curve.x
    return zip(x.tolist(), curve.y.tolist(), strict=True)
