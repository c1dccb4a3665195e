"""A panel of the Loss lab on paper: its plots two a row, its tables, its numbers and the settings they hold for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.charts.lab.pieces import Curve, LabChart, Plot, Table
from trainer.charts.lab.settings import knobs, words
from trainer.render_mpl.files import Rows
from trainer.render_mpl.style import HAIRLINE, INK, OKABE_ITO, PAGE_IN, QUIET, footnote, heading, in_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTERS: Final = 120
"""About as many stand beside each other on a page, in the size of a legend."""

TONES: Final = {
    "first": OKABE_ITO[2],
    "second": OKABE_ITO[3],
    "third": OKABE_ITO[6],
    "fourth": OKABE_ITO[7],
    "quiet": "#8A93A0",
    "bad": "#C02B35",
    "run_a": OKABE_ITO[0],
    "run_b": OKABE_ITO[1],
}
"""The first two of Okabe and Ito mean runs A and B, and nothing else."""


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
            draw_table(axes, piece) if isinstance(piece, Table) else draw_plot(axes, piece)
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
        for name, height in zip(plot.names, plot.bars, strict=True):
            yield chart.panel, plot.key, name, None, height
        for dot in plot.dots:
            yield chart.panel, plot.key, " ".join(filter(None, (dot.name, dot.label))), dot.x, dot.y
    for table in chart.tables:
        yield from ((chart.panel, table.key, *cell) for cell in cells_of(table))


def points(curve: Curve) -> Iterator[tuple[float, float]]:
    """Every point of a curve; the middles of the bins of a stepped one."""
    x = (curve.x[1:] + curve.x[:-1]) / 2 if curve.stepped else curve.x
    return zip(x.tolist(), curve.y.tolist(), strict=True)


def cells_of(table: Table) -> Iterator[tuple[str, str, float]]:
    """Names of row and column, and the number, of every cell."""
    for name, values in zip(table.rows, table.values.tolist(), strict=True):
        yield from ((name, column, value) for column, value in zip(table.columns, values, strict=True))
    if table.right:
        yield from ((name, table.right[0], float(v)) for name, v in zip(table.rows, table.right[1], strict=True))
    if table.below:
        yield from ((table.below[0], name, float(v)) for name, v in zip(table.columns, table.below[1], strict=True))


def _head(chart: LabChart) -> list[str]:
    known = [k for k in knobs(type(chart.settings)) if k.kind != "cells"]
    held = [f"{k.label} = {_short(getattr(chart.settings, k.name))}" for k in known]
    facts = [f"{fact.words}: {fact.text}" for fact in chart.facts]
    return [f"Loss lab: {chart.title}", *broken(held, " · "), *broken(facts, " · ")]


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,.6g}".replace("-", "−")


def broken(parts: list[str], between: str, most: int = 132) -> list[str]:
    """The parts in lines of at most about `most` letters, no part broken."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(between) + len(part) > most:
            lines.append(part)
        else:
            lines[-1] += between + part
    return lines


def _wide(piece: Plot | Table) -> bool:
    return isinstance(piece, Table) and len(piece.columns) + bool(piece.right) >= 6


def _lines(places: list[tuple[Plot | Table, bool]], columns: int) -> list[list[Plot | Table]]:
    lines: list[list[Plot | Table]] = []
    for piece, wide in places:
        if wide or not lines or len(lines[-1]) == columns or _wide(lines[-1][0]):
            lines.append([])
        lines[-1].append(piece)
    return lines


def _height(piece: Plot | Table) -> float:
    if isinstance(piece, Table):
        return 0.55 + 0.24 * (len(piece.rows) + 1 + bool(piece.below))
    return 3.0 if piece.equal else 2.5


def draw_plot(axes: Axes, plot: Plot, *, columns: int = 4) -> None:
    """Curves, bars, dots and shaded ranges, with title and a legend of so many columns."""
    for region in plot.regions:
        axes.axvspan(region.low, region.high, color=TONES["bad"], alpha=0.1, linewidth=0)
        at_end = region.high >= plot.x.high
        place = region.high if at_end else (region.low + region.high) / 2
        style = {"transform": axes.get_xaxis_transform(), "ha": "right" if at_end else "center", "fontsize": 7}
        axes.text(place, 0.97, region.name, color=TONES["bad"], va="top", **style)
    if plot.cloud is not None:
        axes.scatter(*plot.cloud.T, s=2, color=HAIRLINE, linewidths=0, zorder=0.5)
    for curve in plot.curves:
        style = {"color": TONES[curve.tone], "linewidth": 0.65 * curve.width, "label": curve.name or None}
        if curve.stepped:
            axes.stairs(curve.y, curve.x, **style)
        else:
            axes.plot(curve.x, curve.y, linestyle=(0, (4, 2)) if curve.dashed else "-", **style)
    if plot.bars:
        axes.bar(range(len(plot.bars)), plot.bars, color=TONES["first"], width=0.7)
        for place, height in enumerate(plot.bars):
            axes.text(place, height, f"{height:.3f}", ha="center", va="bottom", fontsize=6.5, color=QUIET)
    if plot.names:
        axes.set_xticks(range(len(plot.names)), plot.names)
        if sum(map(len, plot.names)) > LETTERS * columns / 4 / 2:
            axes.tick_params(axis="x", labelsize=6)
    _draw_dots(axes, plot)
    if np.isfinite(plot.cursor):
        axes.axvline(plot.cursor, color=INK, linewidth=0.7, linestyle=(0, (4, 3)), zorder=0.5)
    _scale(axes, plot)
    lines = _legend(axes, columns)
    heading(axes, plot.title, plot.note, above_pt=3 + 11 * lines if lines else 0)


def _legend(axes: Axes, columns: int) -> int:
    """Names the series over the axes, where no curve is, in so many lines; a single one is named by the title."""
    handles, names = axes.get_legend_handles_labels()
    if len(names) < 2:
        return 0
    # A legend wider than its axes would push them together.
    columns = max(1, min(columns, int(LETTERS * columns / 4 / (max(map(len, names)) + 6))))
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1.01), "labelspacing": 0.2}
    drawn = axes.legend(handles, names, ncols=columns, columnspacing=1.2, **place)
    for handle, mark in zip(handles, drawn.legend_handles, strict=True):
        if hasattr(handle, "get_sizes"):
            mark.set_sizes([18])
    return -(-len(names) // columns)


def _draw_dots(axes: Axes, plot: Plot) -> None:
    named: set[str] = set()
    for dot in plot.dots:
        colour = TONES[dot.tone]
        style: dict[str, Any] = {"facecolor": "none" if dot.mark == "ring" else colour, "edgecolor": colour}
        label = None if dot.name in named else dot.name
        named.add(dot.name)
        marker = "D" if dot.mark == "diamond" else "o"
        axes.scatter([dot.x], [dot.y], s=(0.6 * dot.size) ** 2, marker=marker, zorder=3, label=label, **style)
        if dot.label:
            axes.annotate(dot.label, (1.25 * dot.x, 1.25 * dot.y), ha="center", va="center", fontsize=7, color=QUIET)


def _scale(axes: Axes, plot: Plot) -> None:
    from matplotlib.ticker import NullLocator

    for axis, piece in (("x", plot.x), ("y", plot.y)):
        getattr(axes, f"set_{axis}label")(piece.label)
        if piece.log:
            getattr(axes, f"set_{axis}scale")("log")
            values, labels = zip(*piece.ticks())
            getattr(axes, f"set_{axis}ticks")(values, labels)
            getattr(axes, f"{axis}axis").set_minor_locator(NullLocator())
        getattr(axes, f"set_{axis}lim")(piece.low, piece.high)
    if plot.equal:
        axes.set_aspect("equal")
        axes.set_axis_off()


def draw_table(axes: Axes, table: Table) -> None:
    """The shaded cells with their names."""
    axes.set_title(table.title)
    axes.set_axis_off()
    columns = len(table.columns) + bool(table.right)
    lines = len(table.rows) + bool(table.below)
    axes.set_xlim(-1, columns - 0.45)
    axes.set_ylim(lines - 0.3, -1.1)
    for (row, column), value in np.ndenumerate(table.values):
        share = min(abs(float(value)) / table.top, 1.0) if table.top and value == value else 0.0
        frame = INK if (row, column) in table.marked else "white"
        axes.add_patch(_cell(row, column, TONES["first"], 0.05 + 0.5 * share, frame))
        _write(axes, row, column, _number(value, table.digits), INK)
    for row, name in enumerate(table.rows):
        _write(axes, row, -0.55, name, QUIET, side="right")
    for column, name in enumerate(table.columns):
        _write(axes, -0.72, column, name, QUIET)
    if table.right:
        _write(axes, -0.72, columns - 1, table.right[0], QUIET)
        for row, value in enumerate(table.right[1]):
            _write(axes, row, columns - 1, _number(value, table.digits), INK)
    if table.below:
        _write(axes, lines - 1, -0.55, table.below[0], QUIET, side="right")
        for column, value in enumerate(table.below[1]):
            _write(axes, lines - 1, column, _number(value, table.digits), INK)


def _cell(row: int, column: int, colour: str, alpha: float, frame: str) -> Any:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    place = (column - 0.47, row - 0.46)
    return Rectangle(place, 0.94, 0.92, facecolor=to_rgba(colour, alpha), edgecolor=frame, linewidth=0.8)


def _write(axes: Axes, row: float, column: float, text: str, colour: str, *, side: str = "center") -> None:
    axes.text(column, row, text, ha=side, va="center", fontsize=7.5, color=colour)


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−") if value == value else "–"
