"""Groups of runs over seeds: their means and deviations, and whether the groups differ."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from trainer.analysis.significance import Groups, compare_groups, holm
from trainer.charts import ChartError
from trainer.charts.comparison import COMPARED
from trainer.charts.same_splits import SameSplits, same_splits
from trainer.metrics import Metric, metric
from trainer.store import RunRow, Workspace

ALPHA: Final = 0.05


@dataclass(frozen=True)
class RunGroup:
    """Runs of one kind: `pattern` as it was asked for, and the runs it names."""

    pattern: str
    runs: tuple[str, ...]


@dataclass(frozen=True)
class GroupLine:
    """One metric on one split.

    Attributes:
        values: Of each group, one number a run that has it.
        test: Of the second group against the first; None with fewer than 2 values in one.
        p: Welch's p, adjusted for the lines of the table (Holm); NaN without a test.
        best: Place of the better group if the difference is real, else -1.
    """

    metric: Metric
    name: str
    dataset: str
    split: str
    values: tuple[tuple[float, ...], ...]
    test: Groups | None
    p: float = math.nan
    best: int = -1


@dataclass(frozen=True)
class GroupTable:
    """Groups in columns, metrics in lines; the first two groups are tested against each other."""

    groups: tuple[RunGroup, ...]
    lines: tuple[GroupLine, ...]


def group_table(workspace: Workspace, patterns: Sequence[str]) -> GroupTable:
    """The newest evaluation of every run that a pattern names (`clip-*`), by group.

    Raises:
        ChartError: A pattern names no run, or nothing has been evaluated.
    """
    groups, members = [], []
    named = runs_of_groups(workspace, patterns)
    same = same_splits(workspace, [row for _, found in named for row in found])
    for pattern, found in named:
        groups.append(RunGroup(pattern, tuple(row.name for row in found)))
        members.append([_newest(workspace, row, same) for row in found])
    keys = dict.fromkeys(key for group in members for run in group for key in run)
    lines = [line for key in keys for name in COMPARED if (line := _line(members, key, name)) is not None]
    if not lines:
        raise ChartError(f"None of the runs of {', '.join(patterns)} has been evaluated yet. Train them further.")
    adjusted = holm(np.array([line.test.welch if line.test else math.nan for line in lines], np.float64))
    return GroupTable(tuple(groups), tuple(_judged(line, float(p)) for line, p in zip(lines, adjusted, strict=True)))


def runs_of_groups(workspace: Workspace, patterns: Sequence[str]) -> list[tuple[str, list[RunRow]]]:
    """Each pattern (`clip-*`) and the runs that it names.

    Raises:
        ChartError: A pattern names no run.
    """
    rows, groups = [row for row in workspace.runs() if row.deleted_at is None], []
    for pattern in patterns:
        found = [row for row in rows if fnmatch.fnmatchcase(row.name, pattern)]
        if not found:
            names = ", ".join(row.name for row in rows) or "none"
            raise ChartError(f"No run is called {pattern}. There are {names}. Quote the pattern: --group 'clip-*'.")
        groups.append((pattern, found))
    return groups


def _newest(workspace: Workspace, row: RunRow, same: SameSplits) -> dict[tuple[str, str], dict[str, float]]:
    """Of every split the numbers of its last step, whatever names it has."""
    found: dict[tuple[str, str], tuple[int, dict[str, float]]] = {}
    for one in workspace.evaluations(row.id):  # by step
        key = same.shown(one.dataset, one.split)
        plain = {name.rpartition("/")[2]: value for name, value in one.metrics.items()}
        step, before = found.get(key, (one.step, {}))
        found[key] = (one.step, before | plain if step == one.step else plain)
    return {key: values for key, (_, values) in found.items()}


def _line(members: Sequence[Sequence[dict]], key: tuple[str, str], name: str) -> GroupLine | None:
    values = tuple(
        tuple(
            value for run in group if key in run and (value := run[key].get(name)) is not None and math.isfinite(value)
        )
        for group in members
    )
    if not any(values):
        return None
    enough = len(values) > 1 and all(len(group) > 1 for group in values[:2])
    test = compare_groups(np.array(values[0]), np.array(values[1])) if enough else None
    return GroupLine(metric(f"val/{name}"), name, *key, values, test)


def _judged(line: GroupLine, p: float) -> GroupLine:
    best = -1
    if line.test is not None and p < ALPHA and line.metric.better != "none":
        second = (line.test.difference > 0) == (line.metric.better == "up")
        best = int(second)
    return replace(line, p=p, best=best)
