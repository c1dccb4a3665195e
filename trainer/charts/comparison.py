"""The comparison of runs in numbers: one row a metric, split and question, one column a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from trainer.analysis.intervals import wilson
from trainer.charts import ChartError
from trainer.charts.matching_splits import SameSplits, same_splits
from trainer.metrics import Metric, metric
from trainer.store import EvaluationRow, Question, RunRow, Workspace

COMPARED: Final = (
    *(f"{direction}_R@{k}" for direction in ("image_to_text", "text_to_image") for k in (1, 5, 10)),
    "zero_shot_acc1",
    "zero_shot_acc5",
    "auc_hard10",
    "modality_gap",
    "knn_acc1",
    "knn_words",
    "zero_shot_mean_per_class",
    "zero_shot_ece",
    "linear_probe_acc1",
    *(f"few_shot_{k}_acc1" for k in (1, 2, 4, 8, 16)),
    *(f"{key}_{share}pct_acc1" for share in (1, 10) for key in ("fine_tune_linear", "fine_tune")),
    "robust_mean",
    "robust_kept",
    "shift",
    "auc",  # as earlier versions called it: rows of older workspaces
)
"""Metrics of an evaluation that may be compared across objectives, in the order of the table: no losses, no cosines."""

Key = tuple[str, str, Question | None]
"""Data set, split and question."""

SHARES: Final = (*COMPARED[:8], "knn_acc1", "linear_probe_acc1", "shift")
"""Those that are shares of independent samples, for which an interval of a share holds."""


@dataclass(frozen=True)
class ComparedRun:
    """A column; `step` is that of its newest evaluation."""

    run: int
    name: str
    objective: str
    step: int


@dataclass(frozen=True)
class ComparisonRow:
    """One metric on one split, by one question.

    Attributes:
        metric: How it is shown and which way is good.
        n: Pairs of the split for each run; None where unknown.
        values: One a run; None where it was not measured.
        intervals: 95 % interval of a share; None for what is no share, or without n.
        best: Places of the best value; several when tied, none when nothing is better or only one run has a value.
        question: What all the values answer; None where it is not known, and then nothing is best.
    """

    metric: Metric
    name: str
    dataset: str
    split: str
    n: tuple[int | None, ...]
    values: tuple[float | None, ...]
    intervals: tuple[tuple[float, float] | None, ...]
    best: tuple[int, ...]
    question: Question | None = None


@dataclass(frozen=True)
class Comparison:
    """A table of runs; rows are grouped by split and question."""

    runs: tuple[ComparedRun, ...]
    rows: tuple[ComparisonRow, ...]


def comparison(workspace: Workspace, runs: Sequence[int | str]) -> Comparison:
    """The newest evaluation of every split of each run, side by side.

    Raises:
        ChartError: No run has been evaluated.
        StoreError: No such run.
    """
    rows = [workspace.runs.get(run) for run in runs]
    same = same_splits(workspace, rows)
    newest = [_newest(workspace, row, same) for row in rows]
    keys = list(dict.fromkeys(key for evaluations in newest for key in evaluations))
    if not keys:
        names = ", ".join(row.name for row in rows)
        raise ChartError(f"Nothing to compare: none of {names} has been evaluated yet. Train them further.")
    sizes = [_sizes(workspace, row, same) | _tried(evaluations) for row, evaluations in zip(rows, newest)]
    compared = tuple(
        ComparedRun(row.id, row.name, row.objective, max((e.step for e in evaluations.values()), default=row.step))
        for row, evaluations in zip(rows, newest)
    )
    table = [
        row
        for key in keys
        for name in COMPARED
        if (row := _row(name, key, [e.get(key) for e in newest], [size.get(key[:2]) for size in sizes])) is not None
    ]
    return Comparison(compared, tuple(_in_order(table)))


def _in_order(table: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """By split as they came; of a split the questions that are known first, each whole, in the order of the metrics."""
    splits = list(dict.fromkeys((row.dataset, row.split) for row in table))
    first: dict[tuple[str, str, Question | None], int] = {}
    for row in table:
        key = (row.dataset, row.split, row.question)
        first[key] = min(first.get(key, len(COMPARED)), COMPARED.index(row.name))
    order = {key: place for place, key in enumerate(first)}

    def place(row: ComparisonRow) -> tuple[int, bool, int, int]:
        key = (row.dataset, row.split, row.question)
        return splits.index(key[:2]), row.question is None, first[key], order[key]

    return sorted(table, key=place)


def _newest(workspace: Workspace, row: RunRow, same: SameSplits) -> dict[Key, EvaluationRow]:
    """Of every split and question the evaluation of the split's last step; under two names, the numbers of both."""
    answers = [(same.shown(one.dataset, one.split), one) for one in workspace.results.answers(row.id)]
    last = {split: one.step for split, one in answers}  # by step: the last one stays
    found: dict[Key, EvaluationRow] = {}
    for split, one in answers:
        if one.step == last[split]:
            before = found.get((*split, one.question))
            joined = before.metrics | one.metrics if before is not None else one.metrics
            found[*split, one.question] = replace(one, dataset=split[0], split=split[1], metrics=joined)
    return found


def _sizes(workspace: Workspace, row: RunRow, same: SameSplits) -> dict[tuple[str, str], int]:
    return {same.shown(s.dataset, s.split): s.n for s in workspace.results.snapshots(row.id)}


def _tried(evaluations: dict[Key, EvaluationRow]) -> dict[tuple[str, str], int]:
    """Samples of the splits that `trainer evaluate` measured, as older versions noted them."""
    return {key[:2]: int(e.metrics["n"]) for key, e in evaluations.items() if "n" in e.metrics}


def _row(name: str, key: Key, evaluations: list[EvaluationRow | None], n: list[int | None]) -> ComparisonRow | None:
    values = tuple(_value(evaluation, name) for evaluation in evaluations)
    if all(value is None for value in values):
        return None
    known, question = metric(f"val/{name}"), key[2]
    if question is not None:
        n = [question.n] * len(values)
    independent = n if question is None else [question.asked(name)] * len(values)
    intervals = tuple(
        wilson(value, size) if known.percent and name in SHARES and value is not None and size else None
        for value, size in zip(values, independent)
    )
    # Nobody knows whether numbers of older versions answer the same question.
    best = () if question is None else _best(values, known.better)
    return ComparisonRow(known, name, *key[:2], tuple(n), values, intervals, best, question)


def _value(evaluation: EvaluationRow | None, name: str) -> float | None:
    if evaluation is None:
        return None
    # Evaluations may name their metrics with or without the split before the slash.
    plain = {key.rpartition("/")[2]: value for key, value in evaluation.metrics.items()}
    return plain.get(name)


def _best(values: tuple[float | None, ...], better: str) -> tuple[int, ...]:
    present = [value for value in values if value is not None and not math.isnan(value)]
    if better == "none" or len(present) < 2:
        return ()
    top = max(present) if better == "up" else min(present)
    return tuple(i for i, value in enumerate(values) if value == top)
