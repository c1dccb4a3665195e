"""Groups of runs over seeds: means and deviations, and tests of their differences."""

from __future__ import annotations

import fnmatch
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from trainer.analysis.progress import Progress
from trainer.analysis.significance import Groups, compare_groups, holm
from trainer.charts import ChartError
from trainer.charts.comparison import CERTAIN_NOTE, COMPARED, Key, label_of
from trainer.charts.marks import (
    Marker,
    NumberRow,
    NumberTable,
    Panel,
    Points,
    XYPlot,
    axis_over,
    categories,
    heading_row,
    run_tone,
)
from trainer.charts.matching_splits import SameSplits, same_splits
from trainer.charts.settings import setting
from trainer.charts.spec import Chart, Request
from trainer.metrics import Metric, metric
from trainer.store import Question, RunRow, Workspace
from trainer.store.question import told

ALPHA: Final = 0.05
FEW_P: Final = 0.01
"""A permutation test that cannot give less is told to have so few runs."""
METHOD: Final = (
    "Mean ± standard deviation over runs. Bold (or *): the better group where Welch's t-test over runs, adjusted for "
    "all lines (Holm), has p < 0.05. p (permutation) is unadjusted and cannot fall below its least value."
)
_ADJUSTED: Final = {"table": "all lines", "line": "the groups of a line"}

Family = Literal["table", "line"]
"""What Holm adjusts together: every test of the table, or those of a line, where one metric was chosen beforehand."""


@dataclass(frozen=True)
class GroupSettings:
    """The groups, and the adjustment of their tests."""

    group: tuple[str, ...] = setting((), "Groups", "Runs by name, a pattern each: 'clip-*' 'cloob-*'.", control=False)
    holm: Literal["table", "line"] = setting(
        "table",
        "p adjusted for",
        "Which tests p is adjusted for: those of the whole table, or of each line alone.",
        named={"table": "All lines", "line": "Each line"},
    )


@dataclass(frozen=True)
class RunGroup:
    """Runs of one kind: `pattern` as requested, and the runs it matches."""

    pattern: str
    runs: tuple[str, ...]


@dataclass(frozen=True)
class GroupLine:
    """One metric on one split for one question.

    Attributes:
        values: Of each group, one number a run that has it.
        tests: Of each later group against the first; None with fewer than 2 values in one, without a question, or where
            k is at least the number of answers.
        p: Of each test Welch's p, adjusted for the family (Holm); NaN without a test.
        better: Places of the groups that are really better: later ones than the first, the first than all others.
        question: What all the values answer; None where it is not known.
    """

    metric: Metric
    name: str
    dataset: str
    split: str
    values: tuple[tuple[float, ...], ...]
    tests: tuple[Groups | None, ...]
    p: tuple[float, ...] = ()
    better: frozenset[int] = frozenset()
    question: Question | None = None


@dataclass(frozen=True)
class GroupTable:
    """Groups in columns, metrics in rows; every later group is tested against the first."""

    groups: tuple[RunGroup, ...]
    lines: tuple[GroupLine, ...]
    family: Family = "table"


def group_table(workspace: Workspace, patterns: Sequence[str], family: Family = "table") -> GroupTable:
    """Return the newest evaluations of the runs matching each pattern (`clip-*`), with Holm-adjusted tests.

    Raises:
        ChartError: A pattern names no run, or nothing has been evaluated.
    """
    if not patterns:
        raise ChartError("Name a group of runs at least: --group 'clip-*' --group 'cloob-*'.")
    groups, members = [], []
    named = runs_of_groups(workspace, patterns)
    same = same_splits(workspace, [row for _, found in named for row in found])
    for pattern, found in named:
        groups.append(RunGroup(pattern, tuple(row.name for row in found)))
        members.append([_newest(workspace, row, same) for row in found])
    keys = list(dict.fromkeys(key for group in members for run in group for key in run))
    splits = list(dict.fromkeys(key[:2] for key in keys))
    # Of a split the questions that are known come first.
    keys.sort(key=lambda key: (splits.index(key[:2]), key[2] is None))
    lines = [line for key in keys for name in COMPARED if (line := _line(members, key, name)) is not None]
    if not lines:
        raise ChartError(f"None of the runs of {', '.join(patterns)} has been evaluated yet. Train them further.")
    families = [lines] if family == "table" else [[line] for line in lines]
    judged = [line for together in families for line in _judged(together)]
    return GroupTable(tuple(groups), tuple(judged), family)


def runs_of_groups(workspace: Workspace, patterns: Sequence[str]) -> list[tuple[str, list[RunRow]]]:
    """Return each pattern (`clip-*`) and its matching runs.

    Raises:
        ChartError: A pattern names no run.
    """
    rows, groups = [row for row in workspace.runs.all() if row.deleted_at is None], []
    for pattern in patterns:
        found = [row for row in rows if fnmatch.fnmatchcase(row.name, pattern)]
        if not found:
            names = ", ".join(row.name for row in rows) or "none"
            raise ChartError(f"No run is called {pattern}. There are {names}. Quote the pattern: --group 'clip-*'.")
        groups.append((pattern, found))
    return groups


def _newest(workspace: Workspace, row: RunRow, same: SameSplits) -> dict[Key, dict[str, float]]:
    """Return each question's numbers at the split's last step, under any name of the split."""
    answers = [(same.shown(one.dataset, one.split), one) for one in workspace.results.answers(row.id)]
    last = {split: one.step for split, one in answers}  # by step: the last one stays
    found: dict[Key, dict[str, float]] = {}
    for split, one in answers:
        if one.step == last[split]:
            plain = {name.rpartition("/")[2]: value for name, value in one.metrics.items()}
            found.setdefault((*split, one.question), {}).update(plain)
    return found


def _line(members: Sequence[Sequence[dict[Key, dict[str, float]]]], key: Key, name: str) -> GroupLine | None:
    values = tuple(
        tuple(
            value for run in group if key in run and (value := run[key].get(name)) is not None and math.isfinite(value)
        )
        for group in members
    )
    if not any(values):
        return None
    tests = tuple(
        compare_groups(np.array(values[0]), np.array(later))
        if min(len(values[0]), len(later)) > 1 and key[2] is not None and not key[2].is_certain(name)
        else None
        for later in values[1:]
    )
    return GroupLine(metric(f"val/{name}"), name, *key[:2], values, tests, question=key[2])


def _judged(family: Sequence[GroupLine]) -> list[GroupLine]:
    raw = [test.welch if test else math.nan for line in family for test in line.tests]
    adjusted = iter(holm(np.array(raw, np.float64)).tolist())
    return [_with_p(line, tuple(next(adjusted) for _ in line.tests)) for line in family]


def _with_p(line: GroupLine, p: tuple[float, ...]) -> GroupLine:
    if line.metric.better == "none":
        return replace(line, p=p)
    sign = 1 if line.metric.better == "up" else -1
    gains = [sign * test.difference if test and one < ALPHA else 0.0 for test, one in zip(line.tests, p, strict=True)]
    better = {place for place, gain in enumerate(gains, 1) if gain > 0}
    return replace(line, p=p, better=frozenset(better or ({0} if gains and max(gains) < 0 else ())))


def note(table: GroupTable) -> str:
    """Return the explanation of the table's signs."""
    words = METHOD.replace("all lines", _ADJUSTED[table.family])
    if len(table.groups) == 2:
        return words
    several = words.replace("the better group where", "better than the first group (the first: than all others) where")
    return several.partition(" p (permutation)")[0]


def compute(workspace: Workspace, _request: Request, settings: GroupSettings, _progress: Progress) -> GroupTable:
    """Return `group_table` of the groups in the settings."""
    return group_table(workspace, settings.group, settings.holm)


def draw(table: GroupTable, _settings: GroupSettings) -> Panel:
    """Draw means, deviations and tests, and every share on one axis: mean and deviation per group, a dot per run."""
    few = [group.pattern for group in table.groups if len(group.runs) < 2]
    least = max((test.least for line in table.lines for test in line.tests if test), default=0.0)
    told_few = (f"A test over seeds needs two runs or more of {' and of '.join(few)}.",) if few else ()
    bound = (f"With so few runs, permutation gives {least:.3f} at least.",) if not few and least > FEW_P else ()
    shown = [line for line in table.lines if line.metric.percent]
    plots = ((_plot(table, shown),),) if shown else ()
    certain = any(line.question is not None and line.question.is_certain(line.name) for line in table.lines)
    notes = (*told_few, note(table), *bound, *([CERTAIN_NOTE] if certain else []))
    return Panel(title="Groups over seeds", rows=((_table(table),), *plots), notes=notes)


def _table(table: GroupTable) -> NumberTable:
    lines = []
    for title, members in sections(table):
        lines.append(heading_row(title))
        for line in members:
            texts = (*(cell(line, place) for place in range(len(table.groups))), *p_cells(line))
            lines.append(NumberRow(_label(line), line.name, texts, best=line.better))
    heads = (*_names(table), *p_heads(table))
    return NumberTable("numbers", "Newest evaluations", heads, tuple(lines), badges=False)


def _plot(table: GroupTable, shown: Sequence[GroupLine]) -> XYPlot:
    gap, middle = 0.5 / len(table.groups), (len(table.groups) - 1) / 2
    dots, clouds = [], []
    for number, name in enumerate(_names(table)):
        singles = []
        for place, line in enumerate(shown):
            values = 100 * np.array(line.values[number])
            at = place + gap * (number - middle)
            singles += [(at, value) for value in values.tolist()]
            if len(values):
                mean, spread = float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else math.nan
                ends: dict[str, Any] = {"low": mean - spread, "high": mean + spread}
                dots.append(Marker(name, run_tone(number), at, mean, mark="diamond", **ends))
        clouds.append(Points("", run_tone(number), np.array(singles).reshape(-1, 2), size=6.0))
    every = [end for dot in dots for end in (dot.y, dot.low, dot.high)]
    y, names = axis_over("%", [every, *(cloud.xy[:, 1] for cloud in clouds)]), tuple(_rows_of(shown))
    note = "diamond: mean, with its deviation over runs; dot: a run"
    marks: dict[str, Any] = {"dots": tuple(dots), "points": tuple(clouds), "names": names, "lying": True, "note": note}
    return XYPlot("shares", "Shares", categories("", names), y, **marks)


def _names(table: GroupTable) -> tuple[str, ...]:
    return tuple(f"{group.pattern} (n = {len(group.runs)})" for group in table.groups)


def _rows_of(shown: Sequence[GroupLine]) -> list[str]:
    """Return the measure of each line, with split and question where needed to distinguish them."""
    several = len({(line.dataset, line.split) for line in shown}) > 1
    names = [f"{_label(line)}, {line.dataset} {line.split}" if several else _label(line) for line in shown]
    often = Counter(names)
    return [
        f"{name}, {told(line.question)}" if often[name] > 1 else name for name, line in zip(names, shown, strict=True)
    ]


def _label(line: GroupLine) -> str:
    label = line.metric.on(line.split, line.question.asked(line.name) if line.question else None)
    return label_of(label, line.name, line.question)


def cell(line: GroupLine, place: int) -> str:
    """Format mean and deviation as `12.3 ± 0.4 %`; a dash without a value."""
    values = line.values[place]
    if not values:
        return "–"
    scale, digits = (100, 1) if line.metric.percent else (1, line.metric.digits)
    unit = " %" if line.metric.percent else ""
    mean = f"{scale * float(np.mean(values)):.{digits}f}"
    spread = f" ± {scale * float(np.std(values, ddof=1)):.{digits}f}" if len(values) > 1 else ""
    return f"{mean}{spread}{unit}"


def p_text(p: float) -> str:
    """Format a p-value with two significant digits; a dash without a test."""
    if np.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_heads(table: GroupTable) -> list[str]:
    """Return the headings of the columns of `p_cells`."""
    if len(table.groups) == 2:
        return ["p (Welch, Holm)", "p (permutation)"]
    return [f"p (Welch, Holm) {group.pattern}" for group in table.groups[1:]]


def p_cells(line: GroupLine) -> list[str]:
    """Return both tests for two groups; for more, Welch's test of each against the first."""
    if len(line.tests) != 1:
        return [p_text(p) for p in line.p]
    return [p_text(line.p[0]), p_text(line.tests[0].permutation if line.tests[0] else math.nan)]


def sections(table: GroupTable) -> Iterator[tuple[str, list[GroupLine]]]:
    """Yield title and lines of each question, in order; the title contains data, split and question."""
    for key in dict.fromkeys((line.dataset, line.split, line.question) for line in table.lines):
        members = [line for line in table.lines if (line.dataset, line.split, line.question) == key]
        yield f"{key[0]} {key[1]}, {told(key[2], task=True)}", members


def as_values(table: GroupTable) -> dict[str, Any]:
    """Return the table for JSON: the groups, and one entry per metric and split with every run's value."""
    return {
        "groups": [asdict(group) for group in table.groups],
        "rows": [
            {
                "dataset": line.dataset,
                "split": line.split,
                "question": asdict(line.question) if line.question else None,
                "metric": line.name,
                "values": [list(group) for group in line.values],
                "tests": [vars(test) if test else None for test in line.tests],
                "p_holm": list(line.p),
                "better": sorted(line.better),
            }
            for line in table.lines
        ],
    }


def values(table: GroupTable, _settings: GroupSettings) -> list[dict[str, Any]]:
    """Return one dictionary per group: its runs, and its values of each metric, split and question."""
    return [
        {"group": group.pattern, "runs": list(group.runs)}
        | {f"{title}: {line.name}": list(line.values[place]) for title, lines in sections(table) for line in lines}
        for place, group in enumerate(table.groups)
    ]


def records(table: GroupTable, _settings: GroupSettings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return one row per metric, split, question and group; shares are in [0, 1]."""
    header = ("dataset", "split", "metric", "group", "runs", "mean", "std", "difference", "low", "high")
    lines = []
    for line in table.lines:
        for place, group in enumerate(table.groups):
            values = line.values[place]
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
            mean = float(np.mean(values)) if values else None
            facts = (line.dataset, line.split, line.name, group.pattern, len(values), mean, spread)
            lines.append((*facts, *_tests(line, place), int(place in line.better), told(line.question, task=True)))
    return (*header, "p_welch", "p_welch_holm", "p_permutation", "best", "question"), lines


def _tests(line: GroupLine, place: int) -> tuple[float | None, ...]:
    """Return the test of this group against the first; for the first of two groups, the second's test."""
    number = 0 if len(line.tests) == 1 else place - 1
    test = line.tests[number] if number >= 0 else None
    if test is None:
        return (None,) * 6
    return test.difference, test.low, test.high, test.welch, line.p[number], test.permutation


CHART: Final = Chart(
    name="groups",
    view="evaluate",
    label="Over seeds",
    question="Do groups of runs differ more than their seeds do?",
    method=METHOD,
    settings=GroupSettings,
    needs="none",
    compute=compute,
    draw=draw,
    values=values,
    records=records,
)
