"""Zero-shot against linear probe on each data set that runs were evaluated on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import Struct

from trainer.charts import ChartError
from trainer.charts.marks import Axis, Marker, NumberRow, NumberTable, Panel, Series, XYPlot, run_tone
from trainer.charts.spec import Chart, Progress, Request
from trainer.config.fields import option
from trainer.metrics import data_label
from trainer.store import Workspace

METHOD: Final = """\
Each point is a data set: the accuracy of a linear classifier on the image embeddings of a run, and that of its \
zero-shot classifier, both of stored evaluations of one step, split and data set. On the dashed line both are equal; \
the gap below it is what better prompts could still gain (CLIP's figure 8: Radford et al., 2021, \
https://arxiv.org/abs/2103.00020). r is Pearson's correlation over the data sets; of two it says nothing."""

ZERO_SHOT: Final = "zero_shot_acc1"
MOST_LABELS: Final = 24
LEAST_SETS: Final = 3
"""Fewer data sets have no correlation."""


@dataclass(frozen=True)
class ProbeBySetSettings:
    """The number that zero-shot is compared with."""

    probe: str = option("linear_probe_acc1", "Probe", "Or fine_tune_acc1, knn_acc1, few_shot_acc1: what was evaluated.")


class ProbedSet(Struct, frozen=True):
    """A data set on which a run has both accuracies.

    Attributes:
        place: Index of the run among those chosen.
        data: Name and split.
        probe, zero_shot: Shares.
    """

    run: str
    place: int
    data: str
    step: int
    probe: float
    zero_shot: float


def compute(
    workspace: Workspace, request: Request, settings: ProbeBySetSettings, progress: Progress
) -> tuple[ProbedSet, ...]:
    """Return the newest step with both accuracies of each run and data set.

    Raises:
        ChartError: No run has both of one data set.
    """
    probed: list[ProbedSet] = []
    for index, target in enumerate(request.targets):
        row = workspace.runs.get(target.run)
        progress(index / len(request.targets), f"Reading {row.short_name}")
        newest: dict[str, ProbedSet] = {}
        for (data, step), values in sorted(_by_set(workspace, row.id).items()):
            both = values.get(settings.probe, math.nan), values.get(ZERO_SHOT, math.nan)
            if all(map(math.isfinite, both)):
                newest[data] = ProbedSet(row.short_name, index, data, step, *both)
        probed += newest.values()
    if not probed:
        raise ChartError(
            f"None of these runs has {settings.probe} and {ZERO_SHOT} of one data set. Measure both: trainer evaluate "
            "RUN --data PATH --task zero_shot linear_probe."
        )
    return tuple(probed)


def _by_set(workspace: Workspace, run: int) -> dict[tuple[str, int], dict[str, float]]:
    """Return what was evaluated, by data set with split and by step; the last answer counts."""
    values: dict[tuple[str, int], dict[str, float]] = {}
    for evaluation in workspace.results.answers(run):
        plain = {key.rpartition("/")[2]: float(value) for key, value in evaluation.metrics.items()}
        values.setdefault((data_label(evaluation), evaluation.step), {}).update(plain)
    return values


def correlation(points: list[ProbedSet]) -> float:
    """Return Pearson's r of the two accuracies over data sets; NaN for fewer than three, or where one never varies."""
    n = len(points)
    if n < LEAST_SETS:
        return math.nan
    mean_x, mean_y = sum(p.probe for p in points) / n, sum(p.zero_shot for p in points) / n
    xy = sum((p.probe - mean_x) * (p.zero_shot - mean_y) for p in points)
    xx, yy = sum((p.probe - mean_x) ** 2 for p in points), sum((p.zero_shot - mean_y) ** 2 for p in points)
    return xy / math.sqrt(xx * yy) if xx * yy > 0 else math.nan


def draw(data: tuple[ProbedSet, ...], settings: ProbeBySetSettings) -> Panel:
    """Draw a point for each data set and run, and the gaps in a table."""
    named = len(data) <= MOST_LABELS
    dots = tuple(
        Marker(
            point.run, run_tone(point.place), 100 * point.probe, 100 * point.zero_shot, 8,
            label=point.data if named else "", hint=f"{point.run}: {point.data}",
        )
        for point in data
    )  # fmt: skip
    x, y = (Axis(f"{name} (%)", 0, 100, percent=True) for name in (settings.probe, ZERO_SHOT))
    ends = np.array([0.0, 100.0])
    equal = Series("equal", "quiet", ends, ends, dashed=True)
    plot = XYPlot("sets", "Zero-shot against probe", x, y, (equal,), dots=dots)
    columns = (f"{settings.probe} (%)", f"{ZERO_SHOT} (%)", "Gap (points)")
    rows = tuple(
        NumberRow(f"{point.data}: {point.run}", f"step {point.step:,}", tuple(100 * value for value in values), 1)
        for point in data
        for values in ((point.probe, point.zero_shot, point.zero_shot - point.probe),)
    )
    table = NumberTable("gaps", "Data sets", columns, rows, badges=False)
    return Panel(title="Zero-shot against probe", head=_head(data), rows=((plot,), (table,)))


def _head(data: tuple[ProbedSet, ...]) -> tuple[str, ...]:
    lines = []
    for name in dict.fromkeys(point.run for point in data):
        points = [point for point in data if point.run == name]
        r = correlation(points)
        related = "" if math.isnan(r) else f", r = {r:.2f}".replace("-", "−")
        lines.append(f"{name}: {len(points)} data set{'s' * (len(points) != 1)}{related}")
    return tuple(lines)


CHART: Final = Chart(
    view="run_comparison",
    label="Zero-shot vs. probe",
    question="On which data sets is zero-shot as good as a linear probe?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=ProbeBySetSettings,
    needs="whole_runs",
    compute=compute,
    draw=draw,
)
