"""The outcome of an experiment over a number in which its arms differ, such as the share of the training pairs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from trainer import config
from trainer.analysis.anytime_valid import Interval
from trainer.analysis.repeated_intervals import interval
from trainer.charts.marks import Points, Series, XYPlot, axis_over, run_tone
from trainer.config.names import in_a_word
from trainer.experiments.definition import Arm, Experiment
from trainer.experiments.verdict import ExperimentVerdict
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
    found = []
    for name in dict.fromkeys((SHARE, *(name for one in every for name in one))):
        values = {one[name] for one in every if name in one}
        if name != "seed" and len(values) > 1 and all(type(value) in (int, float) for value in values):
            found.append(name)
    return found


def _lines(arms: Sequence[Arm], flat: Mapping[str, Mapping[str, Any]], field: str) -> dict[str, list[Arm]]:
    """Return the arms of each line in ascending order of the field."""
    having = [arm for arm in arms if field in flat[arm.name]]
    others = [
        name
        for name in dict.fromkeys(name for arm in having for name in flat[arm.name])
        if name not in (field, "name", "seed")
        and (name.startswith("objective.") or not _follows(name, field, [flat[arm.name] for arm in having]))
    ]
    found: dict[tuple[Any, ...], list[Arm]] = {}
    for arm in having:
        found.setdefault(tuple(flat[arm.name].get(name) for name in others), []).append(arm)
    apart = [
        name for name in others if not name.startswith("objective") and len({k[others.index(name)] for k in found}) > 1
    ]
    lines = {}
    for key, members in found.items():
        words = [members[0].run.objective.label, *(f"{in_a_word(name)} {key[others.index(name)]}" for name in apart)]
        ordered = sorted(members, key=lambda arm: flat[arm.name][field])
        lines[", ".join(words) if ", ".join(words) not in lines else members[0].name] = ordered
    return lines


def _follows(name: str, field: str, flat: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether arms with equal values of a field have equal ones of another."""
    seen: dict[Any, Any] = {}
    return all(seen.setdefault(one[field], one.get(name)) == one.get(name) for one in flat)


def _plot(
    verdict: ExperimentVerdict, flat: Mapping[str, Mapping[str, Any]], field: str, lines: Mapping[str, Sequence[Arm]]
) -> XYPlot:
    outcome = verdict.experiment.outcome
    known = metric(f"val/{outcome.metric}")
    factor = 100.0 if known.percent else 1.0
    measured = {
        arm.name: [one for one in verdict.runs if one.arm == arm.name and not one.note]
        for arm in verdict.experiment.arms
    }
    counted = field == SHARE and all("train_pairs" in one.run.facts for runs in measured.values() for one in runs)

    def place(arm: Arm) -> float:
        runs = measured[arm.name]
        return float(np.mean([one.run.facts["train_pairs"] for one in runs])) if counted else flat[arm.name][field]

    curves: list[Series] = []
    points: list[Points] = []
    for at, (words, arms) in enumerate(lines.items()):
        there = [arm for arm in arms if measured[arm.name]]
        x = np.array([place(arm) for arm in there], np.float64)
        seeds = [factor * np.array([one.values[0] for one in measured[arm.name]], np.float64) for arm in there]
        around = [_interval(verdict.experiment, v, factor * (1.0 if known.percent else math.inf)) for v in seeds]
        mean, ends = np.array([one.mean for one in around]), np.array([(one.low, one.high) for one in around])
        banded = bool(len(ends)) and bool(np.isfinite(ends).all())
        low, high = (ends[:, 0], ends[:, 1]) if banded else (None, None)
        curves.append(Series(words, run_tone(at), x, mean, low=low, high=high, marked=True))
        dots = [(a, v) for a, values in zip(x, seeds, strict=True) for v in values]
        points.append(Points("", run_tone(at), np.array(dots, np.float64).reshape(-1, 2), size=5.0))
    integer = not counted and all(isinstance(values.get(field, 0), int) for values in flat.values())
    x_axis = axis_over(
        "Training pairs" if counted else _label(verdict.experiment.arms, field),
        [c.x for c in curves],
        integer=integer,
    )
    for arm in (arm for arm in verdict.experiment.arms if field not in flat[arm.name] and measured[arm.name]):
        level = factor * float(np.mean([one.values[0] for one in measured[arm.name]]))
        ends = np.array([x_axis.low, x_axis.high])
        curves.append(Series(arm.name, "quiet", ends, np.full(2, level), dashed=True))
    reach = [end for c in curves for end in (c.y, c.low, c.high) if end is not None]
    y_axis = axis_over(
        "%" if known.percent else known.unit, [*reach, *(one.xy[:, 1] for one in points)], percent=known.percent
    )
    title = f"{outcome.label} by {x_axis.label.lower()}"
    n = f"n = {verdict.samples:,}" if verdict.samples else ""
    note = "; ".join(filter(None, (n, NOTE if any(curve.low is not None for curve in curves) else "")))
    return XYPlot("by-field", title, x_axis, y_axis, tuple(curves), points=tuple(points), note=note)


def _interval(experiment: Experiment, values: np.ndarray, most: float) -> Interval:
    """Return the mean of an arm's seeds with the kind of interval that the verdict has; that of a share within it."""
    bounds = (0.0, most) if math.isfinite(most) else (-math.inf, math.inf)
    return interval(values, experiment.alpha, experiment.least_seeds, experiment.most_seeds, bounds=bounds)


def _label(arms: Sequence[Arm], field: str) -> str:
    section, _, name = field.rpartition(".")
    for arm in arms:
        owner = getattr(arm.run, section) if section else arm.run
        for one in dataclasses.fields(owner):
            if one.name == name:
                return str(one.metadata.get("label", field))
    return field
