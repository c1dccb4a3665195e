"""Reliability, accuracy under corruption and few-shot accuracy of stored evaluations, one plot per question."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from trainer.charts import ChartError
from trainer.charts.evaluation import EvaluationChart, asked_alike, curves, diagrams, evaluation_at
from trainer.charts.marks import Axis, Mark, Marker, Panel, Series, Tone, XYPlot, axis_over, run_tone
from trainer.charts.spec import Chart, Progress, Request
from trainer.metrics import data_label
from trainer.store import Workspace
from trainer.store.question import question_text

METHOD: Final = """\
Reliability: images in 15 bins of their largest probability, accuracy over mean confidence; on the diagonal, \
confidence equals accuracy. The calibration error is the mean distance to it, weighted by the images of a bin; by \
chance it is that of a perfectly calibrated run on the same number of images.

Under corruption: accuracy at severities 1 to 5 of each corruption, 0 is clean (Hendrycks and Dietterich, 2019).

Few-shot: a linear probe on 1 to 16 labels per class, mean and standard deviation of 3 draws.

Runs that were asked different questions (classes, templates, n) are never in one plot."""

SEVERITIES: Final = np.arange(6, dtype=np.float64)
_SEVERITY: Final = Axis("severity (0: clean)", 0, 5)
_KINDS: Final[tuple[Tone, ...]] = ("first", "second", "third", "fourth", "fifth", "sixth")


def compute(workspace: Workspace, request: Request, _settings: Any, _progress: Progress) -> EvaluationChart:
    """Return the runs' stored evaluations on the requested data set or the one measured last.

    Raises:
        ChartError: None of the runs was evaluated there, or nothing with a curve was measured.
    """
    chart = evaluation_at(workspace, request)
    if not _plots(chart):
        where = data_label(chart)
        raise ChartError(
            f"No reliability, corruption or few-shot curve was measured on {where}. Evaluate zero-shot, robustness or "
            "few-shot."
        )
    return chart


def draw(chart: EvaluationChart, _settings: Any) -> Panel:
    """Draw one plot per kind of curve and question."""
    head = f"{data_label(chart)}; " + ", ".join(f"{run.name}, step {run.step:,}" for run in chart.runs)
    return Panel(title="Evaluation curves", head=(head,), rows=(tuple(_plots(chart)),))


def _plots(chart: EvaluationChart) -> list[Mark]:
    kinds = (("reliability", "zero_shot", _reliability), ("corruption", "robustness", _corruption))
    marks: list[Mark] = []
    for key, task, plot in (*kinds, ("few-shot", "few_shot", _few_shot)):
        parts = asked_alike(chart, task)
        for index, part in enumerate(parts):
            question = question_text(part.runs[0].tasks[task].question) if len(parts) > 1 else ""
            marks += plot(f"{key}-{index}" if index else key, part, question)
    return marks


def _reliability(key: str, chart: EvaluationChart, question: str) -> list[XYPlot]:
    equal, errors = np.array([0.0, 1.0]), []
    lines = [Series("calibrated", "quiet", equal, equal, dashed=True, width=1)]
    for run, name, diagram in diagrams(chart):
        filled = np.array(diagram["counts"]) > 0
        x, y = (np.array(diagram[part], dtype=np.float64)[filled] for part in ("confidence", "accuracy"))
        trained = name == "own"
        label = run.label if trained else f"{run.label}, temperature fitted"
        lines.append(Series(label, run_tone(run.index), x, y, dashed=not trained, marked=trained))
        errors.append(f"{100 * diagram['ece']:.1f} ({100 * diagram['ece_calibrated']:.1f} by chance)")
    if len(lines) == 1:
        return []
    note = " · ".join(filter(None, (f"calibration error {', '.join(errors)} %", question)))
    axes = Axis("confidence", 0.0, 1.0), Axis("accuracy", 0.0, 1.0)
    return [XYPlot(key, "Reliability, zero-shot", *axes, tuple(lines), note=note)]


def _corruption(key: str, chart: EvaluationChart, question: str) -> list[XYPlot]:
    """Return one plot per run, because the color encodes the corruption."""
    measured = curves(chart)
    kinds = list(dict.fromkeys(kind for _, kind, _ in measured))
    y = axis_over("accuracy (%)", [100 * np.array(values) for _, _, values in measured], include=(0,), percent=True)
    plots = []
    for run in dict.fromkeys(run.index for run, _, _ in measured):
        of_run = [(evaluated, kind, values) for evaluated, kind, values in measured if evaluated.index == run]
        lines = tuple(
            Series(kind, _KINDS[kinds.index(kind) % len(_KINDS)], SEVERITIES, 100 * np.array(values), marked=True)
            for _, kind, values in of_run
        )
        record = of_run[0][0].tasks["robustness"]
        note = " · ".join(filter(None, (f"{record.details['measure']}, n = {record.n:,}", question)))
        title = f"{of_run[0][0].label} under corruption"
        plots.append(XYPlot(f"{key}-{run}", title, _SEVERITY, y, lines, note=note, tone=run_tone(run)))
    return plots


def _few_shot(key: str, chart: EvaluationChart, question: str) -> list[XYPlot]:
    all_labels = [run.tasks["linear_probe"].question for run in chart.runs if "linear_probe" in run.tasks][:1]
    lines: list[Series] = []
    dots: list[Marker] = []
    for run in chart.runs:
        if points := (run.tasks["few_shot"].details["curve"] if "few_shot" in run.tasks else []):
            shots, mean, spread = np.array(points).T
            tone = run_tone(run.index)
            low, high = 100 * (mean - spread), 100 * (mean + spread)
            lines.append(Series(run.label, tone, shots, 100 * mean, low=low, high=high, marked=True))
        if "linear_probe" in run.tasks and [run.tasks["linear_probe"].question] == all_labels:
            value = 100 * run.tasks["linear_probe"].metrics["linear_probe_acc1"]
            dots.append(Marker(f"{run.label}, all labels", run_tone(run.index), math.nan, value, mark="ring"))
    if not lines:
        return []
    last = max(float(line.x.max()) for line in lines)
    x = Axis("labels a class", 1, 2.2 * last, log=True)
    marked = tuple(Marker(dot.name, dot.tone, 2 * last, dot.y, mark=dot.mark) for dot in dots)
    y = axis_over(
        "accuracy (%)", [*(line.high for line in lines), [dot.y for dot in marked]], include=(0,), percent=True
    )
    note = " · ".join(filter(None, ("mean ± deviation of 3 draws; ring: all labels", question)))
    return [XYPlot(key, "Few-shot probes", x, y, tuple(lines), dots=marked, note=note)]


CHART: Final = Chart(
    view="evaluate",
    label="Curves",
    question="Are probabilities calibrated, and how does accuracy fall with corruption?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    compute=compute,
    draw=draw,
)
