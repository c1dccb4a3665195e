"""A panel of the Loss lab on paper: its plots two a row, its tables, its numbers and the settings they hold for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainer.charts.lab.pieces import LabChart
from trainer.charts.marks import ShadedTable, XYPlot
from trainer.charts.panel_rows import cells_of, points
from trainer.charts.settings import settings_of, words
from trainer.render_mpl.files import Rows
from trainer.render_mpl.panel import broken, draw_table
from trainer.render_mpl.style import PAGE_IN, QUIET, footnote, in_style, new_figure
from trainer.render_mpl.xy_plot import draw_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@in_style
def draw(chart: LabChart) -> Figure:
    """The figure of a panel."""
    places = [(piece, _wide(piece)) for piece in (*chart.plots, *chart.tables)]
    columns = 2 if chart.plots else 3
    lines = _lines(places, columns)
    heights = [max(_height(piece) for piece in line) for line in lines]
    head = _head(chart)
    figure = new_figure(PAGE_IN, sum(heights) + 0.45 + 0.16 * len(head))
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08, hspace=0.06, wspace=0.06)
    grid = figure.add_gridspec(len(lines), columns, height_ratios=heights)
    for number, line in enumerate(lines):
        for column, piece in enumerate(line):
            place = grid[number, :] if len(line) == 1 and _wide(piece) else grid[number, column]
            axes = figure.add_subplot(place)
            draw_table(axes, piece) if isinstance(piece, ShadedTable) else draw_plot(axes, piece)
    figure.suptitle("\n".join(head), x=0.01, ha="left", fontsize=7.5, color=QUIET, linespacing=1.5)
    footnote(figure, "\n".join(broken(chart.source.split(" "), " ")))
    return figure


def rows(chart: LabChart) -> Rows:
    """Settings and facts, every point of every curve, every cell: one number a row."""
    return Rows(("panel", "part", "series", "x", "y"), _rows(chart))


def _rows(chart: LabChart) -> Iterator[tuple[Any, ...]]:
    for text in words(chart.settings):
        name, _, value = text.partition("=")
        yield chart.panel, "setting", name, None, value
    for fact in chart.facts:
        yield chart.panel, "number", fact.words, None, fact.value
    for plot in chart.plots:
        for curve in plot.curves:
            yield from ((chart.panel, plot.key, curve.name, x, y) for x, y in points(curve))
        for bars in plot.bars:
            for name, height in zip(plot.names, bars.heights, strict=True):
                yield chart.panel, plot.key, name, None, height
        for dot in plot.dots:
            yield chart.panel, plot.key, " ".join(filter(None, (dot.name, dot.label))), dot.x, dot.y
    for table in chart.tables:
        yield from ((chart.panel, table.key, *cell) for cell in cells_of(table))


def _head(chart: LabChart) -> list[str]:
    known = [k for k in settings_of(type(chart.settings)) if k.kind != "cells"]
    held = [f"{k.label} = {_short(getattr(chart.settings, k.name))}" for k in known]
    facts = [f"{fact.words}: {fact.text}" for fact in chart.facts]
    return [f"Loss lab: {chart.title}", *broken(held, " · "), *broken(facts, " · ")]


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,.6g}".replace("-", "−")


def _wide(piece: XYPlot | ShadedTable) -> bool:
    return isinstance(piece, ShadedTable) and len(piece.columns) + bool(piece.right) >= 6


def _lines(places: list[tuple[XYPlot | ShadedTable, bool]], columns: int) -> list[list[XYPlot | ShadedTable]]:
    lines: list[list[XYPlot | ShadedTable]] = []
    for piece, wide in places:
        if wide or not lines or len(lines[-1]) == columns or _wide(lines[-1][0]):
            lines.append([])
        lines[-1].append(piece)
    return lines


def _height(piece: XYPlot | ShadedTable) -> float:
    if isinstance(piece, ShadedTable):
        return 0.55 + 0.24 * (len(piece.rows) + 1 + bool(piece.below))
    return 3.0 if piece.equal else 2.5
