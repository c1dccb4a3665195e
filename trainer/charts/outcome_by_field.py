"""The outcome of an experiment over a number in which its arms differ, such as the share of the training pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from trainer import config
from trainer.analysis.anytime_valid import Interval
from trainer.analysis.repeated_intervals import interval
from trainer.charts.marks import Points, Series, Tone, XYPlot, arm_tone, axis_over
from trainer.config.names import in_a_word
from trainer.experiments.experiment import Arm, Experiment
from trainer.experiments.verdict import ExperimentVerdict, RunOutcome
from trainer.metrics import metric

SHARE: Final = "data.train_share"
NOTE: Final = "band: interval of the mean over seeds as in the verdict, at each value alone"


def outcome_by_field(verdict: ExperimentVerdict) -> XYPlot | None:
    """Return a line over the field for all arms that differ in nothing else; None where no two arms make one.

    What follows from the field, as epochs may from the share of the pairs, is no difference; but another field of the
    objective is one: views that are turned and blurred together are no line over the rotation. Arms without the field
    are dashed lines across. The share of the training pairs stands as their number.
    """
    flat = {arm.name: config.flatten(arm.run) for arm in verdict.experiment.arms}
    for field in _numbers(flat.values()):
        lines = _lines(verdict.experiment.arms, flat, field)
        if any(len(arms) > 1 for arms in lines.values()):
            return _plot(verdict, flat, field, lines)
    return None


def _numbers(flat: Any) -> list[str]:
    """Return the fields that hold several numbers, the share of the training pairs first."""
    every = list(flat)
    names = []
    for name in dict.fromkeys((SHARE, *(name for fields in every for name in fields))):
        values = {fields[name] for fields in every if name in fields}
        if name != "seed" and len(values) > 1 and all(type(value) in (int, float) for value in values):
            names.append(name)
    return names


def _lines(arms: Sequence[Arm], flat: Mapping[str, Mapping[str, Any]], field: str) -> dict[str, list[Arm]]:
    """Return the arms of each line in ascending order of the field."""
    having = [arm for arm in arms if field in flat[arm.name]]
    others = [
        name
        for name in dict.fromkeys(name for arm in having for name in flat[arm.name])
        if name not in (field, "name", "seed")
        and (name.startswith("objective.") or not _follows(name, field, [flat[arm.name] for arm in having]))
    ]
    by_other_fields: dict[tuple[Any, ...], list[Arm]] = {}
    for arm in having:
        by_other_fields.setdefault(tuple(flat[arm.name].get(name) for name in others), []).append(arm)
    apart = [
        name
        for name in others
        if not name.startswith("objective") and len({k[others.index(name)] for k in by_other_fields}) > 1
    ]
    lines = {}
    for key, members in by_other_fields.items():
        parts = [members[0].run.objective.label, *(f"{in_a_word(name)} {key[others.index(name)]}" for name in apart)]
        ordered = sorted(members, key=lambda arm: flat[arm.name][field])
        lines[", ".join(parts) if ", ".join(parts) not in lines else members[0].name] = ordered
    return lines


def _follows(name: str, field: str, flat: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether arms with equal values of a field have equal ones of another."""
    seen: dict[Any, Any] = {}
    return all(seen.setdefault(fields[field], fields.get(name)) == fields.get(name) for fields in flat)


def _plot(
    verdict: ExperimentVerdict, flat: Mapping[str, Mapping[str, Any]], field: str, lines: Mapping[str, Sequence[Arm]]
) -> XYPlot:
    experiment = verdict.experiment
    outcome_metric = metric(f"val/{experiment.outcome.metric}")
    most, unit = (100.0, "%") if outcome_metric.percent else (math.inf, outcome_metric.unit)
    outcomes = _outcomes(verdict, 100.0 if outcome_metric.percent else 1.0)
    x_label, positions = _positions(verdict, flat, field)
    curves, points = [], []
    for index, (name, arms) in enumerate(lines.items()):
        measured = [arm.name for arm in arms if arm.name in outcomes]
        x = np.array([positions[arm] for arm in measured], np.float64)
        seeds = [outcomes[arm] for arm in measured]
        intervals = [_interval(experiment, values, most) for values in seeds]
        curves.append(_mean_line(name, arm_tone(index), x, intervals))
        points.append(_seed_points(arm_tone(index), x, seeds))
    integer = all(isinstance(value, int) for value in positions.values())
    x_axis = axis_over(x_label, [curve.x for curve in curves], integer=integer)
    ends = np.array([x_axis.low, x_axis.high])
    others = {arm: np.full(2, values.mean()) for arm, values in outcomes.items() if field not in flat[arm]}
    curves += [Series(arm, "quiet", ends, means, dashed=True) for arm, means in others.items()]
    heights = [part for curve in curves for part in (curve.y, curve.low, curve.high) if part is not None]
    y_axis = axis_over(unit, [*heights, *(cloud.xy[:, 1] for cloud in points)], percent=outcome_metric.percent)
    n = f"n = {verdict.samples:,}" if verdict.samples else ""
    note = "; ".join(filter(None, (n, NOTE if any(curve.low is not None for curve in curves) else "")))
    title = f"{experiment.outcome.label} by {x_axis.label.lower()}"
    return XYPlot("by-field", title, x_axis, y_axis, tuple(curves), points=tuple(points), note=note)


def _counted_runs(verdict: ExperimentVerdict, arm: Arm) -> list[RunOutcome]:
    return [run for run in verdict.runs if run.arm == arm.name and not run.note]


def _outcomes(verdict: ExperimentVerdict, factor: float) -> dict[str, np.ndarray]:
    """Return arm -> the outcome of each run that counts; arms without one are left out."""
    runs_of = {arm.name: _counted_runs(verdict, arm) for arm in verdict.experiment.arms}
    return {
        arm: factor * np.array([run.values[0] for run in runs], np.float64) for arm, runs in runs_of.items() if runs
    }


def _positions(
    verdict: ExperimentVerdict, flat: Mapping[str, Mapping[str, Any]], field: str
) -> tuple[str, dict[str, float]]:
    """Return the label of the field's axis, and arm -> its value, or its number of training pairs for their share."""
    arms = verdict.experiment.arms
    facts = {arm.name: [run.run.facts for run in _counted_runs(verdict, arm)] for arm in arms}
    if field == SHARE and all("train_pairs" in of_run for of_arm in facts.values() for of_run in of_arm):
        pairs = {arm: [of_run["train_pairs"] for of_run in of_arm] for arm, of_arm in facts.items() if of_arm}
        return "Training pairs", {arm: float(np.mean(counts)) for arm, counts in pairs.items()}
    label = config.field_label((arm.run for arm in arms), field)
    return label, {arm.name: flat[arm.name][field] for arm in arms if field in flat[arm.name]}


def _mean_line(name: str, tone: Tone, x: np.ndarray, intervals: Sequence[Interval]) -> Series:
    """Return the means, with a band where all intervals are finite."""
    means = np.array([each.mean for each in intervals])
    low, high = np.array([(each.low, each.high) for each in intervals]).reshape(-1, 2).T
    if not len(x) or not np.isfinite([low, high]).all():
        return Series(name, tone, x, means, marked=True)
    return Series(name, tone, x, means, low=low, high=high, marked=True)


def _seed_points(tone: Tone, x: np.ndarray, seeds: Sequence[np.ndarray]) -> Points:
    dots = [(at, value) for at, values in zip(x, seeds, strict=True) for value in values]
    return Points("", tone, np.array(dots, np.float64).reshape(-1, 2), size=5.0)


def _interval(experiment: Experiment, values: np.ndarray, most: float) -> Interval:
    """Return the mean of an arm's seeds with the kind of interval that the verdict has; that of a share within it."""
    bounds = (0.0, most) if math.isfinite(most) else (-math.inf, math.inf)
    return interval(values, experiment.alpha, experiment.least_seeds, experiment.most_seeds, bounds=bounds)
