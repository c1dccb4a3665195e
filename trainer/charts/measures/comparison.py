"""The newest evaluations of runs, side by side, for the charts and documents that compare them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from msgspec import Struct

from trainer.analysis.intervals import wilson
from trainer.charts import ChartError
from trainer.charts.copied_pictures import copies_notes
from trainer.charts.matching_splits import SameSplits, same_splits
from trainer.experiments.over_seeds import over_seeds
from trainer.metrics import Metric, data_label, metric
from trainer.store import EvaluationRow, Question, RunRow, SplitKey, Workspace
from trainer.store.question import question_text

INTERVAL_NOTE: Final = (
    "In brackets: 95 % interval of the share (Wilson) over the pairs of the split; in retrieval over the distinct "
    "query images or captions, of which no more count than there are pictures. "
    "Where the intervals overlap, the difference may be chance."
)


BEST_NOTE: Final = (
    "Bold (or *): the best, where its 95 % interval lies beyond those of all others; as in every table, a difference "
    "that may be chance is not bold. "
)


CERTAIN_NOTE: Final = (
    "k ≥ answers: every item is among the first k, so the value is 100 % for any model and none is marked as the best."
)


COMPARED: Final = (
    *(f"{direction}_R@{k}" for direction in ("image_to_text", "text_to_image") for k in (1, 5, 10)),
    "zero_shot_acc1",
    "zero_shot_acc5",
    *(f"auc_hard{k}" for k in range(10, 0, -1)),
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


class ComparisonRow(Struct, frozen=True):
    """One metric on one split for one question."""

    metric: Metric  # How it is shown and which way is good.
    name: str
    dataset: str
    split: str
    # Distinct questions behind each run's value, else pairs of its split; None where unknown.
    n: tuple[int | None, ...]
    values: tuple[float | None, ...]  # One a run; None where it was not measured.
    # 95 % interval of a share; None for what is no share, or without n.
    intervals: tuple[tuple[float, float] | None, ...]
    # Index of the best value; empty where nothing is better, only one run has a value, its interval overlaps
    # another one, some value has no interval, or the value cannot differ.
    best: tuple[int, ...]
    # What all the values answer; None where it is not known, and then nothing is best.
    question: Question | None = None

    @property
    def certain(self) -> bool:
        """Whether k is at least the number of answers."""
        return self.question is not None and self.question.is_certain(self.name)

    @property
    def label(self) -> str:
        """The metric's label, what it was measured on, and its chance level."""
        return label_of(self.metric.on(self.split, self.n), self.name, self.question)


@dataclass(frozen=True)
class Comparison:
    """A table of runs; rows are grouped by split and question."""

    runs: tuple[ComparedRun, ...]
    rows: tuple[ComparisonRow, ...]
    # How many held-out pictures the runs were trained on, in sentences; none where there are none.
    warnings: tuple[str, ...] = ()
    over_seeds: str = ""  # What single runs leave open, and what is known over seeds; empty for one run.

    @property
    def notes(self) -> str:
        """What the signs of the table mean."""
        certain = f" {CERTAIN_NOTE}" if any(row.certain for row in self.rows) else ""
        return f"{BEST_NOTE}{INTERVAL_NOTE}{certain}"


def label_of(label: str, name: str, question: Question | None) -> str:
    """Return the metric's label with its chance level, or with the number of answers where k is not below it."""
    chance = question.chance(name) if question is not None else ""
    if question is not None and question.is_certain(name):
        chance = f"k ≥ {question.answers(name):,} answers"
    return f"{label} ({chance})" if chance else label


def comparison(workspace: Workspace, runs: Sequence[int | str]) -> Comparison:
    """Return the newest evaluation of every split of each run, side by side.

    Raises:
        ChartError: No run has been evaluated.
    """
    rows = [workspace.runs.get(run) for run in runs]
    same = same_splits(workspace, rows)
    newest = [newest_answers(workspace, row, same) for row in rows]
    keys = list(dict.fromkeys(key for evaluations in newest for key in evaluations))
    if not keys:
        names = ", ".join(row.short_name for row in rows)
        raise ChartError(f"Nothing to compare: none of {names} has been evaluated yet. Train them further.")
    sizes = [{same.shown(s.dataset, s.split): s.n for s in workspace.results.snapshots(row.id)} for row in rows]
    compared = tuple(
        ComparedRun(
            row.id, row.short_name, row.objective, max((e.step for e in evaluations.values()), default=row.step)
        )
        for row, evaluations in zip(rows, newest)
    )
    table = [
        row
        for key in keys
        for name in COMPARED
        if (row := _row(name, key, [e.get(key) for e in newest], [size.get(key[:2]) for size in sizes])) is not None
    ]
    return Comparison(compared, tuple(_in_order(table)), copies_notes(rows), over_seeds(workspace, rows))


def _in_order(table: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """Sort by split in given order; within one by known questions first, each complete, in metric order."""
    splits = list(dict.fromkeys((row.dataset, row.split) for row in table))
    first: dict[tuple[str, str, Question | None], int] = {}
    for row in table:
        key = (row.dataset, row.split, row.question)
        first[key] = min(first.get(key, len(COMPARED)), COMPARED.index(row.name))
    order = {key: index for index, key in enumerate(first)}

    def sort_key(row: ComparisonRow) -> tuple[int, bool, int, int]:
        key = (row.dataset, row.split, row.question)
        return splits.index(key[:2]), row.question is None, first[key], order[key]

    return sorted(table, key=sort_key)


def newest_answers(workspace: Workspace, row: RunRow, same: SameSplits) -> dict[Key, EvaluationRow]:
    """Return each question's evaluation at the split's last step; two names of one split are merged.

    Its metrics are named without the split before the slash, which evaluations may name or not.
    """
    answers = [
        (same.shown(evaluation.dataset, evaluation.split), evaluation)
        for evaluation in workspace.results.answers(row.id)
    ]
    last = {split: evaluation.step for split, evaluation in answers}  # by step: the last one stays
    newest: dict[Key, EvaluationRow] = {}
    for split, evaluation in answers:
        if evaluation.step == last[split]:
            before = newest.get((*split, evaluation.question))
            metrics = dict(before.metrics) if before is not None else {}
            metrics |= {name.rpartition("/")[2]: value for name, value in evaluation.metrics.items()}
            newest[*split, evaluation.question] = replace(evaluation, dataset=split[0], split=split[1], metrics=metrics)
    return newest


def _row(name: str, key: Key, evaluations: list[EvaluationRow | None], n: list[int | None]) -> ComparisonRow | None:
    values = tuple(None if evaluation is None else evaluation.metrics.get(name) for evaluation in evaluations)
    if all(value is None for value in values):
        return None
    metric_of, question = metric(f"val/{name}"), key[2]
    sizes = n
    if question is not None:
        n, sizes = [question.asked(name)] * len(values), [question.independent(name)] * len(values)
    intervals = tuple(
        wilson(value, size) if metric_of.percent and name in SHARES and value is not None and size else None
        for value, size in zip(values, sizes)
    )
    # Nobody knows whether numbers without a question answer the same one.
    best = () if question is None or question.is_certain(name) else _best(values, intervals, metric_of)
    return ComparisonRow(metric_of, name, *key[:2], tuple(n), values, intervals, best, question)


def _best(
    values: tuple[float | None, ...], intervals: tuple[tuple[float, float] | None, ...], metric: Metric
) -> tuple[int, ...]:
    present = [index for index, value in enumerate(values) if value is not None and not math.isnan(value)]
    bounds = {index: intervals[index] for index in present}
    if metric.better == "none" or len(present) < 2 or any(bound is None for bound in bounds.values()):
        return ()
    sign = 1 if metric.better == "up" else -1
    worst = {index: min(sign * end for end in bound or ()) for index, bound in bounds.items()}
    highest = {index: max(sign * end for end in bound or ()) for index, bound in bounds.items()}
    return tuple(
        index for index in present if all(worst[index] > highest[other] for other in present if other != index)
    )


def sections(table: Comparison) -> Iterator[tuple[str, list[ComparisonRow]]]:
    """Yield title and rows of each question, in order; the title contains data, split and question."""
    for key in dict.fromkeys((row.dataset, row.split, row.question) for row in table.rows):
        rows = [row for row in table.rows if (row.dataset, row.split, row.question) == key]
        sizes = sorted({n for row in rows for n in row.n if n is not None})
        counted = f", n = {' / '.join(f'{n:,}' for n in sizes)} pairs" if sizes and key[2] is None else ""
        yield f"{data_label(SplitKey(*key[:2]))}{counted}, {question_text(key[2], task=True)}", rows


def value_text(row: ComparisonRow, index: int) -> tuple[str, str]:
    """Return the formatted value of the run at `index`, and its interval in brackets, or empty."""
    interval = row.intervals[index]
    bracket = "" if interval is None else f"[{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"
    return row.metric.text(row.values[index]), bracket


def as_values(table: Comparison) -> dict[str, Any]:
    """Return the table for JSON: the runs, and one entry per metric and split with a value for each run."""
    return {
        "runs": [asdict(run) for run in table.runs],
        "rows": [
            {
                "dataset": row.dataset,
                "split": row.split,
                "question": asdict(row.question) if row.question else None,
                "metric": row.name,
                "better": row.metric.better,
                "n": list(row.n),
                "values": list(row.values),
                "intervals": [None if i is None else list(i) for i in row.intervals],
                "best": [table.runs[i].run for i in row.best],
            }
            for row in table.rows
        ],
        "warnings": list(table.warnings),
        "over_seeds": table.over_seeds,
    }
