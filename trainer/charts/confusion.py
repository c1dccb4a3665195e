"""Confusion matrices of each run, for a task with one class per image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from trainer.analysis.progress import Progress
from trainer.charts import ChartError
from trainer.charts.evaluation import EvaluatedRun, EvaluationChart, confusion_of, evaluation_at
from trainer.charts.marks import HeatMap, NumberRow, NumberTable, Panel, named_map
from trainer.charts.spec import Chart, Records, Request
from trainer.config.fields import option
from trainer.metrics import data_label
from trainer.store import Workspace
from trainer.store.question import question_text

METHOD: Final = "Images of a class (row) predicted as another (column), as shares of the row. Classes that occur \
nowhere are left out."


@dataclass(frozen=True)
class ConfusionSettings:
    """The task whose predictions are shown."""

    task: Literal["zero_shot", "linear_probe", "knn"] = option(
        "zero_shot",
        "Task",
        "Task whose predictions are shown.",
        named={"zero_shot": "Zero-shot", "linear_probe": "Linear probe", "knn": "Neighbors"},
    )


def compute(
    workspace: Workspace, request: Request, settings: ConfusionSettings, _progress: Progress
) -> EvaluationChart:
    """Return the runs' stored evaluations on the requested data set or the one measured last.

    Raises:
        ChartError: No run has answers to this task there.
    """
    chart = evaluation_at(workspace, request)
    if not _confused(chart, settings):
        task = settings.task.replace("_", " ")
        raise ChartError(f"No run has a confusion of {task} on {chart.dataset}. Evaluate that task.")
    return chart


def _confused(chart: EvaluationChart, settings: ConfusionSettings) -> list[EvaluatedRun]:
    return [run for run in chart.runs if settings.task in run.tasks and "label" in run.tasks[settings.task].arrays]


def draw(chart: EvaluationChart, settings: ConfusionSettings) -> Panel:
    """Draw one heat map per run, and its accuracy."""
    runs = _confused(chart, settings)
    maps = tuple(_map(run, settings) for run in runs)
    counts = [confusion_of(run.tasks[settings.task]).counts for run in runs]
    lines = (
        NumberRow("Images", "Images with a prediction.", tuple(float(matrix.sum()) for matrix in counts), 0),
        NumberRow("Correct (%)", "On the diagonal.", tuple(100 * float(np.trace(m) / m.sum()) for m in counts), 1),
    )
    table = NumberTable("numbers", "Answers", tuple(run.label for run in runs), lines)
    head = f"{data_label(chart)}; " + ", ".join(f"{run.name}, step {run.step:,}" for run in runs)
    return Panel(title="Confusion", head=(head,), rows=(maps, (table,)))


def _map(run: EvaluatedRun, settings: ConfusionSettings) -> HeatMap:
    record = run.tasks[settings.task]
    matrix, note = confusion_of(record), question_text(record.question)
    names: dict[str, Any] = {"x_label": "Answer", "y_label": "Class", "unit": "percent of the class", "note": note}
    shares, classes = 100 * matrix.shares, matrix.classes
    return named_map(f"confusion-{run.index}", run.label, shares, classes, classes, low=0.0, high=100.0, **names)


def records(chart: EvaluationChart, settings: ConfusionSettings) -> Records:
    """Return one row per run, class and prediction: the number of images."""
    lines = []
    for run in _confused(chart, settings):
        matrix = confusion_of(run.tasks[settings.task])
        facts = (chart.dataset, chart.split, settings.task, run.run, run.name, run.step)
        for (row, column), count in np.ndenumerate(matrix.counts):
            lines.append((*facts, matrix.classes[row], matrix.classes[column], int(count)))
    return ("dataset", "split", "task", "run", "name", "step", "class", "answer", "images"), lines


CHART: Final = Chart(
    view="evaluate",
    label="Confusion",
    question="Which classes does each run confuse?",
    cost="Grows with the stored answers of the evaluation.",
    method=METHOD,
    settings=ConfusionSettings,
    compute=compute,
    draw=draw,
    records=records,
)
