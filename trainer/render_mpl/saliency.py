"""Figures of saliency: the image, each run's map over it, and their difference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.charts import objective_label
from trainer.charts.saliency import SaliencyChart
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import footnote, heading, in_style, new_figure, run_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@in_style
def draw(chart: SaliencyChart) -> Figure:
    """Draw a row of square panels, with a scale under each map."""
    difference = chart.difference
    panels = 1 + len(chart.runs) + (difference is not None)
    figure = new_figure(1.85 * panels, 2.95)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    axes[0].imshow(chart.image)
    axes[0].set_axis_off()
    # As much room under the image as the scales of the others take.
    spacer = figure.colorbar(_nothing(), ax=axes[0], orientation="horizontal", shrink=0.85, pad=0.04, aspect=22)
    spacer.set_label(" ", fontsize=7)
    spacer.ax.tick_params(labelsize=6.5, labelcolor="none", length=0)
    spacer.solids.set_visible(False)
    spacer.outline.set_visible(False)
    heading(axes[0], "Image", _cut(Path(chart.path).name, 26))
    for column, run in enumerate(chart.runs, 1):
        facts = f"{objective_label(run.objective)}, step {run.step:,}, cosine {run.cosine:.3f}"
        _draw_map(
            figure, axes[column], chart.image, run.cells, ("#6A6A6A", run_color(run.index)), "Share of the cosine"
        )
        heading(axes[column], run.name, facts, swatch=run_color(run.index))
    if difference is not None:
        colors = (run_color(chart.runs[0].index), run_color(chart.runs[1].index))
        _draw_map(figure, axes[-1], chart.image, difference, colors, "← A more, B more →")
        agreement = chart.agreement
        heading(axes[-1], "Difference", "" if agreement is None else f"B against A; correlation {agreement:.2f}")
    grid = chart.runs[0].cells.shape[0]
    how = "covering parts of the image" if chart.method == "occlusion" else "integrated gradients"
    sentence = f"“{_cut(chart.caption, 90)}” by {how}, {grid} × {grid} cells."
    scale = " The difference compares maps divided by their root mean square." if difference is not None else ""
    footnote(figure, sentence + scale)
    return figure


def rows(chart: SaliencyChart) -> NumberRows:
    """Return one row per run and cell; then the difference."""
    header = (
        "run",
        "name",
        "objective",
        "step",
        "image",
        "caption",
        "method",
        "cosine",
        "row",
        "column",
        "value",
        "standard",
    )
    return NumberRows(header, _rows(chart))


def _rows(chart: SaliencyChart) -> Iterator[tuple[Any, ...]]:
    about = (chart.path, chart.caption, chart.method)
    for run in chart.runs:
        standard = run.standard
        for (row, column), value in np.ndenumerate(run.cells):
            facts = (run.run, run.name, run.objective, run.step, *about, run.cosine)
            yield *facts, row, column, float(value), float(standard[row, column])
    difference = chart.difference
    if difference is not None:
        for (row, column), value in np.ndenumerate(difference):
            yield None, "B - A", None, None, *about, None, row, column, None, float(value)


def _draw_map(
    figure: Figure, axes: Axes, image: np.ndarray, cells: np.ndarray, colors: tuple[str, str], label: str
) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    gray = np.repeat(image.mean(axis=2, keepdims=True), 3, axis=2) / 255
    axes.imshow(0.55 + 0.45 * gray, extent=(0, 1, 1, 0))
    reach = max(float(np.abs(cells).max()), 1e-9)
    palette = LinearSegmentedColormap.from_list("two-sided", [colors[0], "#FFFFFF", colors[1]])
    strength = np.clip(np.abs(cells) / reach, 0, 1)
    drawn = axes.imshow(
        cells, cmap=palette, vmin=-reach, vmax=reach, alpha=0.15 + 0.75 * strength, extent=(0, 1, 1, 0),
        interpolation="nearest",
    )  # fmt: skip
    axes.set_axis_off()
    drawn.set_rasterized(True)
    bar = figure.colorbar(drawn, ax=axes, orientation="horizontal", shrink=0.85, pad=0.04, aspect=22)
    bar.solids.set_alpha(1)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=6.5)
    bar.set_label(label, fontsize=7)
    bar.set_ticks([-reach, 0, reach], labels=[f"−{reach:.2g}", "0", f"{reach:.2g}"])


def _nothing() -> Any:
    from matplotlib.cm import ScalarMappable

    return ScalarMappable()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
