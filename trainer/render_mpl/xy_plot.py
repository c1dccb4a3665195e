"""Draw a plot of `trainer.charts.marks` with matplotlib: lines with bands, bars, points, markers and ranges."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.analysis.number_text import tick_texts, whole
from trainer.analysis.palette import readable, run_shade, thin
from trainer.charts.color_words import own_colors
from trainer.charts.marks import (
    CURVE_SYMBOLS,
    CURVE_SYMBOLS_SPARSE,
    HATCHES,
    HUES,
    RUN_TONES,
    SYMBOLS,
    Points,
    Series,
    Tone,
    XYPlot,
    bar_text,
    dash_of,
    hue_of,
    is_thin,
    pattern_of,
)
from trainer.render_mpl.dot_labels import label_dots
from trainer.render_mpl.style import INK, OKABE_ITO, QUIET, class_colors, heading, run_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import Formatter

LETTERS: Final = 120
"""About as many stand beside each other on a page, in the size of a legend."""

NARROW_LETTERS: Final = 18
"""Of one line over a plot that is a quarter of a page wide."""

LYING_LETTERS: Final = 52
"""Of one line of a category's name beside lying bars, on a whole page."""

TONES: Final = {
    "run_a": OKABE_ITO[0],
    "run_b": OKABE_ITO[1],
    "first": OKABE_ITO[2],
    "second": OKABE_ITO[3],
    "third": OKABE_ITO[6],
    "fourth": OKABE_ITO[7],
    "fifth": OKABE_ITO[4],
    "sixth": OKABE_ITO[5],
    "quiet": "#8A93A0",
    "against": "#6A6A6A",
    "bad": "#C02B35",
}
"""The hues of runs, and what is no run."""


def tone_color(tone: Tone) -> str:
    """Return the color of a tone on paper."""
    if tone in RUN_TONES:
        return run_color(RUN_TONES.index(tone))
    hue, lightness = hue_of(tone)
    return TONES[hue] if lightness is None else run_shade(HUES.index(hue), lightness)


_CURVE_MARKERS: Final = {"disc": "o", "square": "s", "triangle": "^", "diamond": "D"}
_SYMBOLS: Final = {"square": "s", "triangle": "^", "pentagon": "p", "hexagon": "h"}
_MARKS: Final = {"diamond": "D", "up": "^", "down": "v"}

_MOST_WRITTEN: Final = 16
"""More bars than these have no number written over them."""


def draw_plot(axes: Axes, plot: XYPlot, *, columns: int = 4, legend: bool = True) -> None:
    """Draw everything in the plot, with title and, unless the figure has one, a legend of this many columns."""
    for region in plot.regions:
        axes.axvspan(region.low, region.high, color=TONES["bad"], alpha=0.1, linewidth=0)
        at_end = region.high >= plot.x.high
        x = region.high if at_end else (region.low + region.high) / 2
        style = {"transform": axes.get_xaxis_transform(), "ha": "right" if at_end else "center", "fontsize": 7}
        axes.text(x, 0.97, region.name, color=TONES["bad"], va="top", **style)
    for cloud in plot.points:
        size = (0.5 * cloud.size) ** 2 / 2
        axes.scatter(
            *cloud.xy.T[:: -1 if plot.lying else 1],
            s=size,
            color=_cloud_color(cloud),
            marker="D" if cloud.mark == "diamond" else "o",
            linewidths=0,
            zorder=0.5,
            label=cloud.name or None,
        )
    for curve in plot.curves:
        _draw_series(axes, curve)
    if plot.lying:
        _draw_lying(axes, plot, columns)
    else:
        _draw_bars(axes, plot)
    if plot.names and not plot.lying:
        axes.set_xticks(range(len(plot.names)), plot.names)
        if sum(map(len, plot.names)) > LETTERS * columns / 4 / 2:
            axes.tick_params(axis="x", labelsize=6)
    _draw_dots(axes, plot)
    if np.isfinite(plot.cursor):
        axes.axvline(plot.cursor, color=INK, linewidth=0.7, linestyle=(0, (4, 3)), zorder=0.5)
    _scale(axes, plot)
    if legend and plot.legend:
        _legend(axes, columns)
    lines = legend_lines(plot, columns) if legend else 0
    swatch = tone_color(plot.tone) if plot.tone else None
    heading(axes, plot.title, plot.note, swatch=swatch, above_pt=3 + 11 * lines if lines else 0)


def draw_small(axes: Axes, plot: XYPlot, *, ticks: int = 3, bottom: bool = True, lines: int = 1) -> None:
    """Draw a plot whose runs the legend of the figure names, with so few numbers on its axes.

    Args:
        axes: Where.
        plot: The plot; its measure stands over it.
        ticks: Numbers beside it.
        bottom: It has the axis of its column, with numbers and label.
        lines: The line of the measure and that of what it was measured on.
    """
    from matplotlib.ticker import MaxNLocator

    unnamed = replace(plot, title="", note="", x=replace(plot.x, label=""), y=replace(plot.y, label=""))
    draw_plot(axes, unnamed, legend=False)
    unit = plot.y.label.removeprefix(plot.title)
    measure, _, on = plot.title.partition(", ")
    title = f"{measure}{unit}\n{on}" if lines > 1 else plot.y.label
    axes.set_title(title, fontsize=7, fontweight=400, pad=3, color=QUIET)
    axes.tick_params(labelsize=7, labelbottom=bottom)
    axes.yaxis.set_major_locator(MaxNLocator(ticks))
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    if bottom:
        axes.set_xlabel(plot.x.label, fontsize=7, labelpad=2)


def faint(color: str) -> str:
    """Return the color mixed with white, still seen on it: what was measured under what was made of it."""
    mixed = (round(0.5 * int(color[i : i + 2], 16) + 127.5) for i in (1, 3, 5))
    return readable("#" + "".join(f"{part:02x}" for part in mixed))


def _draw_series(axes: Axes, curve: Series) -> None:
    color = tone_color(curve.tone)
    # As in the window: a thin line in the darkest tone of its hue would look black.
    line_color = thin(color) if is_thin(curve.tone, curve.width) and not curve.filled else color
    style: dict[str, Any] = {"color": line_color, "linewidth": 0.65 * curve.width, "label": curve.name or None}
    style["alpha"] = 0.75 if curve.filled else 1.0
    if curve.faint:
        style |= {"color": faint(color), "linewidth": 0.5}
    if curve.stepped:
        pattern = () if curve.filled else dash_of(curve.tone, dashed=curve.dashed)
        axes.stairs(curve.y, curve.x, fill=curve.filled, linestyle=(0, pattern) if pattern else "-", **style)
    else:
        pattern = dash_of(curve.tone, dashed=curve.dashed)
        dashes = (0, pattern) if pattern and not curve.faint else "-"
        symbol = CURVE_SYMBOLS[curve.symbol % len(CURVE_SYMBOLS)]
        is_marked = curve.marked or (symbol != "disc" and not curve.faint)
        every = 1 if curve.marked else max(1, len(curve.x) // CURVE_SYMBOLS_SPARSE)
        style |= {"marker": _CURVE_MARKERS[symbol] if is_marked else "", "markersize": 3, "markevery": every}
        axes.plot(curve.x, curve.y, linestyle=dashes, **style)
    if curve.low is not None and curve.high is not None:
        axes.fill_between(curve.x, curve.low, curve.high, color=color, alpha=0.16, linewidth=0)
        for end in (curve.low, curve.high):
            axes.plot(curve.x, end, color=color, linewidth=0.4, linestyle=(0, (1, 2)))


def _draw_bars(axes: Axes, plot: XYPlot) -> None:
    wide = 0.7 / max(len(plot.bars), 1)
    written = len(plot.bars) * len(plot.names) <= _MOST_WRITTEN
    for index, bars in enumerate(plot.bars):
        at = np.arange(len(bars.heights)) + (index - (len(plot.bars) - 1) / 2) * wide
        axes.bar(at, bars.heights, width=0.94 * wide, label=bars.name or None, **_bar_style(bars.tone))
        heights = np.asarray(bars.heights, dtype=np.float64)
        tops = heights
        if bars.low:
            ends = np.abs(np.array([heights - bars.low, np.asarray(bars.high) - heights]))
            axes.errorbar(at, heights, yerr=ends, fmt="none", ecolor=INK, elinewidth=0.8)
            tops = np.asarray(bars.high, dtype=np.float64)
        if written:
            for x, top, height in zip(at, tops, heights, strict=True):
                axes.text(x, top, bar_text(height), ha="center", va="bottom", fontsize=6.5, color=QUIET)


def _bar_style(tone: Tone) -> dict[str, Any]:
    hue = pattern_of(tone)
    hatch = {"hatch": 2 * HATCHES[hue], "hatch_linewidth": 0.6} if hue in HATCHES else {}
    return {"color": tone_color(tone), "edgecolor": "white", "linewidth": 0, **hatch}


def lying_names(plot: XYPlot, columns: int) -> list[list[str]]:
    """Return the lines of each category's name next to horizontal bars: a name never takes most of the width."""
    return [textwrap.wrap(name, LYING_LETTERS * columns // 4) or [""] for name in plot.names]


def _draw_lying(axes: Axes, plot: XYPlot, columns: int) -> None:
    wide = 0.7 / max(len(plot.bars), 1)
    for index, bars in enumerate(plot.bars):
        at = np.arange(len(bars.heights)) + (index - (len(plot.bars) - 1) / 2) * wide
        axes.barh(at, bars.heights, 0.94 * wide, label=bars.name or None, **_bar_style(bars.tone))
        if len(plot.bars) * len(plot.names) <= _MOST_WRITTEN:
            for y, height in zip(at, bars.heights, strict=True):
                side = "left" if height >= 0 else "right"
                axes.text(height, y, f" {bar_text(height)} ", ha=side, va="center", fontsize=6.5, color=QUIET)
    axes.set_yticks(range(len(plot.names)), ["\n".join(lines) for lines in lying_names(plot, columns)])
    if plot.bars:
        axes.axvline(0, color=INK, linewidth=0.6)


def _cloud_color(cloud: Points) -> str:
    if cloud.classes:
        return (own_colors(cloud.classes) or class_colors(len(cloud.classes)))[cloud.at]
    return tone_color(cloud.tone)


def legend_lines(plot: XYPlot, columns: int) -> int:
    """Return the number of lines in the legend; a single series is named by the title."""
    names = legend_names(plot)
    if len(names) < 2 or not plot.legend:
        return 0
    return -(-len(names) // _columns(names, columns)) if columns > 1 else sum(len(_narrow(name)) for name in names)


def legend_names(plot: XYPlot) -> list[str]:
    """Return the names of all that a legend of the plot tells."""
    every = (plot.points, plot.curves, plot.bars, plot.dots)
    return [*dict.fromkeys(mark.name for marks in every for mark in marks if mark.name)]


def with_legend(plot: XYPlot) -> XYPlot:
    """Return the plot with the labels of markers that name a curve, `matched, mean 0.94`, in its legend."""
    labels = plot.curve_labels
    # By the handle of the curve, a filled bar or a line: its marker would look like one of a point.
    dots = [replace(dot, name="", label="") if dot.curve else dot for dot in plot.dots]
    curves = [replace(curve, name=labels.get(curve.name, curve.name)) for curve in plot.curves]
    return replace(plot, legend=plot.legend or bool(labels), dots=tuple(dots), curves=tuple(curves))


def _narrow(text: str) -> list[str]:
    return textwrap.wrap(text, NARROW_LETTERS, break_long_words=False) or [""]


def _columns(names: list[str], most: int) -> int:
    # A legend wider than its axes would push them together.
    return max(1, min(most, int(LETTERS * most / 4 / (max(map(len, names)) + 6))))


def _legend(axes: Axes, columns: int) -> None:
    """Draw the legend above the axes, outside of the curves."""
    handles, names = axes.get_legend_handles_labels()
    if len(names) < 2:
        return
    position = {"loc": "lower left", "bbox_to_anchor": (0, 1), "labelspacing": 0.2}
    names = ["\n".join(_narrow(name)) for name in names] if columns == 1 else names
    # Two strokes of a line of dashes and dots: one stroke is that of a dashed line.
    broken = any(hasattr(handle, "is_dashed") and handle.is_dashed() for handle in handles)
    position |= {"handlelength": 3.0} if broken else {}
    drawn = axes.legend(handles, names, ncols=_columns(names, columns), columnspacing=1.2, **position)
    for line in drawn.get_lines() if broken else ():
        if line.get_marker() == _CURVE_MARKERS["disc"]:
            line.set_marker("")  # would lie on the dot between the strokes
    for handle, mark in zip(handles, drawn.legend_handles, strict=True):
        if hasattr(handle, "get_sizes"):
            mark.set_sizes([18])


def _draw_dots(axes: Axes, plot: XYPlot) -> None:
    named: set[str] = set()
    for dot in plot.dots:
        color = tone_color(dot.tone)
        style: dict[str, Any] = {"facecolor": "none" if dot.mark == "ring" else color, "edgecolor": color}
        label = None if dot.name in named else dot.name
        named.add(dot.name)
        marker = _MARKS.get(dot.mark) or _SYMBOLS.get(SYMBOLS.get(pattern_of(dot.tone), ""), "o")
        x, y = (dot.y, dot.x) if plot.lying else (dot.x, dot.y)
        axes.scatter(
            [x], [y], s=(0.6 * dot.size) ** 2, marker=marker, zorder=3, label=label, clip_on=not plot.lying, **style
        )
        if dot.low == dot.low:
            ends: dict[str, Any] = {"xerr" if plot.lying else "yerr": [[dot.y - dot.low], [dot.high - dot.y]]}
            axes.errorbar([x], [y], **ends, fmt="none", ecolor=color, elinewidth=1, capsize=2)
    label_dots(axes, plot.dots, lying=plot.lying, over_lines=bool(plot.curves))


def _tick_formatter() -> Formatter:
    from matplotlib.ticker import FuncFormatter

    class _Ticks(FuncFormatter):
        def format_ticks(self, values: Sequence[float]) -> list[str]:
            return tick_texts(values)

    return _Ticks(lambda value, _at: tick_texts([value])[0])


def _scale(axes: Axes, plot: XYPlot) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

    if plot.lying:
        axes.set(xlabel=plot.y.label, xlim=plot.value_ends, ylabel=plot.x.label, ylim=(plot.x.high, plot.x.low))
        return
    for axis, side in (("x", plot.x), ("y", plot.y)):
        getattr(axes, f"set_{axis}label")(side.label)
        if side.log:
            getattr(axes, f"set_{axis}scale")("log")
            values, labels = zip(*side.ticks())
            getattr(axes, f"set_{axis}ticks")(values, labels)
            getattr(axes, f"{axis}axis").set_minor_locator(NullLocator())
        elif isinstance(getattr(axes, f"{axis}axis").get_major_formatter(), ScalarFormatter):
            # An offset or a power of ten, "1e-6+2.7e-1", would lie on the title.
            getattr(axes, f"{axis}axis").set_major_formatter(_tick_formatter())
            if side.integer:
                getattr(axes, f"{axis}axis").set_major_formatter(lambda value, _at: whole(value))
                getattr(axes, f"{axis}axis").set_major_locator(
                    MaxNLocator("auto", integer=True, min_n_ticks=1, steps=(1, 2, 5, 10))
                )
        getattr(axes, f"set_{axis}lim")(*(plot.value_ends if axis == "y" else (side.low, side.high)))
    if plot.equal:
        # At the left of its place: a title as wide as that has room.
        axes.set_aspect("equal", anchor="W")
        axes.set_axis_off()
