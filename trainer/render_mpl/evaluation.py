"""Evaluations on paper: shares with their intervals or the confusion of each run, and all as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.charts import ChartError, objective_label
from trainer.charts.evaluation import CONFUSED, EvaluationChart, confusion_of, curves, diagrams
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import INK, footnote, heading, in_style, new_figure, run_color
from trainer.store.question import told

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASHES: Final = ("-", "--", ":", "-.", (0, (1, 3)))
MOST_NUMBERS: Final = 400
MOST_COLUMNS: Final = 3
PANELS: Final = ("scores", "confusion")


@in_style
def draw(chart: EvaluationChart, panel: str = "scores", task: str = "zero_shot") -> Figure:
    """The shares of all runs with their intervals, or one confusion a run.

    Raises:
        ChartError: Nothing of that kind was measured.
    """
    figure = _draw_confusions(chart, task) if panel == "confusion" else _draw_bars(chart)
    names = "; ".join(f"{run.name}: {objective_label(run.objective)}, step {run.step:,}" for run in chart.runs)
    footnote(figure, f"{chart.dataset} {chart.split}. {names}.")
    return figure


def rows(chart: EvaluationChart) -> NumberRows:
    """One row a metric and run, with the difference of B and A; then curves, reliability and published numbers."""
    header = ("dataset", "split", "what", "task", "metric", "x", "run", "name", "step", "n", "value", "low", "high")
    return NumberRows(
        (*header, "b_minus_a", "b_minus_a_low", "b_minus_a_high", "p_mcnemar_holm", "source", "question"), _rows(chart)
    )


def _rows(chart: EvaluationChart) -> Iterator[tuple[Any, ...]]:
    facts, none = (chart.dataset, chart.split), (None,) * 5
    for line in chart.lines:
        gap = line.difference
        tested = (gap.paired.difference, gap.paired.low, gap.paired.high, _number(gap.p)) if gap else (None,) * 4
        for run in chart.runs:
            low, high = line.intervals[run.index] or (None, None)
            own = (run.run, run.name, run.step, line.n[run.index], line.values[run.index], low, high)
            yield *facts, "metric", line.task, line.name, None, *own, *tested, None, told(line.question)
    for run, kind, values in curves(chart):
        n = run.tasks["robustness"].n
        for severity, value in enumerate(values):
            yield (
                *facts,
                "robustness",
                "robustness",
                kind,
                severity,
                run.run,
                run.name,
                run.step,
                n,
                value,
                None,
                None,
                *none,
                told(run.tasks["robustness"].question),
            )
    for run, name, diagram in diagrams(chart):
        for count, x, y in zip(diagram["counts"], diagram["confidence"], diagram["accuracy"], strict=True):
            own = (run.run, run.name, run.step, count, y, None, None)
            yield *facts, "reliability", "zero_shot", name, x, *own, *none, told(run.tasks["zero_shot"].question)
    for one in chart.published:
        facts_of = (None, one.model, one.trained, None, one.value, None, None)
        yield one.dataset, "", "published", one.task, one.metric, None, *facts_of, *none[:4], one.source, ""


def _draw_bars(chart: EvaluationChart) -> Figure:
    """The shares with their intervals, the runs of a line spread."""
    shown = [line for line in reversed(chart.lines) if line.metric.percent and any(line.intervals)]
    runs = len(chart.runs)
    figure = new_figure(6.2, 1.9 + 0.16 * runs + len(shown) * max(0.34, 0.1 * runs))
    axes = figure.subplots()
    apart = min(0.24, 0.7 / max(runs - 1, 1))
    for run in chart.runs:
        points = []
        for place, line in enumerate(shown):
            value, interval = line.values[run.index], line.intervals[run.index]
            if value is not None and interval is not None:
                height = place + apart * ((runs - 1) / 2 - run.index)
                points.append((100 * value, height, 100 * (value - interval[0]), 100 * (interval[1] - value)))
        x, y, below, above = np.array(points).reshape(-1, 4).T
        style: dict[str, Any] = {"fmt": "o", "color": run_color(run.index), "markersize": 3.5}
        axes.errorbar(x, y, xerr=(below, above), label=run.label, **style)
    often = Counter(line.metric.label for line in shown)
    names = [
        f"{line.metric.label}\n{told(line.question)}" if often[line.metric.label] > 1 else line.metric.label
        for line in shown
    ]
    axes.set_yticks(range(len(shown)), names)
    axes.set_ylim(-0.6, max(len(shown), 1) - 0.4)
    axes.set_xlabel("%")
    figure.legend(loc="outside upper left")
    heading(axes, f"{chart.dataset} {chart.split}")
    return figure


def _draw_confusions(chart: EvaluationChart, task: str) -> Figure:
    shown = [run for run in chart.runs if task in run.tasks]
    if task not in CONFUSED or not shown:
        raise ChartError(f"No run has a confusion of {task.replace('_', ' ')} on {chart.dataset}. Evaluate that task.")
    figure = new_figure(3.6 * len(shown) + 0.8, 4.2)
    for axes, run in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        found = confusion_of(run.tasks[task])
        axes.imshow(found.shares, cmap="viridis", vmin=0, vmax=1)
        n = len(found.classes)
        axes.set_xticks(range(n), found.classes, rotation=90, fontsize=5.5)
        axes.set_yticks(range(n), found.classes, fontsize=5.5)
        axes.tick_params(length=0)
        axes.set(xlabel="Answer", ylabel="Class")
        if n * n <= MOST_NUMBERS:
            for (y, x), count in np.ndenumerate(found.counts):
                bright = np.nan_to_num(found.shares[y, x]) > 0.6
                axes.text(
                    x,
                    y,
                    str(count) if count else "",
                    ha="center",
                    va="center",
                    fontsize=4.5,
                    color=INK if bright else "white",
                )
        accuracy = np.trace(found.counts) / found.counts.sum()
        words = f"{task.replace('_', ' ')}, n = {found.counts.sum():,}, {100 * accuracy:.1f} % right"
        heading(axes, run.label, words, swatch=run_color(run.index))
    return figure


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
