"""Evaluations of several runs on one data set, with the answers behind every number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.intervals import wilson
from trainer.analysis.significance import McNemar, Paired, holm, mcnemar, paired_difference
from trainer.analysis.zero_shot import confusion
from trainer.charts import ChartError
from trainer.charts.matching_splits import SameSplits, same_splits
from trainer.charts.published_numbers import PublishedNumber, references
from trainer.charts.spec import Request, targets_of
from trainer.config import ConfigError
from trainer.experiments.experiment import from_toml
from trainer.metrics import HEADLINE, Metric, data_label, metric
from trainer.store import Question, RunRow, SplitKey, StoreError, Workspace
from trainer.store.task_records import TaskRecord, evaluation_folder, read_records

TASK_WORDS: Final = {
    "zero_shot": "Zero-shot",
    "retrieval": "Retrieval",
    "linear_probe": "Linear probe",
    "few_shot": "Few-shot",
    "fine_tune": "Fine-tuning",
    "knn": "Neighbors",
    "robustness": "Robustness",
    "caption_choice": "Caption choice",
    "zero_shot_protocol": "Zero-shot by protocol",
    "retrieval_protocol": "Retrieval by protocol",
}
R_AT_1: Final = HEADLINE.removeprefix("val/")
LETTERS: Final = "ABCDEFGH"

ALPHA: Final = 0.05
"""Adjusted p below which a difference counts as real."""
CONFUSED: Final = ("zero_shot", "linear_probe", "knn")
"""Tasks that name a class for each image."""


@dataclass(frozen=True)
class EvaluatedRun:
    """One run on the data set."""

    index: int
    run: int
    name: str
    objective: str
    step: int
    tasks: dict[str, TaskRecord]  # Of each task one record: that of a question all runs were asked, else the newest.
    label: str = ""  # Its name beside the others'.
    records: tuple[TaskRecord, ...] = ()  # All that is stored, the oldest first.
    is_logged: bool = False  # Whether its training measured it on these data.
    newest: int | None = None  # Step of its newest snapshot, where none was asked for and that is not measured yet.

    def record(self, task: str, question: Question | None) -> TaskRecord | None:
        """Return the stored record of a task for this question."""
        return next(
            (record for record in reversed(self.records) if (record.task, record.question) == (task, question)), None
        )


@dataclass(frozen=True)
class Difference:
    """B minus A on the samples evaluated for both."""

    paired: Paired  # With its interval.
    mcnemar: McNemar | None  # Of right and wrong answers; None where an answer is no yes or no.
    p: float  # McNemar's, adjusted for the rows of the table (Holm); NaN without.

    @property
    def real(self) -> bool:
        """Whether it is significant: adjusted p below `ALPHA`, or without one an interval that excludes 0."""
        if math.isnan(self.p):
            return self.paired.low > 0 or self.paired.high < 0
        return self.p < ALPHA


@dataclass(frozen=True)
class EvaluationLine:
    """One metric for one question."""

    metric: Metric
    name: str
    task: str
    values: tuple[float | None, ...]  # One a run; None where it was not measured.
    # 95 % interval of a share of independent samples (Wilson), else None.
    intervals: tuple[tuple[float, float] | None, ...]
    # Independent answers of each run: samples; in retrieval distinct captions, or pictures, that asked.
    n: tuple[int, ...]
    # Of the first two runs, where the answers of both to a question that is known are stored, and k is below the
    # number of answers.
    difference: Difference | None
    question: Question | None = None  # What all the values answer; None where it is not known.


@dataclass(frozen=True)
class EvaluationChart:
    """A data set, the runs evaluated on it, one line per metric, and published results."""

    dataset: str
    split: str
    runs: tuple[EvaluatedRun, ...]
    lines: tuple[EvaluationLine, ...]
    published: tuple[PublishedNumber, ...]
    # The outcome that decides their experiment, `image_to_text_R@1`; that one also without an experiment.
    primary: str = R_AT_1

    @property
    def unmeasured(self) -> tuple[EvaluatedRun, ...]:
        """The runs that no task was measured of on these data."""
        return tuple(run for run in self.runs if not run.records)

    @property
    def to_measure(self) -> tuple[EvaluatedRun, ...]:
        """Those, and the runs that were measured before their newest snapshot."""
        return tuple(run for run in self.runs if not run.records or run.newest is not None)


class Confusion(Struct, frozen=True):
    """A confusion matrix."""

    classes: tuple[str, ...]  # Names, of the classes that occur only.
    counts: Int[np.ndarray, "c c"]  # Row: the true class; column: the answer.
    shares: Float[np.ndarray, "c c"]  # Counts over their row's sum.
    numbers: tuple[int, ...]  # Place of each shown class among all.


def evaluated_data(workspace: Workspace, runs: Sequence[int]) -> list[tuple[str, str]]:
    """Return dataset and split of everything that `trainer evaluate` measured for any of the runs.

    First what was measured of most of them, and of these the newest.
    """
    rows = [workspace.runs.get(run) for run in runs]
    return _evaluated(workspace, rows, same_splits(workspace, rows))


def _evaluated(workspace: Workspace, rows: Sequence[RunRow], same: SameSplits) -> list[tuple[str, str]]:
    times: dict[tuple[str, str], float] = {}
    runs: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        for evaluation in workspace.results.evaluations(row.id):
            folder = evaluation_folder(row.folder, evaluation.dataset, evaluation.split, evaluation.step)
            if folder.is_dir():
                when, key = folder.stat().st_mtime, same.shown(evaluation.dataset, evaluation.split)
                times[key] = max(when, times.get(key, 0.0))
                runs.setdefault(key, set()).add(row.id)
    return sorted(times, key=lambda key: (-len(runs[key]), -times[key]))


def evaluation(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    dataset: str | None = None,
    split: str | None = None,
    steps: Sequence[int | None] = (),
) -> EvaluationChart:
    """Return each run's newest evaluation on a data set, or that of its step, with differences of the first two.

    `steps` are one for all runs, one for each, or several of a single run.

    Raises:
        ChartError: None of the runs was evaluated on it, or none at the step asked for; names the steps there are.
    """
    return evaluation_at(workspace, Request(targets_of(runs, steps), dataset, split))


def evaluation_at(workspace: Workspace, request: Request) -> EvaluationChart:
    """Return each run's newest evaluation on the data of a request, or that of its step, as `evaluation` does.

    Raises:
        ChartError: None of the runs was evaluated on it, or none at the step asked for; names the steps there are.
    """
    shown_at = [(workspace.runs.get(target.run), target.step) for target in request.targets]
    rows = [row for row, _ in shown_at]
    same = same_splits(workspace, rows)
    evaluated = _evaluated(workspace, rows, same)
    fitting = [key for key in evaluated if key in same.asked(request.dataset, request.split)]
    if not fitting:
        names = ", ".join(row.short_name for row in rows)
        where = f"on {request.dataset} {request.split or ''}".strip() if request.dataset else "by tasks"
        others = f" There are {'; '.join(map(_label, evaluated))}." if evaluated else ""
        raise ChartError(f"None of {names} was evaluated {where} yet.{others} Run trainer evaluate, or Evaluate.")
    key = fitting[0]
    runs = []
    for index, (row, asked_at) in enumerate(shown_at):
        records = _records(workspace, row, same, key, asked_at)
        at = max(records, default=row.step if asked_at is None else asked_at)
        stored = tuple(records.get(at, ()))
        logged = any(same.shown(each.dataset, each.split) == key for each in workspace.results.evaluations(row.id))
        last = max((snapshot.step for snapshot in workspace.results.snapshots(row.id)), default=at)
        # A run that has ended so has a checkpoint of its last step, which is what an evaluation reads.
        is_outdated = asked_at is None and row.status == "finished" and bool(stored) and last > at
        runs.append(
            EvaluatedRun(
                index, row.id, row.short_name, row.objective, at, {}, "", stored, logged, last if is_outdated else None
            )
        )
    if not any(run.records for run in runs):
        raise ChartError(_at_other_steps(workspace, rows, same, key, [at for _, at in shown_at]))
    runs = [replace(run, tasks=_tasks(run, runs)) for run in runs]
    # Runs are measured at their newest checkpoint, which the step that views show does not name.
    at_one_step = len({run.step for run in runs}) == 1
    runs = [replace(run, label=run.name if at_one_step else f"{run.name}, step {run.step:,}") for run in runs]
    return EvaluationChart(*key, tuple(runs), _lines(runs), references(key[0]), _primary(workspace, rows))


def _primary(workspace: Workspace, rows: Sequence[RunRow]) -> str:
    names = {row.experiment for row in rows}
    if len(names) > 1 or not (name := names.pop()):
        return R_AT_1
    try:
        return from_toml(workspace.experiments.get(name).definition, source=name).outcome.metric
    except (StoreError, ConfigError):
        return R_AT_1


def _at_other_steps(
    workspace: Workspace,
    rows: Sequence[RunRow],
    same: SameSplits,
    key: tuple[str, str],
    steps_asked: Sequence[int | None],
) -> str:
    """Return the message when no run was evaluated at the requested step: the steps available, and what to do."""
    missing = " or ".join(f"{step:,}" for step in dict.fromkeys(steps_asked) if step is not None)
    at_steps = []
    for row in {row.id: row for row in rows}.values():
        if steps := sorted(_records(workspace, row, same, key, None)):
            at_steps.append(f"{row.short_name} at step {', '.join(f'{step:,}' for step in steps)}")
    if not at_steps:
        return f"What was measured on {_label(key)} cannot be read any more. Run trainer evaluate again."
    return (
        f"Nothing was evaluated on {_label(key)} at step {missing}: there is {'; '.join(at_steps)}. Choose one of "
        "these steps, or last, or evaluate this step."
    )


def _label(key: tuple[str, str]) -> str:
    return data_label(SplitKey(*key))


def _tasks(run: EvaluatedRun, runs: Sequence[EvaluatedRun]) -> dict[str, TaskRecord]:
    """Return each task's newest record of a question that all runs with the task share, else the newest."""
    tasks: dict[str, TaskRecord] = {}
    for task in dict.fromkeys(record.task for record in run.records):
        questions = [{record.question for record in other.records if record.task == task} for other in runs]
        shared = set.intersection(*filter(None, questions)) - {None}
        of_task = [record for record in run.records if record.task == task]
        tasks[task] = next((record for record in reversed(of_task) if record.question in shared), of_task[-1])
    return tasks


def _records(
    workspace: Workspace, row: RunRow, same: SameSplits, key: tuple[str, str], step: int | None
) -> dict[int, list[TaskRecord]]:
    """Return step -> its stored records, under any name of the split, oldest first."""
    by_step: dict[int, list[TaskRecord]] = {}
    for evaluation in workspace.results.evaluations(row.id):
        if same.shown(evaluation.dataset, evaluation.split) == key and step in (None, evaluation.step):
            folder = evaluation_folder(row.folder, evaluation.dataset, evaluation.split, evaluation.step)
            if folder.is_dir() and (records := read_records(folder)):
                by_step[evaluation.step] = by_step.get(evaluation.step, []) + records
    return by_step


def confusion_of(record: TaskRecord) -> Confusion:
    """Return the confusion matrix of a classification task, without classes that never occur."""
    label, predicted = record.arrays["label"], record.arrays["predicted"]
    names = record.details["classes"]
    present = np.union1d(label, predicted).astype(int)
    counts = confusion(predicted, label, classes=len(names))[np.ix_(present, present)]
    sums = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, sums, out=np.full(counts.shape, np.nan), where=sums > 0)
    return Confusion(tuple(names[index] for index in present.tolist()), counts, shares, tuple(present.tolist()))


def images_of_cell(record: TaskRecord, true: int, answer: int) -> list[str]:
    """Return the image paths of class `true` that were classified as `answer`."""
    rows = (record.arrays["label"] == true) & (record.arrays["predicted"] == answer)
    return record.arrays["path"][rows].tolist()


def answers(record: TaskRecord, name: str) -> np.ndarray | None:
    """Return each sample's correctness by the metric `name`; None if it is not stored."""
    arrays = record.arrays
    if name in ("zero_shot_acc1", "linear_probe_acc1", "knn_acc1", "robust_clean"):
        return arrays.get("right")
    if name in ("zero_shot_acc5", "linear_probe_acc5"):
        return arrays["rank"] <= 5 if "rank" in arrays else None
    kind, _, top = name.rpartition("_acc")
    if record.task == "fine_tune" and kind in arrays:
        return arrays[kind] <= int(top)
    direction, _, k = name.partition("_R@")
    if k and direction in arrays:
        return arrays[direction] <= int(k)
    kinds = list(record.details.get("curves", {}))
    corruptions = kinds if name == "robust_mean" else [name.removeprefix("robust_")]
    columns = [key for key in arrays if key.rpartition("_")[0] in corruptions]
    if record.task == "robustness" and columns:
        return np.mean([arrays[key] for key in columns], axis=0)
    return None


def _lines(runs: Sequence[EvaluatedRun]) -> tuple[EvaluationLine, ...]:
    names: dict[tuple[str, Question | None, str], None] = {}
    for task in ("zero_shot", "retrieval", "linear_probe", "few_shot", "fine_tune", "knn", "robustness"):
        records = [record for run in runs for record in run.records if record.task == task]
        # The newest question first, and numbers without one last.
        for question in sorted(dict.fromkeys(record.question for record in reversed(records)), key=lambda q: q is None):
            several = (record.metrics for record in records if record.question == question)
            names |= {(task, question, name): None for metrics in several for name in metrics}
    made = [_line(runs, *name) for name in names]
    tested = [line.difference.p if line.difference else math.nan for line in made]
    adjusted = holm(np.array(tested, np.float64)).tolist()
    return tuple(
        replace(line, difference=line.difference and replace(line.difference, p=p))
        for line, p in zip(made, adjusted, strict=True)
    )


def _line(runs: Sequence[EvaluatedRun], task: str, question: Question | None, name: str) -> EvaluationLine:
    metric_of = metric(f"val/{name}")
    records = [run.record(task, question) for run in runs]
    values = tuple(record.metrics.get(name) if record else None for record in records)
    intervals = tuple(
        wilson(value, record.question.independent(name) if record.question else record.n)
        if record and value is not None and _is_share(record, name)
        else None
        for record, value in zip(records, values)
    )
    n = tuple((record.question.asked(name) if record.question else record.n) if record else 0 for record in records)
    both = len(records) > 1 and records[0] is not None and records[1] is not None
    # What cannot differ is no test, and none that the p of the others is adjusted for.
    compared = both and question is not None and not question.is_certain(name)
    difference = _difference(records[0], records[1], name) if compared else None
    return EvaluationLine(metric_of, name, task, values, intervals, n, difference, question)


def _is_share(record: TaskRecord, name: str) -> bool:
    right = answers(record, name)
    return right is not None and right.dtype == bool


def _difference(a: TaskRecord, b: TaskRecord, name: str) -> Difference | None:
    of_a, of_b = answers(a, name), answers(b, name)
    if of_a is None or of_b is None:
        return None
    at_a, at_b = _same_samples(a.arrays["path"], b.arrays["path"])
    if not len(at_a):
        return None
    # Pictures and captions that repeat ask the same question: one of each is compared, as the shares count them.
    first = _asking_first(a, name, at_a)
    of_a, of_b = of_a[at_a][first], of_b[at_b][first]
    test = mcnemar(of_a, of_b) if of_a.dtype == bool else None
    return Difference(paired_difference(of_a, of_b), test, test.p if test else math.nan)


def _same_samples(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return paired rows of the same samples; an image with several captions needs all of them in both."""
    if np.array_equal(a, b):
        return np.arange(len(a)), np.arange(len(b))
    return np.intersect1d(a, b, return_indices=True)[1:]


def _asking_first(record: TaskRecord, name: str, rows: np.ndarray) -> np.ndarray:
    """Return the first place in `rows` of each distinct question; repeated captions ask the same question."""
    questions = record.arrays.get(f"{name.partition('_R@')[0]}_asked")
    return np.arange(len(rows)) if questions is None else np.unique(questions[rows], return_index=True)[1]


def asked_alike(chart: EvaluationChart, task: str) -> list[EvaluationChart]:
    """Return one chart per question of `task` with the runs that answered it, run A's first.

    Runs of different questions may not stand in one diagram; those without the task are in none.
    """
    by_question: dict[Question | None, list[EvaluatedRun]] = {}
    for run in chart.runs:
        if task in run.tasks:
            by_question.setdefault(run.tasks[task].question, []).append(run)
    return [replace(chart, runs=tuple(runs)) for runs in by_question.values()]


def curves(chart: EvaluationChart) -> list[tuple[EvaluatedRun, str, list[float]]]:
    """Return run, corruption and accuracy at severities 0 (clean) to 5 of everything measured."""
    measured = []
    for run in chart.runs:
        record = run.tasks.get("robustness")
        for kind, values in (record.details["curves"] if record else {}).items():
            measured.append((run, kind, [record.metrics["robust_clean"], *values]))
    return measured


def diagrams(chart: EvaluationChart) -> list[tuple[EvaluatedRun, str, dict[str, Any]]]:
    """Return run, `own` or `fitted`, and the reliability diagram of zero-shot classification at that temperature."""
    measured = []
    for run in chart.runs:
        record = run.tasks.get("zero_shot")
        for name, diagram in (record.details["reliability"] if record else {}).items():
            measured.append((run, name, diagram))
    return measured


def about(chart: EvaluationChart) -> str:
    """Describe the runs, their data, and the questions."""
    runs = ", ".join(f"{LETTERS[run.index]} {run.name} (step {run.step:,})" for run in chart.runs if run.records)
    return f"{runs}. {asked(chart)}"


def unmeasured_text(chart: EvaluationChart) -> str:
    """Return sentences about the runs that were not measured on these data, or earlier; empty where all were."""
    sentences = [
        f"{run.name} was measured at step {run.step:,}; its newest is {run.newest:,}."
        for run in chart.runs
        if run.newest is not None
    ]
    for is_logged in (False, True):
        names = [run.name for run in chart.unmeasured if run.is_logged == is_logged]
        are = "is" if len(names) == 1 else "are"
        what = (
            "measured on these data only while training, see Comparison" if is_logged else "not measured on these data"
        )
        sentences += [f"{' and '.join(names)} {are} {what}."] if names else []
    return " ".join(sentences)


def asked(chart: EvaluationChart, *, with_split: bool = True) -> str:
    """Describe data and split (unless `with_split` is false), samples and classes, for all runs or each."""
    suites = list(dict.fromkeys(text for run in chart.runs if (text := _suite(run))))
    sizes = list(dict.fromkeys(text for run in chart.runs if (text := _size(run))))
    where = [data_label(chart)] if with_split else []
    return ", ".join([*where, *([" / ".join(sizes)] if sizes else []), *suites])


def _suite(run: EvaluatedRun) -> str:
    """Return the suite of the first classification task."""
    record = next((run.tasks[task] for task in ("zero_shot", "linear_probe", "knn") if task in run.tasks), None)
    if record is None or not record.details.get("suite"):
        return ""
    details = record.details
    count = len(details.get("templates") or ())
    templates = f", {count} template{'s' * (count != 1)}" if count else ""
    by = ", by the words of their names" if details.get("by") == "words" else ""
    return f"{len(details['classes'])} classes of {details['suite']}{templates}{by}"


def _size(run: EvaluatedRun) -> str:
    record = next(iter(run.tasks.values()), None)
    if record is None:
        return ""
    seen = record.details.get("trained_on", 0)
    trained_on = f", {seen:,} of them trained on" if seen else ""
    return f"{record.n:,}" + (f" of {record.whole:,}" if record.n < record.whole else "") + " pairs" + trained_on
