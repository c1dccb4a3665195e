"""Training curves of an experiment: mean and interval of each arm over its seeds, with every run thin beneath."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.efficiency import band
from trainer.analysis.progress import Progress
from trainer.analysis.repeated_intervals import critical_t
from trainer.charts.marks import Panel, Series, XYPlot, arm_tone, axis_over, run_tone, shade
from trainer.charts.newest_experiment import NoResultYetError, newest
from trainer.charts.spec import Chart, Records, Request
from trainer.config.fields import option
from trainer.experiments.counted import CountedRun, RunGroup, arm_groups, counted_in, counted_line, seeds_of_all
from trainer.experiments.experiment import Experiment, from_toml
from trainer.experiments.run_style import arm_hues
from trainer.metrics import metric
from trainer.store import Workspace
from trainer.store.number_series import number_series

METHOD: Final = """\
The line is the mean over the seeds of an arm that count in the verdict, at the steps that all of them have logged. \
Once there are seeds that every arm has, only these count. The band is the interval of the mean at each single step, \
of the kind and level of the verdict. Thin lines are the runs. Gray ones do not count: they ended early, failed, or \
were trained otherwise. The band is of an arm; what decides is the interval of the differences. Losses of different \
objectives are different quantities: each arm has its own plot."""
Curve = tuple[CountedRun, Int[np.ndarray, " k"], Float[np.ndarray, " k"]]
"""A run, steps and values."""
USUAL: Final = ("val/image_to_text_R@1", "val/text_to_image_R@1", "val/knn_acc1", "train/loss")

LEAST_SHARES: Final = 10.0
"""Percent that an axis of shares reaches at least, from 0: the first values of a training are not magnified."""


@dataclass(frozen=True)
class ArmCurveSettings:
    """Which experiment, and what of it."""

    experiment: str = option("", "Experiment", "Its name; empty: the newest.", control=False)
    metrics: tuple[str, ...] = option(
        (), "Metrics", "Logged names, or evaluated numbers; empty: the default ones.", control=False
    )


@dataclass(frozen=True)
class ArmCurve:
    """An arm's curve of one metric.

    Attributes:
        hue: That of its runs in every view.
        steps: Where every run of the arm has a value.
        mean: Over its runs there.
        low, high: Ends of the interval of the mean; infinite where there is none yet.
        n: Seeds that the mean is over.
        level: Of the interval, in percent.
        runs: Steps and values of each run that counts.
        left_out: Those of the others.
    """

    metric: str
    arm: str
    hue: int
    steps: Int[np.ndarray, " k"]
    mean: Float[np.ndarray, " k"]
    low: Float[np.ndarray, " k"]
    high: Float[np.ndarray, " k"]
    n: int
    level: float
    runs: tuple[Curve, ...]
    left_out: tuple[Curve, ...]


class ArmCurves(Struct, frozen=True):
    """The curves of all arms, the name of the experiment, and which runs do not count."""

    name: str
    curves: tuple[ArmCurve, ...]
    not_counted: str


def compute(workspace: Workspace, _request: Request, settings: ArmCurveSettings, _progress: Progress) -> ArmCurves:
    """Return the curves of every arm that has logged one of the metrics.

    Raises:
        ChartError: None has.
    """
    row = workspace.experiments.get(newest(workspace, settings.experiment))
    experiment = from_toml(row.definition, source=row.name)
    groups = arm_groups(experiment, counted_in(workspace, experiment, workspace.runs.of_experiment(row.name)))
    curves = arm_curves(workspace, experiment, groups, settings.metrics or USUAL)
    if not curves:
        raise NoResultYetError(row.name, row.state, len(experiment.arms))
    return ArmCurves(row.name, curves, counted_line(groups))


def arm_curves(
    workspace: Workspace, experiment: Experiment, groups: Sequence[RunGroup], metrics: Sequence[str]
) -> tuple[ArmCurve, ...]:
    """Return the curve of each metric and arm that a run has logged; a single value is a dot."""
    curves = []
    hues = arm_hues(workspace, experiment.name, experiment.arms)
    paired = seeds_of_all(group for group in groups if experiment.arm(group.name))
    for name in metrics:
        for hue, arm in zip(hues, (arm.name for arm in experiment.arms), strict=True):
            members = next(group.members for group in groups if group.name == arm)
            series = [(member, number_series(workspace, member.run.id, name)) for member in members]
            logged = [(member, curve.steps, curve.values) for member, curve in series if len(curve.steps)]
            if logged:
                curves.append(_curve(experiment, name, arm, hue, logged, paired))
    return tuple(curves)


def _curve(experiment: Experiment, name: str, arm: str, hue: int, runs: Sequence[Curve], paired: set[int]) -> ArmCurve:
    counted = tuple(curve for curve in runs if not curve[0].reason)
    others = tuple(curve for curve in runs if curve[0].reason)
    if not counted:
        none = np.zeros(0)
        return ArmCurve(name, arm, hue, none.astype(np.int64), none, none, none, 0, 0.0, (), others)
    # Means over different seeds would not be compared, but the seeds.
    averaged = [curve for curve in counted if curve[0].seed in paired] or counted
    mean_band, n = band([curve[1:] for curve in averaged]), len(averaged)
    c = critical_t(n, experiment.alpha, experiment.least_seeds, experiment.most_seeds)
    half = c * mean_band.std / np.sqrt(n) if math.isfinite(c) else np.full(len(mean_band.pairs), np.inf)
    low, high = mean_band.mean - half, mean_band.mean + half
    if metric(name).percent:
        low, high = (np.where(np.isfinite(end), np.clip(end, 0.0, 1.0), end) for end in (low, high))
    level = 100 * (1 - experiment.alpha)
    return ArmCurve(name, arm, hue, mean_band.pairs, mean_band.mean, low, high, n, level, counted, others)


def draw(data: ArmCurves, _settings: ArmCurveSettings) -> Panel:
    """Draw one plot per metric, of losses one per metric and arm."""
    # Losses of two objectives are different quantities: one axis for both would invite comparing them.
    apart = {arm_curve.metric for arm_curve in data.curves if not metric(arm_curve.metric).shared_axis}
    groups: dict[tuple[str, str], list[ArmCurve]] = {}
    for arm_curve in data.curves:
        groups.setdefault((arm_curve.metric, arm_curve.arm if arm_curve.metric in apart else ""), []).append(arm_curve)
    plots = [arm_plot(f"curves-{at}", name, arm, group) for at, ((name, arm), group) in enumerate(groups.items())]
    rows = tuple(tuple(plots[at : at + 2]) for at in range(0, len(plots), 2))
    note = "Mean over seeds with its interval, as in the verdict. Thin lines are runs; gray ones do not count."
    return Panel(title=f"Curves: {data.name}", head=tuple(filter(None, (data.not_counted,))), rows=rows, notes=(note,))


def arm_plot(key: str, name: str, arm: str, curves: Sequence[ArmCurve]) -> XYPlot:
    """Return the plot of one metric: mean and band of each arm, its runs thin, and gray those that do not count."""
    metric_of = metric(name)
    factor = 100.0 if metric_of.percent else 1.0
    lines: list[Series] = []
    quiet = [member for curve in curves for member, _, _ in curve.left_out if not member.run.active]
    why = f"{quiet[0].run.short_name}, {quiet[0].reason}" if len(quiet) == 1 else f"{len(quiet)} runs not counted"
    for curve in curves:
        tone = arm_tone(curve.hue)
        for member, at, logged in (*curve.runs, *curve.left_out):
            if curve.n == 1 and np.array_equal(at, curve.steps) and np.array_equal(logged, curve.mean):
                continue  # it is the mean
            line = "quiet" if member in quiet else shade(run_tone(curve.hue), max(member.seed, 0))
            numbers = at.astype(np.float64), factor * logged
            hint = ", ".join(filter(None, (member.run.short_name, member.reason)))
            legend = why if member in quiet[:1] else f"{member.run.short_name}, in training" * member.run.active
            width = 2.0 if member.run.active and not curve.runs else 1.0  # it stands for a mean that is still to come
            lines.append(Series(legend, line, *numbers, width=width, hint=hint, marked=len(at) == 1))
        if not curve.runs:
            continue
        steps, mean = curve.steps.astype(np.float64), factor * curve.mean
        banded = bool(np.isfinite(curve.low).all())
        low, high = (factor * curve.low, factor * curve.high) if banded else (None, None)
        some = f"{curve.n} of " * (curve.n < len(curve.runs))
        legend = f"{curve.arm} · {some}{len(curve.runs)} seed{'s' * (len(curve.runs) != 1)}"
        lines.append(Series(legend, tone, steps, mean, low=low, high=high, marked=len(steps) == 1))
    runs = [member.run for curve in curves for member, _, _ in (*curve.runs, *curve.left_out)]
    # The axes are those of the end: a first value is not to fill the plot.
    x = axis_over("Step", [*(line.x for line in lines), *(run.total_steps for run in runs)], margin=0.015, integer=True)
    shares = (0.0, LEAST_SHARES) if metric_of.percent else ()
    y = axis_over("", [h for line in lines for h in line.drawn], include=shares, percent=metric_of.percent)
    unit = "%" if metric_of.percent else metric_of.unit
    label = f"{metric_of.label}, {arm}" if arm else metric_of.label
    # A legend of one entry is not shown.
    named = [line.name for line in lines if line.name]
    notes = {f"band: {curve.level:.4g} % interval of the mean" for curve in curves if np.isfinite(curve.low).any()}
    thin = ["thin lines: single seeds"] * any(len(curve.runs) > 1 for curve in curves)
    note = named[0] if len(named) == 1 else " · ".join([*notes, *thin])
    return XYPlot(key, f"{label} ({unit})" if unit else label, x, y, tuple(lines), note=note)


def values(data: ArmCurves, _settings: ArmCurveSettings) -> list[dict[str, Any]]:
    """Return one dictionary per metric and arm: its last common step."""
    columns = []
    for curve in data.curves:
        column: dict[str, Any] = {"metric": curve.metric, "arm": curve.arm, "runs": curve.n}
        if len(curve.steps):
            column |= {"step": int(curve.steps[-1]), "mean": float(curve.mean[-1])}
            column |= {"low": float(curve.low[-1]), "high": float(curve.high[-1])}
        columns.append(column)
    return columns


def records(data: ArmCurves, _settings: ArmCurveSettings) -> Records:
    """Return every logged value of every run, and whether the run counts."""
    lines = [
        (curve.metric, curve.arm, member.run.id, member.run.short_name, step, value, int(not member.reason))
        for curve in data.curves
        for member, steps, numbers in (*curve.runs, *curve.left_out)
        for step, value in zip(steps.tolist(), numbers.tolist(), strict=True)
    ]
    return ("metric", "arm", "run", "name", "step", "value", "counted"), lines


CHART: Final = Chart(
    view="experiments",
    label="Learning curves",
    question="How do the arms learn, over all of their seeds?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=ArmCurveSettings,
    needs="none",
    compute=compute,
    draw=draw,
    values=values,
    records=records,
)
