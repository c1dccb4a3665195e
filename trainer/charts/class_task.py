"""Zero-shot classification of a snapshot's images: the images with a class, and the class names as vectors."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer import config, prompt_suites
from trainer.analysis.class_prompts import PLAIN_TEMPLATE, caption_labels, named_in_captions
from trainer.analysis.distinct import in_order
from trainer.analysis.sampling import at_most
from trainer.analysis.units import Units
from trainer.charts import BOTH, ChartError
from trainer.charts.matching import units_of
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Request, Target
from trainer.config.fields import option
from trainer.prompt_suites import PromptSuite
from trainer.store import Items, Workspace, write_atomically
from trainer.store.caption_words import read_caption_words
from trainer.store.files import write_text
from trainer.store.snapshot_files import Snapshot, read_snapshot
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded.arrays import load_npy

NAME_LABELS: Final = "Name some: --labels cat dog"
"""What a command that lacks labels is told; the window says where to choose them."""
MOST_CLASSES: Final = 1_000
"""A column with more different values is a caption, not a class."""

MOST_WORK: Final = 2e11
"""Multiplications at most for images x classes x templates x dimensions, some ten seconds; beyond, images are drawn."""


class NoClassesError(ChartError):
    """The data have no two classes, so that no labels can help."""


@dataclass(frozen=True)
class ClassTexts:
    """Class names in templates, embedded by a run at a step."""

    run: int
    step: int
    inv_tau: float  # The run's own inverse temperature at that step.
    labels: tuple[str, ...]
    templates: tuple[str, ...]
    vectors: Float[np.ndarray, "t c d"]  # Unit embedding of class c in template t.
    bias: float | None = None  # Of a SigLIP run's logits; None for those of a softmax.

    @property
    def offset(self) -> float | None:
        """The bias over the inverse temperature, as `trainer.analysis.calibration.probabilities` takes it."""
        return None if self.bias is None else self.bias / self.inv_tau


@dataclass(frozen=True)
class ClassWords:
    """Settings of a chart about classes; the default classes fit the data of the first run."""

    suite: str = option("", "Suite", "Labels and templates that come with the application.", control=False)
    labels: tuple[str, ...] = option((), "Labels", "Classes, as the data spells them.", control=False)
    templates: tuple[str, ...] = option((), "Templates", "Sentences with {} for the label.", control=False)


def texts_of(request: Request, target: Target) -> ClassTexts:
    """Return the classes as embedded by the target's model.

    Raises:
        ChartError: Nobody has asked it, or the file is gone.
    """
    if len(request.class_texts) != len(request.targets):
        raise ChartError("The classes are not embedded yet: each run's model embeds them first.")
    return read_class_texts(Path(request.class_texts[request.targets.index(target)]))


class ClassTask(Struct, frozen=True):
    """The images of a snapshot whose class is among the requested ones."""

    rows: Int[np.ndarray, " n"]  # Of the snapshot, ascending.
    truth: Int[np.ndarray, " n"]  # Place of each row's class among the labels.
    column: str  # Column of the items that says the class; `label`, or the name of a metadata column.
    labeled: int  # Rows (distinct pictures) with a class, before any were drawn.
    of: int  # Rows (distinct pictures) of the snapshot.

    @property
    def sampled(self) -> bool:
        """Whether only some of the labeled rows are used."""
        return len(self.rows) < self.labeled


def class_task(
    snapshot: Snapshot, labels: Sequence[str], *, templates: int = 1, units: Units | None = None
) -> ClassTask:
    """Return the rows of a snapshot whose class is one of `labels`; with `units` of each picture one for a class.

    The class is read from the column (label first, then metadata) in which most rows have one of the labels. A label
    may begin with words that the data leaves out, `on grass` for `grass`.

    Raises:
        NoClassesError: No row has any of the labels, and the data have no two classes.
        ChartError: The snapshot has no images, or no row has any of the labels.
    """
    if snapshot.image is None:
        raise ChartError(f"Run {snapshot.model} embeds no images, so there is nothing to classify. {BOTH}")
    class_of = _places(labels)
    column, truth = max(
        ((name, np.array([class_of.get(value, -1) for value in values])) for name, values in columns(snapshot.items)),
        key=lambda column_truth: int(np.sum(column_truth[1] >= 0)),
    )
    rows = np.flatnonzero(truth >= 0)
    if not len(rows):
        if len({*columns(snapshot.items)[0][1]} - {""}) < 2:
            raise NoClassesError(prompt_suites.lacks_classes())
        raise ChartError(
            f"None of the labels is a class of {snapshot.dataset}-{snapshot.split}: {', '.join(labels[:4])}. "
            "Choose the suite of this data, or write the class names as the data spells them."
        )
    if units is not None:
        rows = rows[in_order(units.picture[rows] * len(labels) + truth[rows])[1]]
    labeled, most = len(rows), max(1, int(MOST_WORK / (max(templates, 1) * len(labels) * snapshot.d)))
    rows = at_most(rows, most)
    return ClassTask(rows, truth[rows], column, labeled, snapshot.n if units is None else units.count("picture"))


def _places(labels: Sequence[str]) -> dict[str, int]:
    """Return the index of each label by name, and by each ending of the name that no other label shares."""
    ends: dict[str, set[int]] = {}
    for index, label in enumerate(labels):
        parts = label.split(" ")
        for first in range(1, len(parts)):
            ends.setdefault(" ".join(parts[first:]), set()).add(index)
    unique_ends = {end: min(indices) for end, indices in ends.items() if len(indices) == 1}
    return unique_ends | {label: index for index, label in enumerate(labels)}


def columns(items: Items) -> list[tuple[str, list[str]]]:
    """Return the text columns of the items: label, then metadata."""
    texts = [(name, values) for name, values in items.metadata.items() if values and isinstance(values[0], str)]
    return [("label", list(items.label)), *texts]


def class_words(
    workspace: Workspace,
    run: int | str,
    *,
    suite: str | None = None,
    labels: Sequence[str] | None = None,
    templates: Sequence[str] | None = None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return unique labels and templates: as given, from the suite, else those of the run's own question.

    Raises:
        NoClassesError: The run's data has no two classes.
        ChartError: No such suite, or the run's data has too many classes.
    """
    suites = prompt_suites.prompt_suites()
    if suite is not None and suite not in suites:
        raise ChartError(f"There is no suite {suite!r}; choose one of {', '.join(suites)}.")
    question = suites[suite] if suite is not None else run_suite(workspace, run)
    if not labels:
        of = f"The data of run {workspace.runs.get(run).short_name}"
        if question is None:
            raise NoClassesError(prompt_suites.lacks_classes(of))
        if many := too_many_classes(question):
            raise ChartError(f"{of} has {many}. {NAME_LABELS}.")
        labels = question.classes
    return tuple(dict.fromkeys(labels)), tuple(dict.fromkeys(templates or templates_for(question, labels)))


def too_many_classes(question: PromptSuite) -> str:
    """Return how many classes a question has, if that is more than can be classified; else nothing."""
    count = len(question.classes)
    return f"{count:,} classes; {MOST_CLASSES:,} at most can be classified" if count > MOST_CLASSES else ""


def templates_for(question: PromptSuite | None, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the sentences for labels: the question's where they are its classes or it words classes, else the plain.

    Prompts that were written for some classes, `a photo of a {}, a type of flower`, fit no others.
    """
    fits = question is not None and (question.worded == "captions" or {*labels} <= {*question.classes})
    return question.templates if question is not None and fits else (PLAIN_TEMPLATE,)


def run_suite(workspace: Workspace, run: int | str) -> PromptSuite | None:
    """Return the zero-shot question of a run: the one stored when it was trained, which its curves answer.

    Of a run that has stored none, it is made of its largest snapshot in the same way. None where the data have no two
    classes.
    """
    row = workspace.runs.get(run)
    if prompt_suites.ZERO_SHOT in row.facts:
        return prompt_suites.suite_of_facts(row.facts[prompt_suites.ZERO_SHOT])
    data = workspace.runs.config_of(row.id).data
    if data.is_drawn:
        return prompt_suites.prompt_suites()[data.kind]
    if (items := _largest_items(workspace, row.id)) is None:
        return None
    stated = getattr(data, "template", "")
    return prompt_suites.learned_suite(config.data_name(data), items.caption, items.label, stated=stated)


def choice_suite(workspace: Workspace, run: int | str) -> PromptSuite | None:
    """Return what a run chooses from by itself: its question, else labels from the captions of its data.

    The labels of captions are those of `named_in_captions`, asked in their sentence, else those of `caption_labels`,
    asked as they stand. None where the data have no captions.
    """
    if (suite := run_suite(workspace, run)) is not None:
        return suite
    row = workspace.runs.get(run)
    items, training = _largest_items(workspace, row.id), read_caption_words(row.folder)
    captions = () if items is None else items.caption
    labels, templates = named_in_captions(captions)
    if not labels:
        labels, templates = caption_labels(captions, training.counts if training else None), ("{}",)
    name = config.data_name(workspace.runs.config_of(row.id).data)
    return PromptSuite(name, labels, templates, "captions of the run's data", "", worded="captions") if labels else None


def texts_of_pictures(workspace: Workspace, run: int, paths: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return path -> class and caption of those files that are pictures of a run's snapshots.

    A picture with several of them has none here: which is meant is not known.
    """
    texts: dict[str, tuple[str, str]] = {}
    newest = {(row.dataset, row.split): row for row in workspace.results.snapshots(run)}
    for row in newest.values() if paths else ():
        items = read_snapshot(row.folder).items
        for path, label, caption in zip(items.path, items.label, items.caption, strict=True):
            if path in paths:
                other_label, other_caption = texts.get(path, (label, caption))
                texts[path] = (label if label == other_label else "", caption if caption == other_caption else "")
    return texts


def _largest_items(workspace: Workspace, run: int) -> Items | None:
    """Return the items of the run's largest snapshot, which has the most classes; None without one."""
    snapshots = workspace.results.snapshots(run)
    largest = max(snapshots, key=lambda snapshot: (snapshot.n, snapshot.step), default=None)
    return None if largest is None else read_snapshot(largest.folder).items


@dataclass(frozen=True, kw_only=True)
class ZeroShotRun(SnapshotLabel):
    """One run's snapshot as images of classes."""

    labels: tuple[str, ...]
    templates: tuple[str, ...]  # What they are worded with.
    index: int  # Place of the run among those asked for; decides its color.
    n: int  # Images classified; `labeled` of the snapshot's `pairs` have one of the classes.
    labeled: int
    pairs: int
    column: str  # Of the items, that says an image's class.
    truth: Int[np.ndarray, " n"]  # Place of each image's class.


def open_task(
    workspace: Workspace,
    texts: ClassTexts,
    *,
    index: int = 0,
    dataset: str | None = None,
    split: str | None = None,
    templates: int = 1,
) -> tuple[dict[str, Any], Snapshot, Float[np.ndarray, "n d"], Int[np.ndarray, " n"]]:
    """Return the fields of a `ZeroShotRun`, the snapshot of the texts' step, its images with a class, and their rows.

    Raises:
        ChartError: No such snapshot, no images, or no labeled image.
    """
    run = workspace.runs.get(texts.run)
    chosen = choose_snapshot(workspace, run, step=texts.step, dataset=dataset, split=split)
    snapshot = read_snapshot(chosen.folder)
    units = units_of(snapshot)
    task = class_task(snapshot, texts.labels, templates=templates, units=units)
    assert snapshot.image is not None, "class_task says if there are none"
    fields = {"labels": texts.labels, "templates": texts.templates, "index": index, **shown(run, chosen, units)}
    fields |= {"n": len(task.rows), "labeled": task.labeled, "pairs": task.of, "column": task.column}
    return fields | {"truth": task.truth}, snapshot, snapshot.image[task.rows], task.rows


def write_class_texts(file: Path, texts: ClassTexts) -> None:
    """Write `texts` as an array `file` and a description next to it, for `read_class_texts`."""
    about = {name: getattr(texts, name) for name in ("run", "step", "inv_tau", "labels", "templates", "bias")}
    vectors = np.asarray(texts.vectors, np.float32)
    write_text(file.with_suffix(".json"), json.dumps(about))
    write_atomically(file, lambda draft: np.save(draft, vectors, allow_pickle=False), private=True)


def read_class_texts(file: Path) -> ClassTexts:
    """Read the output of `write_class_texts`.

    Raises:
        ChartError: The files are gone or damaged.
    """
    try:
        about = untrusted_files.read_record(file.with_suffix(".json"))
        about |= {name: tuple(about[name]) for name in ("labels", "templates")}
        texts = ClassTexts(**about, vectors=load_npy(file))
        if texts.vectors.shape[:2] != (len(texts.templates), len(texts.labels)):
            raise ValueError(f"the array is {texts.vectors.shape}")
        return texts
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ChartError(
            f"The class vectors {file.name} cannot be used: {error}. Recompute the predictions."
        ) from error
