"""Scores of groups of runs by pairs seen: what the chart `data-efficiency` draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from msgspec import Struct

from trainer.analysis.efficiency import Band, band, pairs_to_reach
from trainer.analysis.significance import Groups, compare_groups
from trainer.charts import ChartError, objective_label
from trainer.charts.matching_splits import SameSplits, same_splits
from trainer.charts.measures.comparison import COMPARED
from trainer.charts.measures.groups import hues_of, runs_of_groups
from trainer.experiments.counted import counted_line
from trainer.metrics import Metric, metric
from trainer.store import Question, RunRow, Workspace

DEFAULT: Final = "zero_shot_acc1"


PAIRS_SEEN: Final = "Pairs seen: updates x pairs in a batch, repetitions counted."


Key = tuple[str, str]


Asked = tuple[str, str, Question | None]
"""Data set, split and question."""


class EfficiencyRun(Struct, frozen=True):
    """One seed: its value at each measurement."""

    run: int
    name: str
    seed: int
    pairs: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class EfficiencyGroup:
    """Runs of one kind."""

    hue: int  # Of its runs in every view.
    pattern: str
    objectives: tuple[str, ...]  # Their labels, those of the group alone.
    runs: tuple[EfficiencyRun, ...]
    band: Band  # Mean and deviation over the runs where all of them were measured.
    best: float  # The largest mean; of measures where down is better, the smallest.
    reached: float | None  # Pairs seen when the mean first reaches the level of the chart; None if it does not.


class EfficiencyChart(Struct, frozen=True):
    """Groups on one data set by one measure."""

    dataset: str
    split: str
    metric: Metric
    name: str
    n: int | None  # Samples behind each value; None where it is not known or differs.
    groups: tuple[EfficiencyGroup, ...]
    level: float  # What every group reaches: the worst of their best means.
    budget: int | None  # The largest number of pairs seen at which every group was measured; None if there is none.
    test: Groups | None  # Of the second group against the first at that budget; None with fewer than 2 runs in one.
    words: bool  # Whether a group answers by scores of words instead of prompts.
    captions: bool = False  # Whether a group answers by the likelihood of prompts instead of cosines.
    question: Question | None = None  # What all values answer; None where it is not known, and then nothing is tested.
    not_counted: str = ""  # Runs of the groups that are left out, with their reasons, in one line; empty where none is.

    @property
    def all_reach(self) -> bool:
        """Whether there are several groups and all reach the level from below."""
        return len(self.groups) > 1 and all(group.reached is not None and group.reached > 0 for group in self.groups)

    def sentence(self) -> str:
        """Return the chart in words."""
        show = self.metric.text
        reached = [group for group in self.groups if group.reached is not None]
        if len(self.groups) < 2 or len(reached) < 2:
            return PAIRS_SEEN
        first, *others = (f"{group.pattern}{{}} after {group.reached:,.0f}" for group in reached)
        level = f" reaches a mean of {show(self.level)}"
        # No ratio of these: the level is the largest mean of one of them, which flatters it, and has no interval.
        ends = ", ".join((f"{first.format(level)} pairs", *(each.format("") for each in others)))
        sentences = [f"{ends} (interpolated linearly)"]
        if self.test is not None and self.budget is not None:
            a, b = (show(value) for value in (self.test.mean_a, self.test.mean_b))
            p = "< 0.001" if self.test.welch < 0.001 else f"= {self.test.welch:.3f}"
            sentences.append(f"At {self.budget:,} pairs: {a} and {b} (Welch p {p})")
        return ". ".join(sentences) + "."


def efficiency(
    workspace: Workspace,
    patterns: Sequence[str],
    *,
    measure: str = DEFAULT,
    dataset: str | None = None,
    split: str | None = None,
) -> EfficiencyChart:
    """Return every group's score by pairs seen, from all stored evaluations of its runs.

    Args:
        patterns: Names of runs, one pattern (`clip-*`) or name a group.
        measure: Of an evaluation, `zero_shot_acc1` or any that may be compared across objectives.
        dataset: Which data; None: those with most measurements in all groups.

    Raises:
        ChartError: A pattern names no run, or the measure was not taken of every group on one data set.
    """
    if not patterns:
        raise ChartError("Name a group of runs at least: --group 'clip-*' --group 'bag-of-words-*'.")
    named = runs_of_groups(workspace, patterns)
    every = [row for group in named for row in group.counted]
    same = same_splits(workspace, every)
    curves = [[(row, _measured(workspace, row, measure, same)) for row in group.counted] for group in named]
    chosen = _chosen(curves, (dataset, split), measure, [group.name for group in named], same)
    key, question = chosen[:2], chosen[2]
    hues = hues_of(workspace, named)
    groups = [_group(workspace, hues[index], named[index].name, curves[index], chosen) for index in range(len(named))]
    metric_of = metric(f"val/{measure}")
    worst, best = (min, max) if metric_of.better != "down" else (max, min)
    bests = [float(best(group.band.mean)) for group in groups]
    level = float(worst(bests))
    sign = 1 if metric_of.better != "down" else -1
    groups = [
        replace(group, best=value, reached=pairs_to_reach(group.band.pairs, sign * group.band.mean, sign * level))
        for group, value in zip(groups, bests, strict=True)
    ]
    budget, test = _at_budget(groups)
    test = None if question is None else test
    objectives = {row.objective for row in every} if measure.startswith("zero_shot") else set()
    class_texts, captions = (
        bool(objectives & {"multiclass", "one_vs_all", "pairwise_ranking"}),
        "caption_prediction" in objectives,
    )
    n = _samples(workspace, every, key, same) if question is None else question.n
    return EfficiencyChart(
        *key,
        metric_of,
        measure,
        n,
        tuple(groups),
        level,
        budget,
        test,
        class_texts,
        captions,
        question,
        counted_line(named),
    )


def measured_data(workspace: Workspace, patterns: Sequence[str]) -> dict[Key, list[str]]:
    """Return dataset and split evaluated by every group -> the measures that all groups have, best known first.

    Raises:
        ChartError: A pattern names no run.
    """
    groups = []
    named = runs_of_groups(workspace, patterns)
    same = same_splits(workspace, [row for group in named for row in group.counted])
    for rows in (group.counted for group in named):
        measures: dict[Key, set[str]] = {}
        for row in rows:
            for evaluation in workspace.results.evaluations(row.id):
                names = {name.rpartition("/")[2] for name in evaluation.metrics}
                measures.setdefault(same.shown(evaluation.dataset, evaluation.split), set()).update(names)
        groups.append(measures)
    common = [key for key in groups[0] if all(key in other for other in groups[1:])] if groups else []
    shared = {key: [name for name in COMPARED if all(name in group[key] for group in groups)] for key in common}
    first = {key: sorted(names, key=lambda name: name != DEFAULT) for key, names in shared.items() if names}
    return first


def _measured(workspace: Workspace, row: RunRow, measure: str, same: SameSplits) -> dict[Asked, dict[int, float]]:
    """Return data and question -> pairs seen -> value."""
    batch = workspace.runs.config_of(row.id).optimizer.batch_size
    values_of: dict[Asked, dict[int, float]] = {}
    for evaluation in workspace.results.answers(row.id):
        values = {name.rpartition("/")[2]: value for name, value in evaluation.metrics.items()}
        if math.isfinite(value := values.get(measure, math.nan)):
            key = (*same.shown(evaluation.dataset, evaluation.split), _alike(evaluation.question))
            values_of.setdefault(key, {})[evaluation.step * batch] = value
    return values_of


def _alike(question: Question | None) -> Question | None:
    """Return the question without the source of the class vectors, in which the groups may differ."""
    if question is None or question.task != "zero_shot":
        return question
    return Question("zero_shot", question.n, question.classes, names=question.names)


def _chosen(
    curves: list[list[tuple[RunRow, dict[Asked, dict[int, float]]]]],
    data: tuple[str | None, str | None],
    measure: str,
    patterns: Sequence[str],
    same: SameSplits,
) -> Asked:
    splits = same.asked(*data)
    points: list[dict[Asked, int]] = []
    for group in curves:
        count: dict[Asked, int] = {}
        for _, measured in group:
            for key, values in measured.items():
                if key[:2] in splits:
                    count[key] = max(count.get(key, 0), len(values))
        points.append(count)
    fitting = [key for key in points[0] if all(key in other for other in points[1:])]
    if not fitting:
        label = metric(f"val/{measure}").label
        without = [pattern for pattern, count in zip(patterns, points, strict=True) if not count]
        what = f"of {' and '.join(without)} " if without else "of all groups on one data set "
        where = " ".join(word for word in data if word)
        raise ChartError(
            f"{label} was not measured {what}{f'on {where} ' if where else ''}yet. "
            f"Run trainer evaluate on their steps, or choose another measure."
        )
    return max(fitting, key=lambda key: (min(count[key] for count in points), key[2] is not None))


def _group(
    workspace: Workspace,
    hue: int,
    pattern: str,
    curves: list[tuple[RunRow, dict[Asked, dict[int, float]]]],
    key: Asked,
) -> EfficiencyGroup:
    runs = []
    for row, measured in curves:
        if key in measured:
            points = sorted(measured[key].items())
            pairs, values = zip(*points, strict=True)
            runs.append(EfficiencyRun(row.id, row.short_name, workspace.runs.config_of(row.id).seed, pairs, values))
    made = band([(np.array(run.pairs), np.array(run.values)) for run in runs])
    if not len(made.pairs):
        raise ChartError(
            f"The runs of {pattern} were measured after different numbers of pairs, so they have no mean. "
            "Name runs of one batch size that are measured equally often."
        )
    objectives = tuple(dict.fromkeys(objective_label(row.objective) for row, _ in curves))
    return EfficiencyGroup(hue, pattern, objectives, tuple(runs), made, math.nan, None)


def _at_budget(groups: Sequence[EfficiencyGroup]) -> tuple[int | None, Groups | None]:
    common = groups[0].band.pairs
    for group in groups[1:]:
        common = np.intersect1d(common, group.band.pairs)
    if len(groups) < 2 or not len(common):
        return (int(common[-1]) if len(common) else None), None
    budget = int(common[-1])
    first, second = (
        np.array([run.values[run.pairs.index(budget)] for run in group.runs], np.float64) for group in groups[:2]
    )
    return budget, compare_groups(first, second) if min(len(first), len(second)) > 1 else None


def _samples(workspace: Workspace, rows: Sequence[RunRow], key: Key, same: SameSplits) -> int | None:
    snapshots = (snapshot for row in rows for snapshot in workspace.results.snapshots(row.id))
    sizes = {each.n for each in snapshots if same.shown(each.dataset, each.split) == key}
    if not sizes:
        evaluations = (evaluation for row in rows for evaluation in workspace.results.evaluations(row.id))
        counts = (each.metrics.get("n") for each in evaluations if same.shown(each.dataset, each.split) == key)
        sizes = {int(value) for value in counts if value is not None}
    return sizes.pop() if len(sizes) == 1 else None
