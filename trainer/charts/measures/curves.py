"""The curves that runs have logged, metric by metric: what the chart `curves` draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from jaxtyping import Float

from trainer.analysis.smoothing import smooth
from trainer.charts import ChartError, objective_label
from trainer.charts.copied_pictures import copies_notes
from trainer.charts.snapshots import PREFERRED_SPLITS
from trainer.config.fields import option
from trainer.metrics import Metric, logged_name, measured_on, metric, noted_n, once_note
from trainer.store import RunRow, Workspace
from trainer.store.number_series import number_series
from trainer.store.question import noted_chance
from trainer.store.rows import VAL_BATCH

DEFAULT_METRICS: Final = ("val/image_to_text_R@1", "val/text_to_image_R@1", "val/knn_acc1", "train/loss")
HELD: Final = ("val/", "combinations/")
"""How the names of held-out metrics begin."""
LOGGED_EACH_STEP: Final = "train/"
"""How the names of metrics begin that are smoothed."""

Axis = Literal["step", "time"]


@dataclass(frozen=True)
class CurveSettings:
    """The metrics, and how to draw them."""

    metrics: tuple[str, ...] = option((), "Metrics", "Logged names; empty: the default ones.", control=False)
    axis: Literal["step", "time"] = option(
        "step", "Axis", "The horizontal axis.", named={"step": "Step", "time": "Time"}
    )
    smoothing: float = option(
        0.0, "Smoothing", "Weight of the moving average over training metrics.", low=0.0, high=0.999
    )


@dataclass(frozen=True)
class RunCurve:
    """One run's curve of one metric."""

    index: int  # Place of the run among those asked for; decides its color.
    run: int
    name: str
    objective: str
    x: Float[np.ndarray, " n"]  # Steps, or seconds since the start.
    raw: Float[np.ndarray, " n"]  # As logged or evaluated; NaN and infinities included.
    # Smoothed, over a tenth of the curve at most; `raw` itself of a held-out metric, or without smoothing.
    smooth: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class CurvePanel:
    """The curves that share an axis."""

    metric: str  # Logged name.
    # Title for people; names the objective where objectives may not share the axis, and split and n of a recall.
    label: str
    unit: str  # Of the values as drawn; `%` where `percent`.
    percent: bool  # The values are shares, drawn times 100.
    # Pairs behind each point of a held-out metric, of a recall its distinct questions; None for others, or where
    # it is not known.
    n: int | None
    series: tuple[RunCurve, ...]
    warnings: tuple[str, ...] = ()
    """Of a held-out metric, how many held-out pictures the runs were trained on."""
    about: str = ""
    """Of a recall, the chance level of these runs, and what of their pairs asks once; empty where neither is known."""


def curves(
    workspace: Workspace,
    runs: Sequence[int | str],
    metrics: Sequence[str],
    *,
    axis: Axis = "step",
    smoothing: float = 0.0,
) -> tuple[CurvePanel, ...]:
    """Return the curves of `runs` for each of `metrics` that any of them logged, or was evaluated on, in their order.

    Args:
        runs: Ids or names; their order decides the colors.
        metrics: Logged names, or those of evaluated numbers (`zero_shot_acc1`), which have steps and no time.
        axis: Training steps, or seconds since the start.
        smoothing: Weight of the moving average over training metrics, in [0, 1).

    Raises:
        ChartError: None of the metrics was logged by any run; names those that were.
    """
    if not 0 <= smoothing < 1:
        raise ChartError(f"Smoothing {smoothing:g} is out of range: choose 0 (none) up to, but not including, 1.")
    rows = [workspace.runs.get(run) for run in runs]
    panels = [panel for name in dict.fromkeys(metrics) for panel in _panels(workspace, rows, name, axis, smoothing)]
    if not panels:
        logged = sorted({name for row in rows for name in workspace.results.scalar_names(row.id)})
        advice = f"choose among {', '.join(logged)}" if logged else "nothing is logged yet, wait for the first step"
        raise ChartError(f"No run has logged {' or '.join(metrics)}; {advice}.")
    return tuple(panels)


def _panels(workspace: Workspace, rows: list[RunRow], name: str, axis: Axis, smoothing: float) -> list[CurvePanel]:
    metric_of = metric(name)
    drawn = [
        (row, series)
        for index, row in enumerate(rows)
        if (series := _series(workspace, row, index, name, axis, smoothing)) is not None
    ]
    if metric_of.shared_axis:
        parts = _by_measure(name, drawn)
        panels = [_panel(workspace, metric_of, metric_of.label, part) for part in parts]
        often = Counter(panel.label for panel in panels)
        return [
            replace(panel, label=f"{panel.label}, {part[0][0].data}") if often[panel.label] > 1 else panel
            for panel, part in zip(panels, parts, strict=True)
        ]
    # Losses of two objectives are different quantities: one axis for both would invite comparing them.
    # And so are those of two batch sizes: InfoNCE begins near the logarithm of its batch.
    by_kind: dict[str, list[tuple[RunRow, RunCurve]]] = {}
    batches = {row.id: _loss_batch(workspace, row, name) for row, _ in drawn}
    sizes = Counter(objective for objective, _ in {(row.objective, batches[row.id]) for row, _ in drawn})
    for row, series in drawn:
        batch = batches[row.id] if name == "val/loss" or sizes[row.objective] > 1 else None
        kind = objective_label(row.objective) + (f", batches of {batch}" if batch else "")
        by_kind.setdefault(kind, []).append((row, series))
    return [
        _panel(workspace, metric_of, f"{_loss_label(workspace, metric_of, of_kind[0][0])}, {kind}", of_kind)
        for kind, of_kind in by_kind.items()
    ]


def _loss_label(workspace: Workspace, metric: Metric, run: RunRow) -> str:
    """Return what a loss is called; one that is not logged was evaluated on held-out pairs."""
    is_evaluated = metric.label == metric.name and metric.name not in workspace.results.scalar_names(run.id)
    return "Held-out loss" if is_evaluated else metric.label


def _by_measure(name: str, drawn: list[tuple[RunRow, RunCurve]]) -> list[list[tuple[RunRow, RunCurve]]]:
    """Return the curves by the data, split and n that they were measured on; one that noted none is with the first."""
    measured = [(row.data, *measured_on(name, row.facts)) for row, _ in drawn]
    first = next((key for key in measured if key[2] is not None), None)
    if first is None or not name.startswith(HELD):
        return [drawn] if drawn else []
    parts: dict[object, list[tuple[RunRow, RunCurve]]] = {}
    for key, each in zip(measured, drawn, strict=True):
        parts.setdefault(first if key[2] is None else key, []).append(each)
    return list(parts.values())


def _loss_batch(workspace: Workspace, row: RunRow, name: str) -> int | None:
    """Return the batch that a training loss is of, or that other programs take a validation loss in."""
    batch = row.facts.get(VAL_BATCH) if name == "val/loss" else workspace.runs.batch_size(row.id)
    return batch if isinstance(batch, int) else None


def _panel(workspace: Workspace, metric: Metric, label: str, drawn: list[tuple[RunRow, RunCurve]]) -> CurvePanel:
    sizes = {_pairs_behind(workspace, row, metric.name) for row, _ in drawn}
    n = sizes.pop() if len(sizes) == 1 else None
    label = logged_name(metric.name, n) if metric.is_recall else label
    unit = "%" if metric.percent else metric.unit
    warnings = copies_notes([row for row, _ in drawn]) if metric.name.startswith(HELD) else ()
    notes = {
        " · ".join(filter(None, (noted_chance(metric.name, row.facts), once_note(metric.name, row.facts))))
        for row, _ in drawn
    }
    about = notes.pop() if len(notes) == 1 else ""
    series = tuple(series for _, series in drawn)
    return CurvePanel(metric.name, label, unit, metric.percent, n, series, warnings, about)


def _series(workspace: Workspace, row: RunRow, index: int, name: str, axis: Axis, smoothing: float) -> RunCurve | None:
    numbers = number_series(workspace, row.id, name)
    if not len(numbers.steps) or (axis == "time" and numbers.source != "logged"):
        return None
    x, values = np.asarray(numbers.seconds if axis == "time" else numbers.steps, dtype=np.float64), numbers.values
    # Held-out pairs give a few measured points, at uneven distances: their average would be a value nobody measured.
    # Over a dozen steps the average asked for would lag behind the curve: it spans a tenth of it at most.
    weight = min(smoothing, max(0.0, 1 - 10 / len(values))) if name.startswith(LOGGED_EACH_STEP) else 0.0
    drawn = smooth(values, weight) if weight > 0 else values
    return RunCurve(index, row.id, row.short_name, row.objective, x, values, drawn)


def _pairs_behind(workspace: Workspace, row: RunRow, name: str) -> int | None:
    prefix = name.partition("/")[0]
    if prefix not in ("val", "combinations"):
        return None
    splits = PREFERRED_SPLITS if prefix == "val" else (prefix,)
    noted = [n for split in splits if (n := noted_n(name, split, row.facts)) is not None]
    if noted:
        return noted[0]
    sizes = {snapshot.n for snapshot in workspace.results.snapshots(row.id) if snapshot.split in splits}
    return sizes.pop() if len(sizes) == 1 else None
