"""The comparison of runs in numbers: one row a metric and split, one column a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from trainer.analysis.intervals import wilson
from trainer.charts import ChartError
from trainer.charts.same_splits import SameSplits, same_splits
from trainer.metrics import Metric, metric
from trainer.store import EvaluationRow, RunRow, Workspace

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
    """One metric on one split.

    Attributes:
        metric: How it is shown and which way is good.
        n: Pairs of the split for each run; None where unknown.
        values: One a run; None where it was not measured.
        intervals: 95 % interval of a share; None for what is no share, or without n.
        best: Places of the best value; several when tied, none when nothing is better or only one run has a value.
    """

    metric: Metric
    name: str
    dataset: str
    split: str
    n: tuple[int | None, ...]
    values: tuple[float | None, ...]
    intervals: tuple[tuple[float, float] | None, ...]
    best: tuple[int, ...]


@dataclass(frozen=True)
class Comparison:
    """A table of runs; rows are grouped by split."""

    runs: tuple[ComparedRun, ...]
    rows: tuple[ComparisonRow, ...]


def comparison(workspace: Workspace, runs: Sequence[int | str]) -> Comparison:
    """The newest evaluation of every split of each run, side by side.

    Raises:
        ChartError: No run has been evaluated.
        StoreError: No such run.
    """
    rows = [workspace.run(run) for run in runs]
    same = same_splits(workspace, rows)
    newest = [_newest(workspace, row, same) for row in rows]
    splits = list(dict.fromkeys(key for evaluations in newest for key in evaluations))
    if not splits:
        names = ", ".join(row.name for row in rows)
        raise ChartError(f"Nothing to compare: none of {names} has been evaluated yet. Train them further.")
    sizes = [_sizes(workspace, row, same) | _tried(evaluations) for row, evaluations in zip(rows, newest)]
    compared = tuple(
        ComparedRun(row.id, row.name, row.objective, max((e.step for e in evaluations.values()), default=row.step))
        for row, evaluations in zip(rows, newest)
    )
    table = [
        row
        for key in splits
        for name in COMPARED
        if (row := _row(name, key, [e.get(key) for e in newest], [size.get(key) for size in sizes])) is not None
    ]
    return Comparison(compared, tuple(table))


def _newest(workspace: Workspace, row: RunRow, same: SameSplits) -> dict[tuple[str, str], EvaluationRow]:
    """Of every split the evaluation of its last step; under two names, the numbers of both."""
    found: dict[tuple[str, str], EvaluationRow] = {}
    for one in workspace.evaluations(row.id):  # by step: the last one stays
        key = same.shown(one.dataset, one.split)
        before = found.get(key)
        joined = before.metrics | one.metrics if before is not None and before.step == one.step else one.metrics
        found[key] = replace(one, dataset=key[0], split=key[1], metrics=joined)
    return found


def _sizes(workspace: Workspace, row: RunRow, same: SameSplits) -> dict[tuple[str, str], int]:
    return {same.shown(s.dataset, s.split): s.n for s in workspace.snapshots(row.id)}


def _tried(evaluations: dict[tuple[str, str], EvaluationRow]) -> dict[tuple[str, str], int]:
    """Samples of the splits that `trainer evaluate` measured."""
    return {key: int(e.metrics["n"]) for key, e in evaluations.items() if "n" in e.metrics}


def _row(
    name: str, key: tuple[str, str], evaluations: list[EvaluationRow | None], n: list[int | None]
) -> ComparisonRow | None:
    values = tuple(_value(evaluation, name) for evaluation in evaluations)
    if all(value is None for value in values):
        return None
    known = metric(f"val/{name}")
    intervals = tuple(
        wilson(value, size) if known.percent and name in SHARES and value is not None and size else None
        for value, size in zip(values, n)
    )
    return ComparisonRow(known, name, *key, tuple(n), values, intervals, _best(values, known.better))


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
