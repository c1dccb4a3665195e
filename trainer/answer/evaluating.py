"""Evaluations of runs on a data set, stored as facts of the runs: what `trainer evaluate` and the window ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.answer.open_models import AnswerError, KeptModel, OpenModels
from trainer.store.evaluation_files import TaskRecord, evaluation_folder, write_task

if TYPE_CHECKING:
    from trainer.analysis.tiles import Progress
    from trainer.evaluation.benchmark import Evaluation, Subject
    from trainer.evaluation.task_data import TaskData
    from trainer.store import RunRow, Workspace

MOST_TRAIN: Final = 5_000
"""Labelled pairs that probes and neighbours learn from, where nothing else is said."""
PROBES: Final = ("linear_probe", "few_shot", "knn")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is to be measured.

    Attributes:
        data: Folder, table, tar or name of a data set; empty: what each run was trained on.
        snapshot: Measure the embeddings of each run's snapshot instead of embedding anew.
        split: Which split to try; None: the held-out one.
        tasks: Names of tasks; empty: every one that the run and the data allow.
        suite: Prompt suite; None: that of the data.
        most: Pairs tried at most; None: all.
        most_train: Pairs learned from at most.
        shift: A second data set, whose fall of accuracy is part of robustness.
        step: Of the checkpoint; None: the last.
    """

    data: str = ""
    snapshot: bool = False
    split: str | None = None
    tasks: tuple[str, ...] = ()
    suite: str | None = None
    most: int | None = None
    most_train: int | None = MOST_TRAIN
    shift: str = ""
    step: int | None = None


@dataclass(frozen=True)
class Evaluated:
    """One task of one run, as it was stored."""

    run: int
    name: str
    step: int
    dataset: str
    split: str
    record: TaskRecord


def evaluate_runs(
    models: OpenModels, runs: Sequence[int | str], wanted: Wanted, progress: Progress
) -> tuple[list[Evaluated], dict[str, str]]:
    """Measures every run on the same pairs, and stores each task as soon as it is done.

    Returns:
        What was measured, and for `"run: task"` why it was not.

    Raises:
        Problem: A run cannot be opened, the data cannot be read, or a task that was named cannot be measured.
    """
    found: list[Evaluated] = []
    left_out: dict[str, str] = {}
    loaded: dict[tuple, TaskData] = {}
    for number, run in enumerate(runs):
        row = models.workspace.run(run)

        def tell(share: float, note: str, row: RunRow = row, number: int = number) -> None:
            progress((number + share) / len(runs), f"{row.name}: {note}")

        tell(0.0, "opening the model")
        kept = models.get(row.id, wanted.step)
        make = _of_snapshot if wanted.snapshot else _of_images
        for share, task, evaluation in _planned(make(models.workspace, row, kept, wanted, loaded, tell), wanted):
            if reason := evaluation.possible()[task]:
                if wanted.tasks:
                    words = task.replace("_", " ").capitalize()
                    raise AnswerError("bad_question", f"{words} of {row.name}: {reason}", "Choose another task.")
                left_out[f"{row.name}: {task}"] = reason
                continue
            tell(share, task.replace("_", " "))
            record = evaluation.run(task)
            step, data = kept.opened.step, evaluation.data
            store(models.workspace, row, step=step, dataset=data.dataset, split=data.split, record=record)
            found.append(Evaluated(row.id, row.name, step, data.dataset, data.split, record))
    progress(1.0, "done")
    return found, left_out


def store(workspace: Workspace, row: RunRow, *, step: int, dataset: str, split: str, record: TaskRecord) -> None:
    """Writes the answers to every sample, then the numbers beside those that the split has already."""
    write_task(evaluation_folder(row.folder, dataset, split, step), record)
    there = next(
        (e for e in workspace.evaluations(row.id) if (e.step, e.dataset, e.split) == (step, dataset, split)), None
    )
    metrics = (there.metrics if there else {}) | record.metrics | {"n": record.n}
    workspace.add_evaluation(row.id, step, dataset, split, metrics)


def clip_benchmark(done: Evaluated) -> dict[str, Any]:
    """The task in the shape that CLIP_benchmark writes, with n and the split beside it."""
    names = {
        "zero_shot": ("zeroshot_classification", "zero_shot_"),
        "retrieval": ("zeroshot_retrieval", ""),
        "linear_probe": ("linear_probe", "linear_probe_"),
    }
    task, prefix = names.get(done.record.task, (done.record.task, ""))
    metrics = {name.removeprefix(prefix): value for name, value in done.record.metrics.items()}
    if "mean_per_class" in metrics:
        metrics["mean_per_class_recall"] = metrics.pop("mean_per_class")
    for ours, theirs in (("image_to_text", "text"), ("text_to_image", "image")):
        metrics |= {
            f"{theirs}_retrieval_recall@{k}": metrics.pop(f"{ours}_R@{k}")
            for k in (1, 5, 10)
            if f"{ours}_R@{k}" in metrics
        }
    if task == "linear_probe":
        metrics = {f"lp_{name}": value for name, value in metrics.items()}
    return {
        "dataset": done.dataset,
        "model": done.name,
        "pretrained": f"step {done.step}",
        "task": task,
        "metrics": metrics,
        "language": "en",
        "split": done.split,
        "n": done.record.n,
        "whole": done.record.whole,
    }


def _planned(evaluations: dict[str, Evaluation], wanted: Wanted) -> list[tuple[float, str, Evaluation]]:
    names = [name for name in evaluations if name in wanted.tasks] if wanted.tasks else list(evaluations)
    return [(0.1 + 0.9 * place / max(len(names), 1), name, evaluations[name]) for place, name in enumerate(names)]


def _of_images(
    workspace: Workspace,
    row: RunRow,
    kept: KeptModel,
    wanted: Wanted,
    loaded: dict[tuple, TaskData],
    tell: Progress,
) -> dict[str, Evaluation]:
    from trainer.evaluation.benchmark import TASKS, Evaluation
    from trainer.evaluation.task_data import load_task_data

    # Robustness without a text tower is that of the neighbours, which are sought among pairs to learn from.
    learned = {*PROBES, *(() if _reads(kept) else ("robustness",))}
    learn = not wanted.tasks or bool(learned & set(wanted.tasks))

    def load(data: Any) -> TaskData:
        key = (repr(data), kept.opened.image_size, learn)
        if key not in loaded:
            loaded[key] = load_task_data(
                data,
                image_size=kept.opened.image_size,
                workspace_folder=workspace.folder,
                split=wanted.split if data != wanted.shift else None,
                suite=wanted.suite,
                most=wanted.most,
                most_train=wanted.most_train,
                learn=learn,
                progress=lambda share, note: tell(0.1 * share, note),
            )
        return loaded[key]

    data = load(wanted.data or workspace.config_of(row.id).data)
    shift = load(wanted.shift) if wanted.shift else None
    if shift is not None and shift.suite is not None and data.suite is not None and wanted.suite is None:
        # The same question on both: the classes of the second data set are asked with the first's sentences.
        shift = replace(shift, suite=replace(shift.suite, templates=data.suite.templates))
    evaluation = Evaluation(_subject(kept), data, shift=shift, progress=lambda _share, note: tell(0.5, note))
    return dict.fromkeys(TASKS, evaluation)


def _reads(kept: KeptModel) -> bool:
    """Whether the model reads sentences."""
    return kept.opened.model.text is not None


def _of_snapshot(
    workspace: Workspace,
    row: RunRow,
    kept: KeptModel,
    wanted: Wanted,
    _loaded: dict[tuple, TaskData],
    tell: Progress,
) -> dict[str, Evaluation]:
    """Zero-shot and retrieval on every row of the snapshot, probes on a part of it after learning from the rest."""
    from trainer.charts.snapshots import choose_snapshot
    from trainer.evaluation.benchmark import TASKS, Stored
    from trainer.evaluation.task_data import snapshot_data
    from trainer.store import read_snapshot

    chosen = choose_snapshot(workspace, row, step=kept.opened.step, split=wanted.split)
    snapshot = read_snapshot(chosen.folder)
    features_file = chosen.folder / "features.npy"
    features = np.load(features_file, mmap_mode="r") if features_file.is_file() else snapshot.image
    whole, parts, tried, train = snapshot_data(snapshot, suite=wanted.suite)
    tell(0.1, "reading the snapshot")
    about = {"progress": lambda _share, note: tell(0.5, note)}
    subject = _subject(kept)
    every = Stored(subject, whole, image=snapshot.image, text=snapshot.text, train=None, **about)
    part = None if features is None else (features[tried], features[train])
    probed = Stored(subject, parts, image=part and part[0], text=None, train=part and part[1], **about)
    return {task: probed if task in PROBES else every for task in TASKS}


def _subject(kept: KeptModel) -> Subject:
    from trainer.evaluation.benchmark import Subject

    opened = kept.opened
    inv_tau = float(kept.inv_tau) if kept.method is not None else float("nan")
    return Subject(opened.model, opened.tokenizer, opened.context_length, opened.device, inv_tau)
