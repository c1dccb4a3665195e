"""Reliability and likelihood on paper: both runs on the same axes, which probabilities allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.charts import objective_label
from trainer.charts.calibration import CURVE, CalibrationAt, CalibrationChart, CalibrationRun
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import HAIRLINE, PAGE_IN, QUIET, footnote, heading, in_style, new_figure, run_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@in_style
def draw(chart: CalibrationChart) -> Figure:
    """Confidence against accuracy on the left, negative log-likelihood against tau on the right."""
    figure = new_figure(PAGE_IN, 3.5 + 0.2 * len(chart.runs))
    left, right = figure.subplots(1, 2)
    _draw_reliability(left, chart)
    _draw_likelihood(right, chart)
    n = ", ".join(f"{run.name}: n = {run.n:,} of {run.pairs:,} images, class from {run.column}" for run in chart.runs)
    templates = f"{len(chart.templates)} template{'s' * (len(chart.templates) > 1)}"
    footnote(figure, f"{n}.\n{len(chart.labels)} classes, mean of {templates}. {chart.note}")
    return figure


def rows(chart: CalibrationChart) -> NumberRows:
    """The bins at the temperature shown, then the curve, then the numbers at each of three temperatures."""
    header = (
        "run",
        "name",
        "objective",
        "step",
        "dataset",
        "split",
        "n",
        "pairs",
        "what",
        "at",
        "tau",
        "count",
        "value",
    )
    return NumberRows(header, _rows(chart))


def numbers(run: CalibrationRun, shown: CalibrationAt) -> dict[str, float]:
    """What the window's table lists, by name."""
    values = {"accuracy": run.accuracy}
    for name, one in (("shown", shown), ("own", run.own), ("fitted", run.fitted)):
        values |= {
            f"tau_{name}": 1 / one.inv_tau,
            f"ece_{name}": one.ece,
            f"ece_{name}_low": one.ece_range.low,
            f"ece_{name}_high": one.ece_range.high,
            f"ece_{name}_calibrated": one.ece_range.calibrated,
            f"nll_{name}": one.nll,
            f"confidence_{name}": one.confidence,
        }
    return values


def _rows(chart: CalibrationChart) -> Iterator[tuple[Any, ...]]:
    for run, shown in zip(chart.runs, chart.chosen, strict=True):
        facts = (run.run, run.name, run.objective, run.step, run.dataset, run.split, run.n, run.pairs)
        tau, found = 1 / shown.inv_tau, shown.reliability
        for low, count, confidence, right in zip(
            found.edges.tolist(), found.counts.tolist(), found.confidence.tolist(), found.accuracy.tolist()
        ):
            yield *facts, "bin_confidence", low, tau, count, confidence
            yield *facts, "bin_accuracy", low, tau, count, right
        for inv_tau, loss in zip(CURVE.tolist(), run.curve.tolist()):
            yield *facts, "nll", None, 1 / inv_tau, run.n, loss
        for name, value in numbers(run, shown).items():
            yield *facts, name, None, None, run.n, value


def _draw_reliability(axes: Axes, chart: CalibrationChart) -> None:
    heading(
        axes,
        "Does confidence mean accuracy?",
        "Dot area: images in the bin. On the line: yes.",
        above_pt=2 + 12 * len(chart.runs),
    )
    axes.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    for run, shown in zip(chart.runs, chart.chosen, strict=True):
        found, color = shown.reliability, run_color(run.index)
        filled = found.counts > 0
        axes.plot(found.confidence[filled], found.accuracy[filled], color=color, linewidth=1.1)
        areas = 6 + 130 * found.counts[filled] / max(int(found.counts.max()), 1)
        spread = shown.ece_range
        sure = f"[{spread.low:.3f}, {spread.high:.3f}], {spread.calibrated:.3f} by chance"
        label = f"{run.name}: ECE {shown.ece:.3f} {sure}, at τ = {1 / shown.inv_tau:.3g}"
        axes.scatter(found.confidence[filled], found.accuracy[filled], s=areas, color=color, alpha=0.75, label=label)
    axes.set(xlim=(0, 1.02), ylim=(0, 1.04), xlabel="Confidence (largest probability)", ylabel="Accuracy")
    legend = axes.legend(loc="lower left", bbox_to_anchor=(0, 1.02), labelspacing=0.4)
    for handle in legend.legend_handles:
        handle.set_sizes([24])


def _draw_likelihood(axes: Axes, chart: CalibrationChart) -> None:
    heading(
        axes,
        "Which temperature fits?",
        "Filled: as shown. Ring: trained with. Cross: best.",
        above_pt=2 + 12 * len(chart.runs),
    )
    for run, shown in zip(chart.runs, chart.chosen, strict=True):
        color = run_color(run.index)
        label = f"{run.name}, {objective_label(run.objective)}, accuracy {100 * run.accuracy:.1f} %"
        axes.plot(1 / CURVE, run.curve, color=color, label=label)
        marks = ((run.own, "o", "white"), (run.fitted, "x", color), (shown, "o", color))
        for one, marker, face in marks:
            if CURVE[0] <= one.inv_tau <= CURVE[-1]:
                style = {"facecolor": face, "edgecolor": color} if marker == "o" else {"color": color}
                axes.scatter(1 / one.inv_tau, one.nll, marker=marker, s=26, zorder=3, linewidth=1.1, **style)
    top = max(float(np.min(run.curve)) for run in chart.runs)
    most = max([3 * top, *(1.3 * one.nll for one in chart.chosen), *(1.3 * run.own.nll for run in chart.runs)])
    axes.set(xscale="log", ylim=(0, min(most, max(float(run.curve.max()) for run in chart.runs))))
    axes.set(xlabel="Temperature τ", ylabel="Negative log-likelihood (nats an image)")
    axes.grid(axis="y", color=HAIRLINE)
    axes.xaxis.set_major_formatter(lambda tau, _place: f"{tau:g}")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.02), labelspacing=0.4)
