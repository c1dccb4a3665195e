"""Training curves of an experiment: mean and interval of each arm over its seeds, with every run faint beneath."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.efficiency import band
from trainer.analysis.progress import Progress
from trainer.charts import ChartError
from trainer.charts.experiment_verdict import newest
from trainer.charts.marks import Panel, Series, XYPlot, axis_over, run_tone
from trainer.charts.settings import setting
from trainer.charts.spec import Chart, Request
from trainer.experiments.definition import from_toml
from trainer.metrics import metric
from trainer.store import Workspace

METHOD: Final = """\
The line is the mean over the seeds of an arm, at the steps that all of them have logged; the band is the 95 % \
interval of the mean at each single step (Student's t). Faint lines are the runs, those that failed too. The band is \
not the interval that decides, which is that of the verdict. Losses of different objectives are different quantities: \
each arm has its own plot."""
USUAL: Final = ("val/image_to_text_R@1", "val/text_to_image_R@1", "val/knn_acc1", "train/loss")


@dataclass(frozen=True)
class ArmCurveSettings:
    """Which experiment, and what of it."""

    experiment: str = setting("", "Experiment", "Its name; empty: the newest.", control=False)
    metrics: tuple[str, ...] = setting((), "Metrics", "Logged names; empty: the default ones.", control=False)


@dataclass(frozen=True)
class ArmCurve:
    """An arm's curve of one metric.

    Attributes:
        steps: Where every run of the arm has a value.
        mean: Over its runs there.
        half: Half of the 95 % interval of the mean; NaN of a single run.
        runs: Id, steps and values of each run.
    """

    metric: str
    arm: str
    place: int
    steps: Int[np.ndarray, " k"]
    mean: Float[np.ndarray, " k"]
    half: Float[np.ndarray, " k"]
    runs: tuple[tuple[int, np.ndarray, np.ndarray], ...]


@dataclass(frozen=True)
class ArmCurves:
    """The curves of all arms, and the name of the experiment."""

    name: str
    curves: tuple[ArmCurve, ...]


def compute(workspace: Workspace, _request: Request, settings: ArmCurveSettings, _progress: Progress) -> ArmCurves:
    """Return the curves of every arm that has logged one of the metrics.

    Raises:
        ChartError: None has.
    """
    row = workspace.experiments.get(newest(workspace, settings.experiment))
    experiment = from_toml(row.definition, source=row.name)
    runs = workspace.runs.of_experiment(row.name)
    found = []
    for name in settings.metrics or USUAL:
        for place, arm in enumerate(experiment.arms):
            series = [(run.id, *workspace.results.series(run.id, name)[:2]) for run in runs if run.arm == arm.name]
            if curves := [one for one in series if len(one[1])]:
                found.append(_curve(name, arm.name, place, curves))
    if not found:
        raise ChartError(f"No run of {row.name} has logged anything yet. Start it: trainer experiment run {row.name}.")
    return ArmCurves(row.name, tuple(found))


def _curve(name: str, arm: str, place: int, runs: Sequence[tuple[int, np.ndarray, np.ndarray]]) -> ArmCurve:
    from scipy.stats import t

    whole = band([(steps, values) for _, steps, values in runs])
    n = len(runs)
    half = float(t.ppf(0.975, n - 1)) * whole.std / np.sqrt(n) if n > 1 else np.full(len(whole.pairs), np.nan)
    return ArmCurve(name, arm, place, whole.pairs, whole.mean, half, tuple(runs))


def draw(data: ArmCurves, _settings: ArmCurveSettings) -> Panel:
    """Draw one plot per metric, of losses one per metric and arm."""
    # Losses of two objectives are different quantities: one axis for both would invite comparing them.
    apart = {one.metric for one in data.curves if not metric(one.metric).shared_axis}
    groups: dict[tuple[str, str], list[ArmCurve]] = {}
    for one in data.curves:
        groups.setdefault((one.metric, one.arm if one.metric in apart else ""), []).append(one)
    plots = [_plot(f"curves-{at}", name, arm, group) for at, ((name, arm), group) in enumerate(groups.items())]
    rows = tuple(tuple(plots[at : at + 2]) for at in range(0, len(plots), 2))
    return Panel(
        title=f"Curves: {data.name}", rows=rows, notes=("Line and band: mean and its 95 % interval over seeds.",)
    )


def _plot(key: str, name: str, arm: str, curves: Sequence[ArmCurve]) -> XYPlot:
    known = metric(name)
    factor = 100.0 if known.percent else 1.0
    lines: list[Series] = []
    for one in curves:
        tone = run_tone(one.place)
        lines += [Series("", tone, s.astype(np.float64), factor * v, faint=True, width=1.0) for _, s, v in one.runs]
        steps, mean, half = one.steps.astype(np.float64), factor * one.mean, factor * np.nan_to_num(one.half)
        banded = len(one.runs) > 1
        low, high = (mean - half, mean + half) if banded else (None, None)
        words = f"{one.arm} ({len(one.runs)})"
        lines.append(Series(words, tone, steps, mean, low=low, high=high, dashed=one.place % 2 == 1))
    x = axis_over("Step", [line.x for line in lines], margin=0.015)
    y = axis_over("", [line.y for line in lines])
    unit = "%" if known.percent else known.unit
    label = f"{known.label}, {arm}" if arm else known.label
    return XYPlot(key, f"{label} ({unit})" if unit else label, x, y, tuple(lines))


def values(data: ArmCurves, _settings: ArmCurveSettings) -> list[dict[str, Any]]:
    """Return one dictionary per metric and arm: its last common step."""
    found = []
    for one in data.curves:
        column: dict[str, Any] = {"metric": one.metric, "arm": one.arm, "runs": len(one.runs)}
        if len(one.steps):
            column |= {"step": int(one.steps[-1]), "mean": float(one.mean[-1]), "half": float(one.half[-1])}
        found.append(column)
    return found


def records(data: ArmCurves, _settings: ArmCurveSettings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return every logged value of every run."""
    lines = [
        (one.metric, one.arm, run, step, value)
        for one in data.curves
        for run, steps, found in one.runs
        for step, value in zip(steps.tolist(), found.tolist(), strict=True)
    ]
    return ("metric", "arm", "run", "step", "value"), lines


CHART: Final = Chart(
    name="experiment-curves",
    view="experiments",
    label="Curves of arms",
    question="How do the arms learn, over all of their seeds?",
    method=METHOD,
    settings=ArmCurveSettings,
    needs="none",
    compute=compute,
    draw=draw,
    values=values,
    records=records,
)
