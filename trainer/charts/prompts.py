"""What each prompt template does to each class, and what an ensemble of them makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.progress import Progress
from trainer.analysis.prompts import accuracy_by_class, ensemble, template_accuracy
from trainer.analysis.zero_shot import confusion, predict
from trainer.charts import ChartError
from trainer.charts.class_task import ClassTexts, class_task
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace
from trainer.store.snapshot_files import read_snapshot


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """A classifier made of the templates.

    Attributes:
        by_class: Share of each class's images taken for it; NaN where a class has no image.
        accuracy: Share of all images that are right.
        predicted: Place of the class each image is taken for.
        confusion: Images of class r (row) taken for class s (column).
    """

    by_class: Float[np.ndarray, " c"]
    accuracy: float
    predicted: Int[np.ndarray, " n"]
    confusion: Int[np.ndarray, "c c"]


@dataclass(frozen=True, kw_only=True)
class PromptRun(SnapshotLabel):
    """One run's zero-shot accuracy, template by template.

    Attributes:
        index: Place of the run among those asked for; decides its color.
        n: Images classified; `labeled` of the snapshot's `pairs` have one of the classes.
        column: Of the items, that says an image's class.
        rows: Of the snapshot, that were classified.
        paths: Image file of each of them.
        image: Their embeddings.
        texts: Class vectors of every template.
        accuracy: Share of each class's images (column) right with each template alone (row).
        overall: Share of all images right with each template alone.
        mean: The ensemble of all templates, weighed alike.
    """

    index: int
    n: int
    labeled: int
    pairs: int
    column: str
    rows: Int[np.ndarray, " n"]
    paths: tuple[str, ...]
    truth: Int[np.ndarray, " n"]
    image: Float[np.ndarray, "n d"]
    texts: Float[np.ndarray, "t c d"]
    accuracy: Float[np.ndarray, "t c"]
    overall: Float[np.ndarray, " t"]
    mean: Mixture

    @property
    def difference(self) -> Float[np.ndarray, "t c"]:
        """Accuracy of each template alone minus that of the mean ensemble: negative where it hurts a class."""
        return self.accuracy - self.mean.by_class


@dataclass(frozen=True)
class PromptChart:
    """All runs on the same classes and templates; `weighted` is what the weights make of each run."""

    labels: tuple[str, ...]
    templates: tuple[str, ...]
    weights: tuple[float, ...]
    runs: tuple[PromptRun, ...]
    weighted: tuple[Mixture, ...]


def prompts(
    workspace: Workspace,
    texts: Sequence[ClassTexts],
    *,
    weights: Sequence[float] = (),
    dataset: str | None = None,
    split: str | None = None,
    progress: Progress | None = None,
) -> PromptChart:
    """Each template alone and all together, for the runs whose class vectors are given.

    Args:
        workspace: Where the runs are.
        texts: Class vectors of each run, A first.
        weights: One a template; none: all alike.
        dataset: Of the snapshots; None takes the run's first.
        split: Of the snapshots; None takes the held-out split that is drawn like the training pairs.
        progress: Told how far it is; may raise to cancel.

    Raises:
        ChartError: No such snapshot, no images, no labeled image, or weights that cannot be used.
    """
    templates = texts[0].templates
    weights = tuple(weights) or (1.0,) * len(templates)
    if len(weights) != len(templates):
        raise ChartError(f"There are {len(templates)} templates and {len(weights)} weights: give one a template.")
    runs = tuple(_run(workspace, index, one, dataset, split, progress) for index, one in enumerate(texts))
    return PromptChart(texts[0].labels, templates, weights, runs, tuple(mixture(run, weights) for run in runs))


def mixture(run: PromptRun, weights: Sequence[float]) -> Mixture:
    """The ensemble of the run's templates with these weights.

    Raises:
        ChartError: A weight is negative or no number, or none is above zero.
    """
    return _mixture(run.image, run.texts, run.truth, weights)


def _run(
    workspace: Workspace,
    index: int,
    texts: ClassTexts,
    dataset: str | None,
    split: str | None,
    progress: Progress | None,
) -> PromptRun:
    row = workspace.runs.get(texts.run)
    chosen = choose_snapshot(workspace, row, step=texts.step, dataset=dataset, split=split)
    snapshot = read_snapshot(chosen.folder)
    task = class_task(snapshot, texts.labels, templates=len(texts.templates))
    image = np.asarray(snapshot.image[task.rows], np.float32)
    accuracy = template_accuracy(image, texts.vectors, task.truth, progress)
    shares = np.bincount(task.truth, minlength=len(texts.labels)) / len(task.truth)
    return PromptRun(
        index=index,
        **shown(row, chosen),
        n=len(task.rows),
        labeled=task.labeled,
        pairs=task.of,
        column=task.column,
        rows=task.rows,
        paths=tuple(snapshot.items.path[place] for place in task.rows.tolist()),
        truth=task.truth,
        image=image,
        texts=texts.vectors,
        accuracy=accuracy,
        overall=np.nan_to_num(accuracy) @ shares,
        mean=_mixture(image, texts.vectors, task.truth, None),
    )


def _mixture(image: np.ndarray, texts: np.ndarray, truth: np.ndarray, weights: Sequence[float] | None) -> Mixture:
    try:
        vectors = ensemble(texts, None if weights is None else np.asarray(weights, np.float64)).astype(np.float32)
    except ValueError as error:
        raise ChartError(f"These weights make no ensemble: {error}.") from error
    predicted, classes = predict(image, vectors), texts.shape[1]
    return Mixture(
        by_class=accuracy_by_class(predicted, truth, classes),
        accuracy=float(np.mean(predicted == truth)),
        predicted=predicted,
        confusion=confusion(predicted, truth, classes=classes),
    )
