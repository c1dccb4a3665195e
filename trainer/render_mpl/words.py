"""Words and axes on paper: what each word of a caption is worth, and pairs along axes that texts define."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.charts.color_words import own_colors
from trainer.charts.snapshot_label import labels
from trainer.charts.words import AxesChart, WordsChart
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import (
    COLUMN_IN,
    INK,
    PAGE_IN,
    class_colors,
    footnote,
    in_style,
    new_figure,
    run_color,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CLASSES = 12


@in_style
def draw(chart: WordsChart) -> Figure:
    """A bar for every word and run: by how much the cosine falls without it; the rank beside it."""
    runs, places = len(chart.runs), np.arange(len(chart.words))
    figure = new_figure(COLUMN_IN * 1.5, 1.2 + 0.3 * len(chart.words) * max(1, runs / 1.5))
    axes = figure.subplots()
    height = 0.8 / runs
    for run, name in zip(chart.runs, labels(chart.runs), strict=True):
        at = places + (run.index - (runs - 1) / 2) * height
        label = f"{name}: cosine {run.cosine:.3f}, rank {run.rank:,} of {run.n:,}"
        axes.barh(at, run.drops, height * 0.92, color=run_color(run.index), label=label)
        for y, drop, rank in zip(at, run.drops, run.ranks):
            axes.annotate(
                f"rank {rank:,}",
                (max(float(drop), 0), y),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=6.5,
                color=INK,
            )
    axes.axvline(0, color=INK, linewidth=0.6)
    axes.set_yticks(places, chart.words)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("Cosine with the caption minus cosine without the word")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.02))
    footnote(figure, f"“{chart.caption}”, pair {chart.pair}. Cosines of two runs are not on one scale: compare ranks.")
    return figure


def rows(chart: WordsChart) -> NumberRows:
    """Cosine and rank of the caption, then without each word."""
    header = ("run", "name", "objective", "step", "dataset", "split", "pair", "n", "word", "left_out", "cosine", "rank")
    return NumberRows(header, _word_rows(chart))


def _word_rows(chart: WordsChart) -> Iterator[tuple[Any, ...]]:
    for run in chart.runs:
        facts = (run.run, run.name, run.objective, run.step, run.dataset, run.split, chart.pair, run.n)
        yield *facts, None, chart.caption, run.cosine, run.rank
        for place, word in enumerate(chart.words):
            yield *facts, place, word, float(run.cosines[place]), int(run.ranks[place])


@in_style
def draw_axes(chart: AxesChart) -> Figure:
    """A scatter a run: images as discs, texts as diamonds, colored by class where there are few."""
    columns = min(2, len(chart.runs))
    lines = -(-len(chart.runs) // columns)
    figure = new_figure(PAGE_IN if columns == 2 else COLUMN_IN * 1.3, 0.3 + 3.4 * lines)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes, run in zip(grid.flat, chart.runs):
        classes = sorted(set(run.labels))
        few = 1 < len(classes) <= MOST_CLASSES
        colors = own_colors(classes) or class_colors(len(classes)) if few else [run_color(run.index)]
        shades = [colors[classes.index(label)] if few else colors[0] for label in run.labels]
        for points, mark, size in ((run.images, "o", 5), (run.texts, "D", 5)):
            if points is not None:
                axes.scatter(
                    points[:, 0], points[:, 1], s=size, c=shades, marker=mark, linewidths=0, alpha=0.7, rasterized=True
                )
        if few:
            for name, color in zip(classes, colors):
                axes.scatter([], [], s=12, color=color, label=name)
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1.09), ncols=4)
        axes.set_title(f"{run.name}, step {run.step:,}, n = {run.n:,}")
        axes.set_xlabel(chart.x.words)
        axes.set_ylabel(chart.y.words)
        axes.axhline(0, color=INK, linewidth=0.3)
        axes.axvline(0, color=INK, linewidth=0.3)
    for axes in list(grid.flat)[len(chart.runs) :]:
        axes.set_axis_off()
    footnote(figure, "Inner products with unit directions. Images are discs, texts are diamonds.")
    return figure


def axes_rows(chart: AxesChart) -> NumberRows:
    """Both coordinates of every image and text."""
    header = ("run", "name", "step", "dataset", "split", "pair", "modality", "label", "x", "y")
    return NumberRows(header, _axes_rows(chart))


def _axes_rows(chart: AxesChart) -> Iterator[tuple[Any, ...]]:
    for run in chart.runs:
        for modality, points in (("image", run.images), ("text", run.texts)):
            for pair, (x, y) in enumerate(() if points is None else points.tolist()):
                facts = (run.run, run.name, run.step, run.dataset, run.split)
                yield *facts, pair, modality, run.labels[pair], x, y
