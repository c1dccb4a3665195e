"""Evaluate runs on a data set and store the results, for `trainer evaluate` and the window."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.analysis.progress import Progress, part_of
from trainer.charts.evaluation import TASK_WORDS
from trainer.errors import UserError
from trainer.inference.model_cache import AnswerError, CachedModel, ModelCache
from trainer.messages import Evaluate
from trainer.prompt_suites import ZERO_SHOT, suite_of_facts
from trainer.store.task_records import TaskRecord, evaluation_folder, write_task
from trainer.untrusted.files import expanded

if TYPE_CHECKING:
    from trainer import config
    from trainer.evaluation.benchmark import Evaluation, Subject
    from trainer.evaluation.protocol_factors import Reading
    from trainer.evaluation.task_data import TaskData
    from trainer.images import Preprocessing
    from trainer.methods import BagOfWords, CaptionPrediction
    from trainer.prompt_suites import PromptSuite
    from trainer.store import RunRow, Workspace

CHEAP: Final = ("zero_shot", "retrieval", "knn")
"""Tasks that are measured where none is named; the others take minutes and are chosen."""
_LOOKING: Final = 0.1
"""Share of the progress that goes by while it is looked at what is possible."""
OTHER_SPLIT: Final = 2_000
"""Pairs of another split at most, on which the published protocol is measured too."""
EXPLAINED: Final = {"zero_shot": "zero_shot_protocol", "retrieval": "retrieval_protocol"}
"""Task -> the one that says what deviations from its published protocol cost."""
PROBES: Final = ("linear_probe", "few_shot", "fine_tune", "knn")


@dataclass(frozen=True, kw_only=True)
class _AtOneStep(Evaluate):
    """The part of a question that is about one step."""

    step: int | None = None  # Of the checkpoint; None: the last.
    # The data as a run has chosen them, where `data` or `data_of` names those of a run; else None.
    choice: config.Data | None = None
    # Folder of embeddings of the pairs by the only run, made by `embed_set`; None: embed them here.
    shards: Path | None = None


class _Stage:
    """The progress of one of several tasks, reported as progress of the whole."""

    def __init__(self, report: Progress) -> None:
        self._report, self._low, self._high = report, 0.0, 1.0

    def begin(self, low: float, high: float, note: str) -> None:
        self._low, self._high = low, high
        self._report(low, note)

    def __call__(self, share: float, note: str) -> None:
        self._report(self._low + (self._high - self._low) * min(max(share, 0.0), 1.0), note)


@dataclass(frozen=True)
class Evaluated:
    """One task of one run, as stored."""

    run: int
    name: str
    step: int
    dataset: str
    split: str
    record: TaskRecord


def evaluate_runs(
    models: ModelCache,
    question: Evaluate,
    progress: Progress,
    *,
    shards: Path | None = None,
    measured: Callable[[Evaluated], None] | None = None,
) -> tuple[list[Evaluated], dict[str, str]]:
    """Check what can be measured for each run, then measure it and store each completed task.

    Args:
        shards: Folder of embeddings of the pairs by the only run, made by `embed_set`; None: embed them here.
        measured: Told each task as soon as it is stored.

    Returns:
        What was measured, and for `"run: task"` (or the run, of which nothing can be) why it was not.

    Raises:
        UserError: There is no such run, or nothing of what is wanted can be measured of the only run.
        LookOnly: The results could not be stored; before anything is drawn or measured.
    """
    models.workspace.results.check_kept()
    if question.explain:
        named_tasks = question.tasks or ("zero_shot",)
        also = (EXPLAINED[task] for task in named_tasks if task in EXPLAINED)
        question = replace(question, tasks=tuple(dict.fromkeys((*named_tasks, *also))))
    steps = question.steps or (None,) * len(question.runs)
    evaluated: list[Evaluated] = []
    left_out: dict[str, str] = {}
    for index, step in enumerate(distinct := list(dict.fromkeys(steps))):
        runs = tuple(run_id for run_id, at in zip(question.runs, steps, strict=True) if at == step)
        part = part_of(progress, index, len(distinct))
        request = _AtOneStep(**vars(question) | {"runs": runs}, step=step, shards=shards)
        done, lacking = _evaluate(models, request, part, measured)
        evaluated += done
        label = f", step {'last' if step is None else step}" if len(distinct) > 1 else ""
        left_out |= {f"{what}{label}": why for what, why in lacking.items()}
    return evaluated, left_out


def _evaluate(
    models: ModelCache, request: _AtOneStep, progress: Progress, measured: Callable[[Evaluated], None] | None
) -> tuple[list[Evaluated], dict[str, str]]:
    rows = [models.workspace.runs.get(run_id) for run_id in request.runs]
    request = replace(request, choice=_choice_of(models.workspace, request))
    loaded: dict[tuple, TaskData] = {}
    evaluated: list[Evaluated] = []
    left_out: dict[str, str] = {}

    def part(low: float, high: float, row: RunRow) -> Progress:
        return lambda share, note: progress(low + (high - low) * share, f"{row.short_name}: {note}")

    possible: list[tuple[RunRow, list[str]]] = []
    for index, row in enumerate(rows):
        report = part(_LOOKING * index / len(rows), _LOOKING * (index + 1) / len(rows), row)
        try:
            tasks, reasons = _possible(models, row, request, loaded, report)
        except UserError as problem:
            if len(rows) == 1:
                raise
            left_out[row.short_name] = str(problem)
            continue
        left_out |= reasons
        possible.append((row, tasks))
    for index, (row, tasks) in enumerate(possible):
        low, high = (_LOOKING + (1 - _LOOKING) * (index + more) / len(possible) for more in (0, 1))
        for result in _measured(models, row, replace(request, tasks=tuple(tasks)), loaded, part(low, high, row)):
            evaluated.append(result)
            if measured is not None:
                measured(result)
    progress(1.0, "done")
    return evaluated, left_out


def _possible(
    models: ModelCache, row: RunRow, request: _AtOneStep, loaded: dict[tuple, TaskData], progress: Progress
) -> tuple[list[str], dict[str, str]]:
    """Return the tasks that can be measured for a run, and why others cannot."""
    evaluations = _evaluations(models, row, request, loaded, _Stage(progress))
    reasons = {task: evaluations[task].possible()[task] for task in evaluations if task in (request.tasks or CHEAP)}
    left_out = {f"{row.short_name}, {TASK_WORDS.get(task, task)}": reason for task, reason in reasons.items() if reason}
    return [task for task, reason in reasons.items() if not reason], left_out


def _measured(
    models: ModelCache, row: RunRow, request: _AtOneStep, loaded: dict[tuple, TaskData], progress: Progress
) -> Iterator[Evaluated]:
    """Yield each requested task of a run, stored before the next begins."""
    if not request.tasks:
        return
    stage = _Stage(progress)
    evaluations = _evaluations(models, row, request, loaded, stage)
    step = models.get(row.id, request.step).opened.step
    for low, high, task, evaluation in _planned(evaluations, request):
        stage.begin(low, high, task.replace("_", " "))
        data, record = evaluation.data, evaluation.run(task)
        if content := data.tried.fingerprint:
            record = replace(record, details=record.details | {"fingerprint": content})
        if data.trained_on:
            record = replace(record, details=record.details | {"trained_on": data.trained_on})
        store(models.workspace, row, step=step, dataset=data.dataset, split=data.split, record=record)
        yield Evaluated(row.id, row.name, step, data.dataset, data.split, record)


def _evaluations(
    models: ModelCache, row: RunRow, request: _AtOneStep, loaded: dict[tuple, TaskData], stage: _Stage
) -> dict[str, Evaluation]:
    stage.begin(0.0, 0.1, "opening the model")
    make = _of_shards if request.shards is not None else _of_snapshot if request.snapshot else _of_images
    return make(models.workspace, row, models.get(row.id, request.step), request, loaded, stage)


def store(workspace: Workspace, row: RunRow, *, step: int, dataset: str, split: str, record: TaskRecord) -> None:
    """Write the answers of every sample, then the numbers; results of other questions stay."""
    write_task(evaluation_folder(row.folder, dataset, split, step), record)
    questions = {record.task: record.question} if record.question else {}
    workspace.results.add_evaluation(row.id, step, dataset, split, record.metrics, questions)


def _choice_of(workspace: Workspace, request: _AtOneStep) -> config.Data | None:
    """Return the data as configured by the first run that learned from them, so that all share its split.

    Raises:
        UserError: Data are named in two ways.
    """
    from trainer.evaluation.task_data import data_named, names_data_of

    if request.data_of:
        if request.data:
            raise UserError("--data and --data-of both name data. Leave out one of them.")
        return workspace.runs.config_of(workspace.runs.get(request.data_of).id).data
    if not isinstance(named := data_named(request.data), str):
        return named
    choices = (workspace.runs.config_of(workspace.runs.get(run_id).id).data for run_id in request.runs)
    return next((choice for choice in choices if request.data and names_data_of(request.data, choice)), None)


def _is_own(request: _AtOneStep, run_data: config.Data) -> bool:
    """Return whether the question is about the data that a run was trained on."""
    from trainer.config import same_data
    from trainer.evaluation.task_data import names_data_of

    if request.choice is not None and same_data(request.choice, run_data):
        return True
    return not request.data_of and (not request.data or names_data_of(request.data, run_data))


def _planned(evaluations: dict[str, Evaluation], request: _AtOneStep) -> list[tuple[float, float, str, Evaluation]]:
    """Return the progress at which each task begins and ends, its name, and its evaluation."""
    names = [name for name in evaluations if name in request.tasks]
    edges = np.linspace(0.1, 1.0, len(names) + 1).tolist()
    return [(edges[index], edges[index + 1], name, evaluations[name]) for index, name in enumerate(names)]


def _of_images(
    workspace: Workspace,
    row: RunRow,
    loaded_model: CachedModel,
    request: _AtOneStep,
    loaded: dict[tuple, TaskData],
    stage: _Stage,
) -> dict[str, Evaluation]:
    from trainer.data.caption_choices import holds_choices
    from trainer.evaluation.benchmark import TASKS, Evaluation
    from trainer.evaluation.learned_pairs import LearnedPairs, learned_pairs
    from trainer.evaluation.task_data import load_choices, load_task_data
    from trainer.inference.word_model import word_model

    # Robustness without a text tower is that of the neighbors, which are sought among pairs to learn from.
    learned = {*PROBES, *(() if (loaded_model.opened.model.text is not None) else ("robustness",))}
    learn = bool(learned & set(request.tasks or CHEAP))

    run_config = workspace.runs.config_of(row.id)
    of_run = _is_own(request, run_config.data)
    trained = LearnedPairs()
    # What a run holds out it has not learned from, and a model that was opened has learned from none of them.
    if run_config.optimizer.epochs and not (of_run and not request.split and not request.shift):
        trained = learned_pairs(run_config.data, workspace.folder, stage)

    chosen_data = run_config.data if of_run else request.choice or request.data

    def reread(preprocessing: Preprocessing, split: str = "") -> TaskData:
        return load_task_data(
            chosen_data,
            image_size=loaded_model.opened.image_size,
            preprocessing=preprocessing,
            workspace_folder=workspace.folder,
            split=split or request.split or None,
            suite=request.suite or None,
            most=(request.most or OTHER_SPLIT) if split else request.most or None,
            learn=learn,
            progress=stage,
        )

    of_choices = bool("caption_choice" in request.tasks and request.data and not of_run) and holds_choices(
        expanded(request.data)
    )

    def load(data: Any) -> TaskData:
        if of_choices and data != request.shift:
            return load_choices(
                expanded(request.data),
                image_size=loaded_model.opened.image_size,
                preprocessing=loaded_model.opened.preprocessing,
                workspace_folder=workspace.folder,
                most=request.most or None,
                progress=stage,
            )
        seen = loaded_model.opened.image_size, loaded_model.opened.preprocessing
        heldout = bool(run_config.optimizer.epochs) and of_run and not request.split and data != request.shift
        key = (repr(data), *seen, learn, heldout, repr(run_config.data) if trained else "")
        if key not in loaded:
            loaded[key] = load_task_data(
                data,
                image_size=loaded_model.opened.image_size,
                preprocessing=loaded_model.opened.preprocessing,
                workspace_folder=workspace.folder,
                split=(request.split or None) if data != request.shift else None,
                suite=request.suite or None,
                most=request.most or None,
                most_train=request.most_train,
                learn=learn,
                learned=trained,
                of_run=heldout,
                progress=stage,
            )
        return loaded[key]

    stage.begin(0.0, 0.1, "reading the data")
    data = _worded(load(chosen_data), row, run_config, of_run, request)
    shift = load(request.shift) if request.shift else None
    if shift is not None and shift.suite is not None and data.suite is not None and not request.suite:
        # The same question on both: the classes of the second data set are asked with the first's sentences.
        shift = replace(shift, suite=replace(shift.suite, templates=data.suite.templates))
    reads_words = not request.tasks or "zero_shot" in request.tasks
    subject = _subject(loaded_model, word_model(workspace, row, loaded_model.opened, stage) if reads_words else None)
    evaluation = Evaluation(
        subject,
        data,
        shift=shift,
        features=request.features,
        reading=lambda: _reading(loaded_model, data, reread),
        progress=stage,
    )
    return dict.fromkeys(TASKS, evaluation)


def _reading(loaded_model: CachedModel, data: TaskData, reread: Callable[..., TaskData]) -> Reading:
    """Return how the images of the data are read again, and another split of the data.

    Raises:
        DataError: Read in another way, other images can be read.
    """
    from trainer.data import DataError
    from trainer.evaluation.protocol_factors import Reading

    published = loaded_model.opened.file_preprocessing

    def images(preprocessing: Preprocessing) -> np.ndarray:
        again = reread(preprocessing).tried
        if again.paths != data.tried.paths:
            raise DataError("The images of the data have changed while they were read. Evaluate again.")
        return again.images

    other = None
    for split in (name for name in ("test", "val", "validation", "train") if name not in data.split.split("-")):
        with contextlib.suppress(DataError):
            other = reread(published, split)
            break
    return Reading(published, images(published), images, other)


def _of_snapshot(
    workspace: Workspace,
    row: RunRow,
    loaded_model: CachedModel,
    request: _AtOneStep,
    _loaded: dict[tuple, TaskData],
    stage: _Stage,
) -> dict[str, Evaluation]:
    """Evaluate zero-shot and retrieval on all rows of the snapshot, probes on a part after training on the rest."""
    from trainer.charts.snapshots import choose_snapshot
    from trainer.evaluation.benchmark import TASKS, Stored
    from trainer.evaluation.task_data import snapshot_data
    from trainer.store import read_snapshot

    chosen = choose_snapshot(workspace, row, step=loaded_model.opened.step, split=request.split or None)
    snapshot = read_snapshot(chosen.folder)
    image, features = snapshot.image, snapshot.features
    if features is None and request.features:
        raise AnswerError(
            "bad_question",
            f"The snapshot of {row.short_name} at step {chosen.step:,} holds no features.",
            "Train with watching.features = true, or measure images: leave out --snapshot.",
        )
    suite = suite_of_facts(row.facts.get(ZERO_SHOT)) or _suite_of(workspace, row, snapshot.dataset, stage)
    every_pair, parts, tried, train = snapshot_data(snapshot, suite=request.suite or None, run_suite=suite)
    stage.begin(0.05, 0.1, "reading the snapshot")
    subject = _subject(loaded_model)
    every = Stored(subject, every_pair, image=image, text=snapshot.text, train=None, progress=stage)
    probed = Stored(
        subject,
        parts,
        image=None if image is None else image[tried],
        text=None,
        train=None if image is None else image[train],
        features=None if features is None else (features[tried], features[train]),
        progress=stage,
    )
    return {task: probed if task in PROBES else every for task in TASKS}


def _of_shards(
    workspace: Workspace,
    row: RunRow,
    loaded_model: CachedModel,
    request: _AtOneStep,
    _loaded: dict[tuple, TaskData],
    stage: _Stage,
) -> dict[str, Evaluation]:
    """Evaluate embeddings that were made elsewhere; prompts are embedded here."""
    from trainer.data.prepared import digests_of
    from trainer.evaluation.benchmark import TASKS, Stored
    from trainer.evaluation.embed_set import task_data_of
    from trainer.evaluation.learned_pairs import learned_pairs

    assert request.shards is not None
    run_config, opened = workspace.runs.config_of(row.id), loaded_model.opened
    of_run = _is_own(request, run_config.data)
    digests: set[str] = set()
    if run_config.optimizer.epochs and not (of_run and not request.split):
        # Where the pictures lie there says nothing here: those that the run has learned are known by their pixels.
        sources = learned_pairs(run_config.data, workspace.folder, stage).sources
        cache, size, reads = workspace.folder / "cache", opened.image_size, opened.preprocessing
        digests = {digest.hex()[:16] for digest in digests_of(sources, size=size, cache=cache, preprocessing=reads)}
    stage.begin(0.05, 0.1, "reading the embeddings")
    data, embedded = task_data_of(request.shards, learned=digests, named=bool(request.split))
    data = _worded(data, row, run_config, of_run, request)
    stored = Stored(_subject(loaded_model), data, **embedded, progress=stage)
    return dict.fromkeys(TASKS, stored)


def _suite_of(workspace: Workspace, row: RunRow, dataset: str, stage: _Stage) -> PromptSuite | None:
    """Return the zero-shot suite of all classes of the run's data; None if the data no longer exist."""
    from trainer.data import DataError
    from trainer.data.dataset_index import listing

    try:
        listed = listing(workspace.runs.config_of(row.id).data, workspace.folder, stage, drawn=())
    except DataError:
        return None
    return listed.suite if listed.name == dataset else None


def _worded(data: TaskData, row: RunRow, run_config: config.Run, of_run: bool, request: _AtOneStep) -> TaskData:
    """Return the data with the question that the run was asked in training, or its classes in the run's sentence.

    Its own data are asked the stored question, so that all numbers are of one. Other data without prompts of their own
    are asked in the sentence of the captions of classes that the run learned.
    """
    if request.suite or data.suite is None:
        return data
    stored = suite_of_facts(row.facts.get(ZERO_SHOT))
    if of_run and stored is not None and {*data.tried.labels} - {""} <= {*stored.classes}:
        return replace(data, suite=stored)
    if of_run or data.suite.worded == "prompts" or stored is None or stored.worded != "captions":
        return data
    return replace(data, suite=replace(data.suite, templates=stored.templates, worded="captions"))


def _subject(loaded_model: CachedModel, namer: BagOfWords | CaptionPrediction | None = None) -> Subject:
    from trainer.evaluation.benchmark import Subject

    opened = loaded_model.opened
    inv_tau = float(loaded_model.inv_tau) if loaded_model.method is not None else float("nan")
    towers = opened.model, opened.tokenizer, opened.context_length, opened.device
    return Subject(*towers, inv_tau, namer, loaded_model.logit_bias)
