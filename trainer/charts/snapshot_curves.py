"""What changes over the snapshots of runs: recall, modality gap, uniformity and more, one plot per measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from trainer.charts.marks import Axis, NumberRow, NumberTable, Panel, Series, XYPlot, axis_over, run_tone
from trainer.charts.snapshot_series import (
    MEASURES,
    MeasureCurve,
    TimelineMeasure,
    TimelineRun,
    measure_name,
    measured,
    snapshots_of,
    timeline_run,
)
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.metrics import data_label
from trainer.store import Workspace

METHOD: Final = """\
Recall, modality gap and tau as the run logged them; alignment and uniformity (Wang and Isola 2020), effective rank \
(Roy and Vetterli 2007) and Ajne's statistic over n (Prentice 1978) are measured on the snapshots of the split, at \
most on 4,000 pairs drawn once for all steps. Cosines and gaps are not comparable across objectives."""

FEW: Final = 20
"""Curves of at most this many points mark each of them."""


class MeasuredRun(Struct, frozen=True):
    """A run with its curves, and the step whose values are in the table."""

    run: TimelineRun
    step: float


def _measure(workspace: Workspace, target: Target, request: Request, _: Any, progress: Progress) -> MeasuredRun:
    row = workspace.runs.get(target.run)
    snapshots = snapshots_of(workspace, row, dataset=request.dataset, split=request.split)
    run = timeline_run(request.targets.index(target), row, snapshots)
    run.curves.update(measured(workspace, run, progress=progress))
    return MeasuredRun(run, run.steps[-1] if target.step is None else target.step)


def draw(data: PerRun[MeasuredRun], _settings: Any) -> Panel:
    """Draw one plot per measure, over a table of the values at the requested steps."""
    runs = [at_step.run for at_step in data.found]
    cursor = data.found[0].step if len({at_step.step for at_step in data.found}) == 1 else math.nan
    plots = [measure_plot(measure, runs, cursor=cursor) for measure in measures_of(runs)]
    facts = [f"{at_step.run.name}: {data_label(at_step.run)}, n = {at_step.run.n:,}" for at_step in data.found]
    rows = tuple(tuple(plots[at : at + 2]) for at in range(0, len(plots), 2))
    return Panel(title="Geometry over training", head=("; ".join(facts),), rows=((_table(data),), *rows))


def _table(data: PerRun[MeasuredRun]) -> NumberTable:
    runs = [measured.run for measured in data.found]
    lines = []
    for measure in MEASURES:
        values = [value_at(measured.run.curves.get(measure.key), measured.step) for measured in data.found]
        label = measure_name(measure, runs) + (f" ({measure.unit})" if measure.unit else "")
        lines.append(NumberRow(label, _origin(measure, runs), tuple(values), measure.digits))
    names = tuple(f"{measured.run.name}, step {measured.step:,.0f}" for measured in data.found)
    return NumberTable("values", "Values", names, tuple(lines))


def measure_plot(measure: TimelineMeasure, runs: Sequence[TimelineRun], *, cursor: float = math.nan) -> XYPlot:
    """Return one measure of the runs over their steps; a missing value is a gap."""
    present = [(run, run.curves[measure.key]) for run in runs if measure.key in run.curves]
    curves = [
        Series(run.name, run_tone(run.index), curve.x, curve.y, marked=len(curve.x) <= FEW) for run, curve in present
    ]
    title = measure_name(measure, runs)
    label = f"{title} ({measure.unit})" if measure.unit else title
    last = max((run.steps[-1] for run in runs), default=1)
    x = Axis("step", 0, max(last, 1) * 1.02, integer=True)
    y = axis_over(label, [curve.y for curve in curves], margin=0.12, percent=measure.unit == "%")
    return XYPlot(measure.key, title, x, y, tuple(curves), cursor=cursor, note=_origin(measure, runs))


def measures_of(runs: Sequence[TimelineRun]) -> tuple[TimelineMeasure, ...]:
    """Return the measures that one of the runs has: axes of the others would be empty."""
    return tuple(measure for measure in MEASURES if any(measure.key in run.curves for run in runs))


def by_data(runs: Sequence[TimelineRun]) -> tuple[tuple[TimelineRun, ...], ...]:
    """Return the runs of each data: those of different data share no axis."""
    return tuple(part.found for part in PerRun(tuple(runs), tuple(run.index for run in runs)).by_data())


def value_at(curve: MeasureCurve | None, step: float) -> float:
    """Return the last known value at or before the step; NaN if there is none."""
    before = np.isfinite(curve.y) & (curve.x <= step) if curve else np.zeros(0, bool)
    return float(curve.y[before][-1]) if curve and before.any() else math.nan


def _origin(measure: TimelineMeasure, runs: Sequence[TimelineRun]) -> str:
    """Return where the values come from."""
    logged = {run.curves[measure.key].logged for run in runs if measure.key in run.curves}
    texts = {True: "as logged", False: "from the snapshots"}
    return ", or ".join(texts[is_logged] for is_logged in sorted(logged, reverse=True)) or "not known for these runs"


CHART: Final = Chart(
    view="timeline",
    label="Geometry over training",
    question="How do recall, gap and uniformity change over the snapshots of training?",
    cost="Grows with the snapshots; each is measured on at most 4,000 pictures.",
    method=METHOD,
    compute=per_run(_measure),
    draw=draw,
)
