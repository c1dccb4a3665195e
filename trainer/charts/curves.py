"""Training curves of several runs: one panel a metric, and an objective's loss with its own kind only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from trainer.analysis.curves import smooth
from trainer.charts import ChartError, objective_label
from trainer.charts.snapshots import PREFERRED_SPLITS
from trainer.metrics import Metric, metric
from trainer.store import RunRow, Workspace

Axis = Literal["step", "time"]


@dataclass(frozen=True)
class RunCurve:
    """One run's curve of one metric.

    Attributes:
        index: Place of the run among those asked for; decides its color.
        x: Steps, or seconds since the start.
        raw: As logged; NaN and infinities included.
        smooth: Smoothed, over a tenth of the curve at most; equal to `raw` without smoothing.
    """

    index: int
    run: int
    name: str
    objective: str
    x: Float[np.ndarray, " n"]
    raw: Float[np.ndarray, " n"]
    smooth: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class CurvePanel:
    """The curves that share an axis.

    Attributes:
        metric: Logged name.
        label: Title for people; names the objective where objectives may not share the axis.
        unit: Of the values as drawn; `%` where `percent`.
        percent: The values are shares, drawn times 100.
        n: Pairs behind each point of a held-out metric; None for others, or where runs differ in it.
    """

    metric: str
    label: str
    unit: str
    percent: bool
    n: int | None
    series: tuple[RunCurve, ...]


@dataclass(frozen=True)
class CurvesChart:
    """Panels in the order of the metrics asked for."""

    panels: tuple[CurvePanel, ...]
    axis: Axis
    smoothing: float


def curves(
    workspace: Workspace,
    runs: Sequence[int | str],
    metrics: Sequence[str],
    *,
    axis: Axis = "step",
    smoothing: float = 0.0,
) -> CurvesChart:
    """The curves of `runs` for each of `metrics` that any of them logged.

    Args:
        workspace: Where the runs are.
        runs: Ids or names; their order decides the colors.
        metrics: Logged names.
        axis: Training steps, or seconds since the start.
        smoothing: Weight of the moving average, in [0, 1).

    Raises:
        ChartError: None of the metrics was logged by any run; names those that were.
        StoreError: No such run.
    """
    if not 0 <= smoothing < 1:
        raise ChartError(f"Smoothing {smoothing:g} is out of range: choose 0 (none) up to, but not including, 1.")
    rows = [workspace.runs.get(run) for run in runs]
    panels = [panel for name in dict.fromkeys(metrics) for panel in _panels(workspace, rows, name, axis, smoothing)]
    if not panels:
        logged = sorted({name for row in rows for name in workspace.results.scalar_names(row.id)})
        there = f"choose among {', '.join(logged)}" if logged else "nothing is logged yet, wait for the first step"
        raise ChartError(f"No run has logged {' or '.join(metrics)}; {there}.")
    return CurvesChart(tuple(panels), axis, smoothing)


def _panels(workspace: Workspace, rows: list[RunRow], name: str, axis: Axis, smoothing: float) -> list[CurvePanel]:
    known = metric(name)
    drawn = [
        (row, series)
        for index, row in enumerate(rows)
        if (series := _series(workspace, row, index, name, axis, smoothing)) is not None
    ]
    if known.shared_axis:
        return [_panel(workspace, known, known.label, drawn)] if drawn else []
    # Losses of two objectives are different quantities: one axis for both would invite comparing them.
    kinds = dict.fromkeys(row.objective for row, _ in drawn)
    return [
        _panel(
            workspace, known, f"{known.label}, {objective_label(kind)}", [d for d in drawn if d[0].objective == kind]
        )
        for kind in kinds
    ]


def _panel(workspace: Workspace, known: Metric, label: str, drawn: list[tuple[RunRow, RunCurve]]) -> CurvePanel:
    sizes = {_pairs_behind(workspace, row, known.name) for row, _ in drawn}
    n = sizes.pop() if len(sizes) == 1 else None
    unit = "%" if known.percent else known.unit
    return CurvePanel(known.name, label, unit, known.percent, n, tuple(series for _, series in drawn))


def _series(workspace: Workspace, row: RunRow, index: int, name: str, axis: Axis, smoothing: float) -> RunCurve | None:
    steps, values, seconds = workspace.results.series(row.id, name)
    if not len(values):
        return None
    x = np.asarray(seconds if axis == "time" else steps, dtype=np.float64)
    # Over a dozen evaluations the average asked for would lag behind the curve: it spans a tenth of it at most.
    weight = min(smoothing, max(0.0, 1 - 10 / len(values)))
    return RunCurve(index, row.id, row.name, row.objective, x, values, smooth(values, weight))


def _pairs_behind(workspace: Workspace, row: RunRow, name: str) -> int | None:
    prefix = name.partition("/")[0]
    if prefix not in ("val", "combinations"):
        return None
    splits = PREFERRED_SPLITS if prefix == "val" else (prefix,)
    sizes = {snapshot.n for snapshot in workspace.results.snapshots(row.id) if snapshot.split in splits}
    return sizes.pop() if len(sizes) == 1 else None
