"""Groups of runs over seeds: means and deviations, and tests of their differences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from trainer.analysis.progress import Progress
from trainer.charts.marks import (
    Marker,
    NumberRow,
    NumberTable,
    Panel,
    Points,
    XYPlot,
    arm_tone,
    axis_over,
    categories,
    heading_row,
    run_tone,
    shade,
)
from trainer.charts.measures.comparison import CERTAIN_NOTE, label_of
from trainer.charts.measures.groups import (
    GroupLine,
    GroupSettings,
    GroupTable,
    cell,
    group_table,
    legend_of,
    n_text,
    p_heads,
    p_text,
    sections,
)
from trainer.charts.spec import Chart, Records, Request
from trainer.metrics import split_label
from trainer.store import Workspace
from trainer.store.question import question_text

METHOD: Final = (
    "Mean ± standard deviation over runs. Bold (or *): the better group where Welch's t-test over runs has p < 0.05, "
    "Holm-corrected over all rows."
)
EXPLORATORY: Final = (
    "The experiment decides (bold or *), by {verdict} The p values are exploratory: Welch's t-test over runs, "
    "Holm-corrected over all rows. Mean ± standard deviation over runs."
)
_ADJUSTED: Final = {"table": "all rows", "line": "the groups of a row"}


def note(table: GroupTable) -> str:
    """Return the explanation of the table's signs."""
    sentences = EXPLORATORY.format(verdict=table.verdict) if table.verdict else METHOD
    text = sentences.replace("all rows", _ADJUSTED[table.family])
    if len(table.groups) == 2:
        return text
    return text.replace("the better group where", "better than the first group (the first: than all others) where")


def compute(workspace: Workspace, _request: Request, settings: GroupSettings, _progress: Progress) -> GroupTable:
    """Return `group_table` of the groups in the settings."""
    return group_table(workspace, settings.group, settings.holm)


def draw(table: GroupTable, _settings: GroupSettings) -> Panel:
    """Draw means, deviations and tests, and every share on one axis: mean and deviation per group, a dot per run."""
    few = [group.pattern for group in table.groups if len(group.runs) < 2]
    told_few = (f"A test over seeds needs two runs or more of {' and of '.join(few)}.",) if few else ()
    shares = [line for line in table.lines if line.metric.percent]
    plots = ((_plot(table, shares),),) if shares else ()
    certain = any(line.question is not None and line.question.is_certain(line.name) for line in table.lines)
    notes = (*told_few, note(table), *([CERTAIN_NOTE] if certain else []))
    head = (table.not_counted,) if table.not_counted else ()
    return Panel(title="Groups over seeds", head=head, rows=((_table(table),), *plots), notes=notes)


def _table(table: GroupTable) -> NumberTable:
    lines = []
    for title, members in sections(table):
        lines.append(heading_row(title))
        for line in members:
            texts = (*(cell(line, index) for index in range(len(table.groups))), n_text(line), *map(p_text, line.p))
            lines.append(NumberRow(_label(line), line.name, texts, best=line.better))
    heads = (*(group.pattern for group in table.groups), "Runs", *p_heads(table))
    return NumberTable("numbers", "Newest evaluations", heads, tuple(lines), badges=False)


def _plot(table: GroupTable, lines: Sequence[GroupLine]) -> XYPlot:
    gap, middle = 0.5 / len(table.groups), (len(table.groups) - 1) / 2
    dots, clouds = [], []
    for number, group in enumerate(table.groups):
        singles: dict[int, list[tuple[float, float]]] = {}
        for index, line in enumerate(lines):
            values = 100 * np.array(line.values[number])
            at = index + gap * (number - middle)
            for seed, value in zip(line.seeds[number], values.tolist(), strict=True):
                singles.setdefault(seed, []).append((at, value))
            if len(values):
                mean, spread = float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else math.nan
                ends: dict[str, Any] = {"low": mean - spread, "high": mean + spread}
                dots.append(Marker(legend_of(group), arm_tone(group.hue), at, mean, mark="diamond", **ends))
        clouds += [
            Points("", shade(run_tone(group.hue), max(seed, 0)), np.array(singles[seed]), size=6.0)
            for seed in sorted(singles)
        ]
    every = [end for dot in dots for end in (dot.y, dot.low, dot.high)]
    y, names = axis_over("%", [every, *(cloud.xy[:, 1] for cloud in clouds)], percent=True), tuple(_rows_of(lines))
    note = "diamond: mean ± standard deviation; dot: a run, in the tone of its seed"
    marks: dict[str, Any] = {"dots": tuple(dots), "points": tuple(clouds), "names": names, "lying": True, "note": note}
    return XYPlot("shares", "Scores", categories("", names), y, **marks)


def _rows_of(lines: Sequence[GroupLine]) -> list[str]:
    """Return the measure of each line, with split and question where needed to distinguish them."""
    several_sets = len({line.dataset for line in lines}) > 1
    several_splits = len({line.split for line in lines}) > 1
    names = []
    for line in lines:
        label, split = _label(line), split_label(line.split)
        parts = (label, split if several_splits and f", {split}" not in label else "", line.dataset * several_sets)
        names.append(", ".join(filter(None, parts)))
    often = Counter(names)
    return [
        f"{name}, {question_text(line.question)}" if often[name] > 1 else name
        for name, line in zip(names, lines, strict=True)
    ]


def _label(line: GroupLine) -> str:
    label = line.metric.on(line.split, line.question.asked(line.name) if line.question else None)
    return label_of(label, line.name, line.question)


def values(table: GroupTable, _settings: GroupSettings) -> list[dict[str, Any]]:
    """Return one dictionary per group: its runs, and its values of each metric, split and question."""
    return [
        {"group": group.pattern, "runs": list(group.runs), "not_counted": table.not_counted, "verdict": table.verdict}
        | {f"{title}: {line.name}": list(line.values[index]) for title, lines in sections(table) for line in lines}
        for index, group in enumerate(table.groups)
    ]


def records(table: GroupTable, _settings: GroupSettings) -> Records:
    """Return one row per metric, split, question and group; shares are in [0, 1]."""
    header = ("dataset", "split", "metric", "group", "runs", "mean", "std", "difference", "low", "high")
    lines = []
    for line in table.lines:
        for index, group in enumerate(table.groups):
            values = line.values[index]
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
            mean = float(np.mean(values)) if values else None
            facts = (line.dataset, line.split, line.name, group.pattern, len(values), mean, spread)
            lines.append(
                (*facts, *_tests(line, index), int(index in line.better), question_text(line.question, task=True))
            )
    return (*header, "p_welch", "p_welch_holm", "p_permutation", "best", "question"), lines


def _tests(line: GroupLine, index: int) -> tuple[float | None, ...]:
    """Return the test of this group against the first; for the first of two groups, the second's test."""
    number = 0 if len(line.tests) == 1 else index - 1
    test = line.tests[number] if number >= 0 else None
    if test is None:
        return (None,) * 6
    return test.difference, test.low, test.high, test.welch, line.p[number], test.permutation


CHART: Final = Chart(
    view="evaluate",
    label="Over seeds",
    question="Do groups of runs differ more than their seeds do?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=GroupSettings,
    needs="none",
    compute=compute,
    draw=draw,
    values=values,
    records=records,
)
