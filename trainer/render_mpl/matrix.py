"""Figures of the similarity matrix: one heat map per run, each with its own color scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainer.charts.matrix import MatrixChart
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import COLUMN_IN, PAGE_IN, footnote, heading, in_style, new_figure, run_color

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_WORDS = 24
"""Captions beside the rows if there are no more than this."""


@in_style
def draw(chart: MatrixChart) -> Figure:
    """Draw images in rows, texts in columns, with captions if every cell is one cosine and there is space."""
    columns = min(2, len(chart.runs))
    lines = -(-len(chart.runs) // columns)
    named = len(chart.runs[0].tile.rows) <= MOST_WORDS and chart.runs[0].tile.single
    figure = new_figure(PAGE_IN if columns == 2 else COLUMN_IN * 1.4, 0.3 + (4.4 if named else 3.5) * lines)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes, run in zip(grid.flat, chart.runs):
        window = run.tile.window
        ends = (window.left, window.right, window.bottom, window.top)
        picture = axes.imshow(
            run.tile.means,
            cmap="viridis",
            vmin=run.low,
            vmax=run.high,
            extent=ends,
            aspect="auto",
            interpolation="nearest",
        )
        figure.colorbar(picture, ax=axes, label="Cosine" if run.tile.single else "Mean cosine", shrink=0.8)
        heading(axes, run.name, f"step {run.step:,}, n = {run.n:,}", swatch=run_color(run.index))
        axes.set_xlabel("Texts, in order")
        axes.set_ylabel("Images, in order")
        if named:
            captions = [chart.captions[int(group[0])] for group in run.tile.columns]
            axes.set_xticks([window.left + i + 0.5 for i in range(len(captions))], captions, rotation=90, fontsize=5)
            axes.set_yticks([])
    for axes in list(grid.flat)[len(chart.runs) :]:
        axes.set_axis_off()
    footnote(figure, chart.note)
    return figure


def rows(chart: MatrixChart) -> NumberRows:
    """Return every cell of the image: its range of the order, and its mean cosine."""
    header = ("run", "name", "step", "dataset", "split", "row_from", "row_to", "column_from", "column_to", "images")
    return NumberRows((*header, "texts", "mean_cosine"), _rows(chart))


def _rows(chart: MatrixChart) -> Iterator[tuple[Any, ...]]:
    for run in chart.runs:
        facts = (run.run, run.name, run.step, run.dataset, run.split)
        top = run.tile.window.top
        for group, means in zip(run.tile.rows, run.tile.means.tolist()):
            left = run.tile.window.left
            for others, value in zip(run.tile.columns, means):
                names = (" ".join(map(str, g.tolist())) if len(g) <= 8 else None for g in (group, others))
                yield *facts, top, top + len(group), left, left + len(others), *names, value
                left += len(others)
            top += len(group)
