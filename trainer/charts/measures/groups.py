"""Groups of runs over seeds: means, and tests of their differences, for the charts that compare groups."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct

from trainer import config
from trainer.analysis.number_text import number
from trainer.analysis.significance import Groups, compare_groups, holm
from trainer.charts import ChartError
from trainer.charts.matching_splits import same_splits
from trainer.charts.measures.comparison import COMPARED, Key, newest_answers
from trainer.config.fields import option
from trainer.experiments.counted import RunGroup, counted_line, labeled, run_groups
from trainer.experiments.run_style import styles_of
from trainer.experiments.verdict import ArmComparison, ExperimentVerdict, judge
from trainer.metrics import Metric, data_label, metric
from trainer.store import Question, RunRow, SplitKey, StoreError, Workspace
from trainer.store.question import question_text

ALPHA: Final = 0.05


Member = tuple[int, dict[Key, dict[str, float]]]
"""Seed of a run, and its numbers of each question."""


Family = Literal["table", "line"]
"""What Holm adjusts together: every test of the table, or those of a line, where one metric was chosen beforehand."""


@dataclass(frozen=True)
class GroupSettings:
    """The groups, and the adjustment of their tests."""

    group: tuple[str, ...] = option((), "Groups", "Arms 'duel, CLIP', or runs by a pattern: 'clip-*'.", control=False)
    holm: Literal["table", "line"] = option(
        "table",
        "Holm correction",
        "Which tests are corrected together: those of the whole table, or those of a row.",
        named={"table": "Whole table", "line": "Per row"},
    )


@dataclass(frozen=True)
class GroupColumn:
    """Runs of one kind: its label, the names of its runs that count, and their hue in every view."""

    pattern: str
    runs: tuple[str, ...]
    hue: int = 0


@dataclass(frozen=True)
class GroupLine:
    """One metric on one split for one question."""

    metric: Metric
    name: str
    dataset: str
    split: str
    values: tuple[tuple[float, ...], ...]  # Of each group, one number a run that has it.
    # Of each later group against the first; None with fewer than 2 values in one, without a question, or where k
    # is at least the number of answers.
    tests: tuple[Groups | None, ...]
    p: tuple[float, ...] = ()  # Of each test Welch's p, adjusted for the family (Holm); NaN without a test.
    # Places of the groups that are really better: later ones than the first, the first than all others.
    better: frozenset[int] = frozenset()
    question: Question | None = None  # What all the values answer; None where it is not known.
    seeds: tuple[tuple[int, ...], ...] = ()  # Of each group, those of its values.


class GroupTable(Struct, frozen=True):
    """Groups in columns, metrics in rows; every later group is tested against the first."""

    groups: tuple[GroupColumn, ...]
    lines: tuple[GroupLine, ...]
    family: Family = "table"
    not_counted: str = ""  # Runs of the groups that are left out, with their reasons, in one line; empty where none is.
    # What the experiment says whose arms the groups are, a sentence each: it decides, and no test of a row. Empty
    # where the groups are of none.
    verdict: str = ""


def group_table(workspace: Workspace, patterns: Sequence[str], family: Family = "table") -> GroupTable:
    """Return the newest evaluations of the runs that match each pattern (`clip-*`) and count, with adjusted tests.

    Raises:
        ChartError: A pattern names no run, none of its runs counts, or nothing has been evaluated.
    """
    if not patterns:
        raise ChartError("Name a group of runs at least: --group 'clip-*' --group 'cloob-*'.")
    groups, members = [], []
    named = runs_of_groups(workspace, patterns)
    hues = hues_of(workspace, named)
    same = same_splits(workspace, [row for group in named for row in group.counted])
    for group, hue in zip(named, hues, strict=True):
        groups.append(GroupColumn(group.name, tuple(row.short_name for row in group.counted), hue))
        counted = [member for member in group.members if not member.reason]
        newest = [(member.seed, newest_answers(workspace, member.run, same)) for member in counted]
        members.append([(seed, {key: answer.metrics for key, answer in of_run.items()}) for seed, of_run in newest])
    keys = list(dict.fromkeys(key for group in members for _, run in group for key in run))
    splits = list(dict.fromkeys(key[:2] for key in keys))
    # Of a split the questions that are known come first.
    keys.sort(key=lambda key: (splits.index(key[:2]), key[2] is None))
    lines = [line for key in keys for name in COMPARED if (line := _line(members, key, name)) is not None]
    if not lines:
        raise ChartError(f"None of the runs of {', '.join(patterns)} has been evaluated yet. Train them further.")
    families = [lines] if family == "table" else [[line] for line in lines]
    judged = [line for together in families for line in _judged(together)]
    verdict = _verdict(workspace, named)
    if verdict is not None:
        judged = [decided(line, verdict, [group.counted[0].arm for group in named]) for line in judged]
    sentences = "" if verdict is None else f"{verdict.experiment.outcome.label}: {' '.join(_sentences(verdict, named))}"
    return GroupTable(tuple(groups), tuple(judged), family, counted_line(named), sentences)


def _verdict(workspace: Workspace, groups: Sequence[RunGroup]) -> ExperimentVerdict | None:
    """Return the verdict of the experiment that the groups are arms of; None where they are of none or of several."""
    arms = {(row.experiment, row.arm) for group in groups for row in group.counted}
    experiment, of_one = next(iter(arms))[0], len({name for name, _ in arms}) == 1
    if not experiment or not of_one or len(groups) < 2 or len(arms) != len(groups):
        return None
    try:
        return judge(workspace, experiment)
    except (StoreError, config.ConfigError):
        return None


def _compared(verdict: ExperimentVerdict, arms: Sequence[str]) -> list[ArmComparison]:
    return [each for each in verdict.primary if {each.arm, each.control} <= {*arms} and each.differences]


def _sentences(verdict: ExperimentVerdict, groups: Sequence[RunGroup]) -> list[str]:
    compared = _compared(verdict, [group.counted[0].arm for group in groups])
    return [verdict.sentence(each) for each in compared] or ["no seed has been measured in two of these arms."]


def decided(line: GroupLine, verdict: ExperimentVerdict, arms: Sequence[str]) -> GroupLine:
    """Return the line with the better groups by the verdict: only its primary outcome is decided."""
    outcome = verdict.experiment.outcome
    is_primary = (line.name, line.split) == (outcome.metric, outcome.split) and outcome.dataset in ("", line.dataset)
    compared = _compared(verdict, arms) if is_primary else []
    better = {arms.index(each.arm) for each in compared if each.decision == "better"}
    if not better and compared and all(each.decision == "worse" for each in compared):
        better = {arms.index(compared[0].control)}
    return replace(line, better=frozenset(better))


def runs_of_groups(workspace: Workspace, patterns: Sequence[str]) -> tuple[RunGroup, ...]:
    """Return each pattern (`clip-*`) or arm (`duel, CLIP`) with its runs; an experiment stands for each of its arms.

    Runs of an experiment that were deleted count there, and therefore here.

    Raises:
        ChartError: A pattern names no run, or none of its runs counts.
    """
    groups: list[tuple[str, list[RunRow]]] = []
    rows = [row for row in workspace.runs.all() if row.deleted_at is None or row.experiment]
    for pattern in patterns:
        arms = dict.fromkeys(row.arm for row in rows if row.arm and row.experiment == pattern)
        groups += [(arm, [row for row in rows if (row.experiment, row.arm) == (pattern, arm)]) for arm in arms]
        if arms:
            continue
        of_arm = [row for row in rows if row.experiment and arm_group(row) == pattern]
        matching = of_arm or [row for row in rows if fnmatch.fnmatchcase(row.name, pattern)]
        if not matching:
            names = ", ".join(row.name for row in rows) or "none"
            raise ChartError(f"No run is called {pattern}. There are {names}. Quote the pattern: --group 'clip-*'.")
        groups.append((pattern, matching))
    counted_groups = labeled(run_groups(workspace, groups))
    if empty := next((group for group in counted_groups if not group.counted), None):
        raise ChartError(f"No run of {empty.name} counts yet. {counted_line([empty])} Train them to the end.")
    return counted_groups


def arm_group(row: RunRow) -> str:
    """Return what names the arm of a run as a group, `duel, CLIP`."""
    return f"{row.experiment}, {row.arm}"


def hues_of(workspace: Workspace, groups: Sequence[RunGroup]) -> tuple[int, ...]:
    """Return the hue of each group: that of all its runs in every view, or its place where there is no such hue."""
    styles = styles_of(workspace)
    hues = {tuple({styles[run.id].hue for run in group.counted}) for group in groups}
    alone = len(hues) == len(groups) and all(len(hue) == 1 for hue in hues)
    return tuple(styles[group.counted[0].id].hue if alone else index for index, group in enumerate(groups))


def _line(members: Sequence[Sequence[Member]], key: Key, name: str) -> GroupLine | None:
    numbers = [[(seed, run[key].get(name, math.nan)) for seed, run in group if key in run] for group in members]
    measured = [
        [(seed, value) for seed, value in group if value is not None and math.isfinite(value)] for group in numbers
    ]
    values = tuple(tuple(value for _, value in group) for group in measured)
    seeds = tuple(tuple(seed for seed, _ in group) for group in measured)
    if not any(values):
        return None
    tests = tuple(
        compare_groups(np.array(values[0]), np.array(later))
        if min(len(values[0]), len(later)) > 1 and key[2] is not None and not key[2].is_certain(name)
        else None
        for later in values[1:]
    )
    return GroupLine(metric(f"val/{name}"), name, *key[:2], values, tests, question=key[2], seeds=seeds)


def _judged(family: Sequence[GroupLine]) -> list[GroupLine]:
    raw = [test.welch if test else math.nan for line in family for test in line.tests]
    adjusted = iter(holm(np.array(raw, np.float64)).tolist())
    return [_with_p(line, tuple(next(adjusted) for _ in line.tests)) for line in family]


def _with_p(line: GroupLine, p: tuple[float, ...]) -> GroupLine:
    if line.metric.better == "none":
        return replace(line, p=p)
    sign = 1 if line.metric.better == "up" else -1
    gains = [
        sign * test.difference if test and probability < ALPHA else 0.0
        for test, probability in zip(line.tests, p, strict=True)
    ]
    better = {index for index, gain in enumerate(gains, 1) if gain > 0}
    return replace(line, p=p, better=frozenset(better or ({0} if gains and max(gains) < 0 else ())))


def legend_of(group: GroupColumn) -> str:
    """Return the label of a group with its runs: `CLIP · 3 runs`."""
    return f"{group.pattern} · {len(group.runs)} run{'s' * (len(group.runs) != 1)}"


def cell(line: GroupLine, index: int) -> str:
    """Format mean and deviation as `12.3 ± 0.4 %`; a dash without a value."""
    values = line.values[index]
    if not values:
        return "–"
    scale, digits = (100, 1) if line.metric.percent else (1, line.metric.digits)
    unit = " %" if line.metric.percent else ""
    mean = number(scale * float(np.mean(values)), digits)
    spread = f" ± {number(scale * float(np.std(values, ddof=1)), digits)}" if len(values) > 1 else ""
    return f"{mean}{spread}{unit}"


def n_text(line: GroupLine) -> str:
    """Return the number of runs behind the values of a line, of each group where they differ: `3 / 4`."""
    sizes = [len(values) for values in line.values]
    return str(sizes[0]) if len({*sizes}) == 1 else " / ".join(map(str, sizes))


def p_text(p: float) -> str:
    """Format a p-value with two significant digits; a dash without a test."""
    if np.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_heads(table: GroupTable) -> list[str]:
    """Return the headings of the columns of `GroupLine.p`."""
    several = len(table.groups) > 2
    return [f"p (Welch, Holm){f' {group.pattern}' * several}" for group in table.groups[1:]]


def sections(table: GroupTable) -> Iterator[tuple[str, list[GroupLine]]]:
    """Yield title and lines of each question, in order; the title contains data, split and question."""
    for key in dict.fromkeys((line.dataset, line.split, line.question) for line in table.lines):
        members = [line for line in table.lines if (line.dataset, line.split, line.question) == key]
        yield f"{data_label(SplitKey(*key[:2]))}, {question_text(key[2], task=True)}", members


def as_values(table: GroupTable) -> dict[str, Any]:
    """Return the table for JSON: the groups, and one entry per metric and split with every run's value."""
    return {
        "groups": [asdict(group) for group in table.groups],
        "not_counted": table.not_counted,
        "rows": [
            {
                "dataset": line.dataset,
                "split": line.split,
                "question": asdict(line.question) if line.question else None,
                "metric": line.name,
                "values": [list(group) for group in line.values],
                "n": [len(group) for group in line.values],
                "tests": [vars(test) if test else None for test in line.tests],
                "p_holm": list(line.p),
                "better": sorted(line.better),
            }
            for line in table.lines
        ],
    }
