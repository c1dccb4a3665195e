"""The geometry timeline as figure and film: maps in one frame, curves with the time cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.charts import objective_label
from trainer.charts.colored_points import ColoredPoints
from trainer.charts.marks import XYPlot, dash_of, run_tone
from trainer.charts.pair_colors import CHANGED, COMPUTED, MODALITY
from trainer.charts.pair_colors import words as words_of
from trainer.charts.snapshot_curves import measure_plot
from trainer.charts.snapshot_series import MEASURES, TimelineRun
from trainer.charts.timeline import TimelineChart, compared_words, point_colors
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.film import FilmFrame
from trainer.render_mpl.point_colors import colors_of_pairs, colors_of_table
from trainer.render_mpl.style import (
    HAIRLINE,
    IMAGE_COLOR,
    INK,
    PAGE_IN,
    QUIET,
    TEXT_COLOR,
    footnote,
    heading,
    in_style,
    new_figure,
    run_color,
)
from trainer.render_mpl.xy_plot import draw_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_STEPS: Final = 5
"""Maps a row of the still figure; of more steps evenly chosen ones are shown, and the footnote says so."""
MOST_VECTOR_POINTS: Final = 50_000
MOST_NAMED: Final = 12
STOPS: Final = 4
"""Numbers of a scale that the legend names."""
FILM_IN: Final = (9.6, 5.4)
FILM_DPI: Final = 140
BETWEEN: Final = 6
"""Frames on the way from one step to the next."""
BETWEEN_MS: Final = 40
HOLD_MS: Final = 600
LAST_MS: Final = 1800


@in_style
def draw(chart: TimelineChart) -> Figure:
    """Draw one row of maps per run, all in one frame, above the curves."""
    steps = _chosen(chart.steps)
    lines = len(chart.runs)
    figure = new_figure(PAGE_IN, 0.9 + (PAGE_IN / len(steps)) * lines + 2.9)
    figure.get_layout_engine().set(w_pad=0.05, h_pad=0.05, hspace=0.04, wspace=0.02)
    maps, below = figure.subfigures(2, 1, height_ratios=((PAGE_IN / len(steps)) * lines + 0.5, 2.9))
    grid = maps.subplots(lines, len(steps), squeeze=False)
    colors = _colors(chart)
    for axes_row, run in zip(grid, chart.runs, strict=True):
        for column, (axes, step) in enumerate(zip(axes_row, steps, strict=True)):
            _scatter(axes, run, run.points[run.at(step)], chart, colors, size=0.45)
            axes.set_title(f"step {run.steps[run.at(step)]:,}", fontsize=7.5, color=QUIET, fontweight=400)
            if column == 0:
                axes.set_ylabel(run.name, fontsize=8, color=run_color(run.index), fontweight=600)
    panels = below.subplots(2, 4, squeeze=False)
    for axes, measure in zip(panels.flat, MEASURES):
        draw_measure(axes, measure_plot(measure, chart.runs))
    _legend(panels.flat[len(MEASURES)], chart)
    footnote(figure, note_of(chart, steps))
    return figure


def rows(chart: TimelineChart) -> NumberRows:
    """Return every point of every curve: run, measure, step, value, and whether it was logged."""
    header = ("run", "name", "objective", "dataset", "split", "n", "measured_on", "measure", "unit", "step", "value")
    return NumberRows((*header, "logged"), _rows(chart))


def frames(chart: TimelineChart, progress: Callable[[float, str], None] | None = None) -> Iterator[FilmFrame]:
    """Yield the film: each step is held for a while, then its points move to their next positions."""
    film = Film(chart)
    steps = chart.steps
    for index, step in enumerate(steps):
        if progress:
            progress(index / len(steps), f"drawing step {step:,}")
        if index:
            before = steps[index - 1]
            for part in range(1, BETWEEN + 1):
                share = part / (BETWEEN + 1)
                yield FilmFrame(film.at(before, step, share * share * (3 - 2 * share)), BETWEEN_MS)
        last = index == len(steps) - 1
        yield FilmFrame(film.at(step, step, 0.0), LAST_MS if last else HOLD_MS)


class Film:
    """A figure whose points and cursors are moved from frame to frame."""

    @in_style
    def __init__(self, chart: TimelineChart) -> None:
        self._chart = chart
        self._figure = figure = new_figure(*FILM_IN)
        figure.set_dpi(FILM_DPI)
        figure.get_layout_engine().set(w_pad=0.05, h_pad=0.04, hspace=0.02, wspace=0.02)
        left, right = figure.subfigures(1, 2, width_ratios=(3.1, 1))
        grid = left.subplots(1, len(chart.runs), squeeze=False)[0]
        colors = _colors(chart)
        self.marks: list[list[Any]] = []
        self._titles: list[Any] = []
        for axes, run in zip(grid, chart.runs, strict=True):
            self.marks.append(_scatter(axes, run, run.points[0], chart, colors, size=1.0))
            detail = f"{objective_label(run.objective)}, {run.dataset} {run.split}, n = {run.n:,} pairs"
            heading(axes, run.name, detail + (" (sampled)" if run.sampled else ""), swatch=run_color(run.index))
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5}
            self._titles.append(axes.text(0.02, 0.02, "", transform=axes.transAxes, fontsize=9, bbox=box))
        named = legend_handles(chart)[len(chart.runs) :]
        across = min(len(named), 7)
        left.legend(handles=named, loc="outside lower left", ncols=across, columnspacing=1.0, handletextpad=0.2)
        self._cursors = []
        panels = right.subplots(len(MEASURES), 1, sharex=True, squeeze=False)[:, 0]
        for index, (axes, measure) in enumerate(zip(panels, MEASURES, strict=True)):
            draw_measure(axes, measure_plot(measure, chart.runs), small=True, bottom=index == len(MEASURES) - 1)
            self._cursors.append(axes.axvline(0, color=INK, linewidth=0.8))
        footnote(figure, note_of(chart, chart.steps))
        self.at(chart.steps[-1], chart.steps[-1], 0.0)
        # Laid out once: a layout a frame would take longer than the drawing, and tremble.
        figure.set_layout_engine("none")

    @in_style
    def at(self, step: int, towards: int, share: float) -> np.ndarray:
        """Return the pixels at a share of the way from one step to another."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        for run, marks, title in zip(self._chart.runs, self.marks, self._titles, strict=True):
            before, after = run.at(step), run.at(towards)
            xy = run.points[before] + share * (run.points[after] - run.points[before])
            for mark, part in zip(marks, (xy[: run.images], xy[run.images :]), strict=True):
                mark.set_offsets(part)
            title.set_text(f"step {run.steps[after if share >= 0.5 else before]:,}")
        for cursor in self._cursors:
            cursor.set_xdata([step + share * (towards - step)] * 2)
        canvas = FigureCanvasAgg(self._figure)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _rows(chart: TimelineChart) -> Iterator[tuple[Any, ...]]:
    for run in chart.runs:
        for measure in MEASURES:
            curve = run.curves.get(measure.key)
            if curve is None:
                continue
            for step, value in zip(curve.x.tolist(), curve.y.tolist(), strict=True):
                facts = (run.run, run.name, run.objective, run.dataset, run.split, run.n)
                measured_on = run.n if curve.logged else run.measured
                yield *facts, measured_on, measure.key, measure.unit, int(step), value, str(curve.logged).lower()


def _chosen(steps: Sequence[int]) -> list[int]:
    indices = np.unique(np.linspace(0, len(steps) - 1, min(MOST_STEPS, len(steps))).round().astype(int))
    return [steps[index] for index in indices]


def _scatter(
    axes: Axes, run: TimelineRun, xy: np.ndarray, chart: TimelineChart, colors: list[Any], *, size: float
) -> list[Any]:
    """Draw images and texts; both artists exist even if one is empty, so that a film can move them."""
    area = size * float(np.clip(9000 / max(len(xy), 1), 1.2, 16))
    raster = sum(len(points) for each_run in chart.runs for points in each_run.points) > MOST_VECTOR_POINTS
    marks = []
    own_colors = colors[chart.runs.index(run)]
    for part, marker, plain in ((xy[: run.images], "o", IMAGE_COLOR), (xy[run.images :], "D", TEXT_COLOR)):
        color = plain if own_colors is None else own_colors[: len(part)]
        style: dict[str, Any] = {"linewidths": 0, "alpha": 0.75, "rasterized": raster}
        marks.append(axes.scatter(part[:, 0], part[:, 1], s=area, c=color, marker=marker, **style))
    left, bottom, right, top = chart.frame
    half = 0.54 * max(right - left, top - bottom, 1e-9)
    x, y = (left + right) / 2, (bottom + top) / 2
    axes.set(xticks=[], yticks=[], xlim=(x - half, x + half), ylim=(y - half, y + half))
    axes.set_box_aspect(1)
    axes.spines[:].set(visible=True, color=HAIRLINE)
    return marks


def _colored(chart: TimelineChart) -> tuple[ColoredPoints, ...]:
    return chart.colors or point_colors(chart)


def _colors(chart: TimelineChart) -> list[Any]:
    """Return the colors of each run's pairs; None if colored by modality."""
    colored = _colored(chart)
    return [None if colors.is_plain else colors_of_pairs(colors, QUIET) for colors in colored]


def draw_measure(axes: Axes, plot: XYPlot, *, small: bool = False, bottom: bool = True) -> None:
    """Draw a plot of one measure; the runs are named by the legend of the figure."""
    from matplotlib.ticker import MaxNLocator

    unnamed = replace(plot, title="", note="", x=replace(plot.x, label=""), y=replace(plot.y, label=""))
    draw_plot(axes, unnamed, legend=False)
    axes.set_title(plot.y.label, fontsize=7 if small else 7.5, fontweight=400, pad=3, color=QUIET)
    axes.tick_params(labelsize=6.5, labelbottom=bottom)
    axes.yaxis.set_major_locator(MaxNLocator(2 if small else 3))
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    if bottom:
        axes.set_xlabel(plot.x.label, fontsize=6.5, labelpad=2)


def legend_handles(chart: TimelineChart) -> list[Any]:
    """Return the entries of the legend: runs, modalities, and what the colors mean."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], color=run_color(run.index), label=run.name, linestyle=(0, dash_of(run_tone(run.index)) or (1, 0))
        )
        for run in chart.runs
    ]
    colored = _colored(chart)
    plain = (IMAGE_COLOR, TEXT_COLOR) if colored[0].by == MODALITY else (QUIET, QUIET)
    for marker, label, color in zip("oD", ("Images", "Texts"), plain, strict=True):
        handles.append(Line2D([], [], marker=marker, color=color, linestyle="", markersize=3.5, label=label))
    named = _named(chart, colored)
    for name, color in named[:MOST_NAMED]:
        mark = {"marker": "s", "color": color, "linestyle": "", "markersize": 3.5}
        handles.append(Line2D([], [], label=name[:18], **mark))
    if len(named) > MOST_NAMED:
        handles.append(Line2D([], [], linestyle="", label=f"and {len(named) - MOST_NAMED} more"))
    return handles


def _named(chart: TimelineChart, colored: Sequence[ColoredPoints]) -> list[tuple[str, Any]]:
    """Return the legend of the colors: classes, or values of a scale; per run if each has its own."""
    first = colored[0]
    if first.numbers is None:
        return list(zip(first.names, colors_of_table(first), strict=False))
    own_scales = first.own_scale and len(colored) > 1
    entries = []
    for run, colors in list(zip(chart.runs, colored, strict=True))[: None if own_scales else 1]:
        letter = f"{'AB'[run.index] if run.index < 2 else run.index + 1} " if own_scales else ""
        shades = colors_of_table(colors)
        entries += [(f"{letter}{value}", shades[row]) for value, row in colors.stops(STOPS)]
    return entries


def _legend(axes: Axes, chart: TimelineChart) -> None:
    axes.set_axis_off()
    handles = legend_handles(chart)
    axes.legend(handles=handles, loc="upper left", ncols=2 if len(handles) > 6 else 1, fontsize=6.5, columnspacing=0.8)


def note_of(chart: TimelineChart, steps: Sequence[int]) -> str:
    """Return the footnote: how points are placed and colored, and what was sampled."""
    sizes = ", ".join(f"{run.n:,} ({run.name})" for run in chart.runs)
    sentences = [chart.note, f"Pairs: {sizes}"]
    colors = _colored(chart)[0]
    if colors.by != MODALITY:
        question = ", of the last step" if colors.by in COMPUTED else ""
        question = f" from A to B: {compared_words(chart.runs)}" if colors.by in CHANGED else question
        sentences.append(f"Colored by {words_of(colors.by)[0].lower()}{words_of(colors.by)[1:]}{question}")
    if colors.note:
        sentences.append(colors.note[0].upper() + colors.note[1:])
    if len(steps) < len(chart.steps):
        sentences.append(f"{len(steps)} of {len(chart.steps)} steps are shown")
    sampled = [run for run in chart.runs if run.measured < run.n]
    if sampled:
        sentences.append(f"Curves that are not logged: measured on {sampled[0].measured:,} of {sampled[0].n:,} pairs")
    return ". ".join(sentences) + "."
