"""Templates against classes on paper: a heat map a run, the ensembles on top."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.charts import objective_label
from trainer.charts.prompts import Mixture, PromptChart, PromptRun
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import COLUMN_IN, INK, footnote, heading, in_style, new_figure, run_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_DRAWN: Final = 40
"""Templates and classes at most in the picture; the data has all."""
MOST_NUMBERS: Final = 400
"""Cells of a panel up to which the number is written into each."""


@in_style
def draw(chart: PromptChart) -> Figure:
    """Difference of every template to the mean ensemble, in points, over accuracy of the ensembles."""
    templates, classes = min(len(chart.templates), MOST_DRAWN), min(len(chart.labels), MOST_DRAWN)
    height = 1.5 + 0.17 * (templates + 2)
    width = max(COLUMN_IN * 1.4, 2.9 + 0.34 * classes)
    figure = new_figure(width, height * len(chart.runs))
    grid = figure.subplots(len(chart.runs), 1, squeeze=False)[:, 0]
    for axes, run, weighted in zip(grid, chart.runs, chart.weighted, strict=True):
        _draw_run(axes, run, weighted, chart)
    left_out = len(chart.templates) - templates, len(chart.labels) - classes
    more = f" {left_out[0]} templates and {left_out[1]} classes more are in the data." if any(left_out) else ""
    footnote(figure, f"Points of accuracy above (orange) or below (blue) the mean ensemble; top rows: percent.{more}")
    return figure


def rows(chart: PromptChart) -> NumberRows:
    """One row a run, template and class: accuracy, and its difference to the mean ensemble; then the confusions."""
    header = (
        *("run", "name", "objective", "step", "dataset", "split", "n", "pairs", "what"),
        *("template", "weight", "class", "taken_for", "value", "difference"),
    )
    return NumberRows(header, _rows(chart))


def _rows(chart: PromptChart) -> Iterator[tuple[Any, ...]]:
    for run, weighted in zip(chart.runs, chart.weighted, strict=True):
        facts = (run.run, run.name, run.objective, run.step, run.dataset, run.split, run.n, run.pairs)
        for name, one in (("mean_ensemble", run.mean), ("weighted_ensemble", weighted)):
            yield *facts, name, None, None, None, None, one.accuracy, one.accuracy - run.mean.accuracy
            for label, value, base in zip(chart.labels, one.by_class.tolist(), run.mean.by_class.tolist()):
                yield *facts, name, None, None, label, None, value, value - base
        for place, (template, weight) in enumerate(zip(chart.templates, chart.weights, strict=True)):
            value = float(run.overall[place])
            yield *facts, "template", template, weight, None, None, value, value - run.mean.accuracy
            for label, value, difference in zip(
                chart.labels, run.accuracy[place].tolist(), run.difference[place].tolist()
            ):
                yield *facts, "template", template, weight, label, None, value, difference
        for label, line in zip(chart.labels, weighted.confusion.tolist()):
            for other, count in zip(chart.labels, line):
                yield *facts, "confusion", None, None, label, other, count, None


def _draw_run(axes: Axes, run: PromptRun, weighted: Mixture, chart: PromptChart) -> None:
    labels, templates = chart.labels[:MOST_DRAWN], chart.templates[:MOST_DRAWN]
    classes = len(labels)
    top = np.vstack([run.mean.by_class[:classes], weighted.by_class[:classes]])
    below = run.difference[: len(templates), :classes]
    shade = np.vstack([np.zeros_like(top), below])
    reach = max(float(np.nanmax(np.abs(below), initial=0.0)), 0.02)
    axes.imshow(shade, cmap=_diverging(), vmin=-reach, vmax=reach, aspect="auto")
    if shade.size <= MOST_NUMBERS:
        written = np.vstack([100 * top, 100 * below])
        for (row, column), value in np.ndenumerate(written):
            words = "" if np.isnan(value) else (f"{value:.0f}" if row < 2 else _signed(value))
            axes.text(column, row, words, ha="center", va="center", fontsize=5.5, color=INK)
    names = ["Mean ensemble", "Weighted ensemble", *(f"{w:g} × {_cut(t)}" for t, w in zip(templates, chart.weights))]
    axes.set_yticks(range(len(names)), names, fontsize=6)
    axes.set_xticks(range(classes), [_cut(label, 16) for label in labels], rotation=40, ha="right", fontsize=6.5)
    axes.axhline(1.5, color=INK, linewidth=0.6)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    data = f"{objective_label(run.objective)}, step {run.step:,}, {run.dataset} {run.split}, n = {run.n:,} images"
    scores = f"mean {100 * run.mean.accuracy:.1f} %, weighted {100 * weighted.accuracy:.1f} %, best template"
    heading(axes, run.name, data, f"{scores} {100 * float(run.overall.max()):.1f} %", swatch=run_color(run.index))


def _signed(value: float) -> str:
    return f"{value:+.0f}".replace("-", "−") if round(value) else "0"


def _diverging() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("blue-orange", [run_color(0), "#FFFFFF", run_color(1)])


def _cut(text: str, most: int = 48) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
