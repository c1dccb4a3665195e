"""The geometry timeline as a film: maps in a frame of each run, curves with the time cursor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from trainer.analysis.progress import Progress, silent
from trainer.charts import objective_label
from trainer.charts.marks import XYPlot
from trainer.charts.snapshot_curves import by_data, measure_plot
from trainer.charts.snapshot_series import MEASURES, TimelineRun
from trainer.charts.timeline import TimelineChart, map_at, note_of
from trainer.metrics import data_label, split_label
from trainer.render_mpl.film import FilmFrame, pixels_of
from trainer.render_mpl.pair_map import MOST_VECTOR_POINTS, draw_map, legend_of
from trainer.render_mpl.style import INK, PAGE_IN, footnote, in_style, new_figure
from trainer.render_mpl.xy_plot import draw_small

FILM_IN: Final = (9.6, 5.4)
FILM_DPI: Final = 140
BETWEEN: Final = 6
"""Frames on the way from one step to the next."""
BETWEEN_MS: Final = 40
HOLD_MS: Final = 600
LAST_MS: Final = 1800


def frames(chart: TimelineChart, progress: Progress = silent, *, only_last: bool = False) -> Iterator[FilmFrame]:
    """Yield the film, or its last frame: each step is held for a while, then its points move to their next places."""
    film = Film(chart)
    steps = chart.steps[-1:] if only_last else chart.steps
    for index, step in enumerate(steps):
        progress(index / len(steps), f"drawing step {step:,}")
        if index:
            before = steps[index - 1]
            for part in range(1, BETWEEN + 1):
                share = part / (BETWEEN + 1)
                yield FilmFrame(film.at(before, step, share * share * (3 - 2 * share)), BETWEEN_MS)
        last = index == len(steps) - 1
        yield FilmFrame(film.at(step, step, 0.0), LAST_MS if last else HOLD_MS)


class Film:
    """A figure whose points and cursors are moved from frame to frame.

    Attributes:
        figure: It.
        marks: Of each run, the points of its images and texts.
    """

    @in_style
    def __init__(self, chart: TimelineChart) -> None:
        self._chart = chart
        self.figure = figure = new_figure(*FILM_IN)
        figure.set_dpi(FILM_DPI)
        figure.get_layout_engine().set(w_pad=0.05, h_pad=0.04, hspace=0.02, wspace=0.02)
        left, right = figure.subfigures(1, 2, width_ratios=(3.1, 1))
        grid = left.subplots(1, len(chart.runs), squeeze=False)[0]
        self.marks: list[list[Any]] = []
        self._titles: list[Any] = []
        maps = []
        for axes, run in zip(grid, chart.runs, strict=True):
            detail = f"{objective_label(run.objective)}, {data_label(run)}, n = {run.n:,} pairs"
            notes = (detail + (" (sampled)" if run.sampled else ""),)
            maps.append(replace(map_at(chart, run, chart.steps[0]), title=run.name, notes=notes))
            self.marks.append(draw_map(axes, maps[-1], rasterized=maps[-1].count > MOST_VECTOR_POINTS))
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5}
            self._titles.append(axes.text(0.02, 0.02, "", transform=axes.transAxes, fontsize=9, bbox=box))
        handles, columns = legend_of(maps, PAGE_IN, most=7)
        left.legend(handles=handles, loc="outside lower left", ncols=columns, columnspacing=1.0, handletextpad=0.2)
        self._cursors = []
        parts = by_data(chart.runs)
        panels = right.subplots(len(MEASURES), len(parts), sharex="col", squeeze=False)
        for index, (row, measure) in enumerate(zip(panels, MEASURES, strict=True)):
            for axes, runs in zip(row, parts, strict=True):
                draw_small(
                    axes, _one_line(measure_plot(measure, runs), runs), ticks=2, bottom=index == len(MEASURES) - 1
                )
                self._cursors.append(axes.axvline(0, color=INK, linewidth=0.8))
        footnote(figure, note_of(chart, chart.steps))
        self.at(chart.steps[-1], chart.steps[-1], 0.0)
        # Laid out once: a layout a frame would take longer than the drawing, and tremble.
        figure.set_layout_engine("none")

    @in_style
    def at(self, step: int, towards: int, share: float) -> np.ndarray:
        """Return the pixels at a share of the way from one step to another."""
        for run, marks, title in zip(self._chart.runs, self.marks, self._titles, strict=True):
            before, after = run.at(step), run.at(towards)
            xy = run.points[before] + share * (run.points[after] - run.points[before])
            for mark, part in zip(marks, (xy[: run.images], xy[run.images :]), strict=True):
                mark.set_offsets(part)
            title.set_text(f"step {run.steps[after if share >= 0.5 else before]:,}")
        for cursor in self._cursors:
            cursor.set_xdata([step + share * (towards - step)] * 2)
        return pixels_of(self.figure)


def _one_line(plot: XYPlot, runs: Sequence[TimelineRun]) -> XYPlot:
    """Return the plot without the split in its title, which the maps name: a second line would lie on the plot."""
    label = plot.y.label
    for run in runs:
        label = label.replace(f", {split_label(run.split)}", "")
    return replace(plot, y=replace(plot.y, label=label))
