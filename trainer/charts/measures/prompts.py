"""The zero-shot accuracy of a run by prompt template and by their ensembles: what `prompts` draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.progress import Progress, silent
from trainer.analysis.prompts import accuracy_by_class, ensemble, template_accuracy
from trainer.analysis.zero_shot import confusion, predict
from trainer.charts import ChartError
from trainer.charts.class_task import ClassTexts, ZeroShotRun, open_task
from trainer.store import Workspace


class Mixture(Struct, frozen=True, kw_only=True):
    """A classifier made of the templates."""

    by_class: Float[np.ndarray, " c"]  # Share of each class's images taken for it; NaN where a class has no image.
    accuracy: float  # Share of all images that are right.
    predicted: Int[np.ndarray, " n"]  # Place of the class each image is taken for.
    confusion: Int[np.ndarray, "c c"]  # Images of class r (row) taken for class s (column).


@dataclass(frozen=True, kw_only=True)
class PromptRun(ZeroShotRun):
    """One run's zero-shot accuracy by template."""

    rows: Int[np.ndarray, " n"]  # Of the snapshot, that were classified.
    paths: tuple[str, ...]  # Image file of each of them.
    image: Float[np.ndarray, "n d"]
    texts: Float[np.ndarray, "t c d"]  # Class vectors of every template.
    accuracy: Float[np.ndarray, "t c"]  # Share of each class's images (column) right with each template alone (row).
    overall: Float[np.ndarray, " t"]  # Share of all images right with each template alone.
    mean: Mixture  # The ensemble of all templates, weighed alike.

    @property
    def difference(self) -> Float[np.ndarray, "t c"]:
        """Each template's accuracy minus that of the mean ensemble: negative where it is worse."""
        return self.accuracy - self.mean.by_class


def mixture(run: PromptRun, weights: Sequence[float]) -> Mixture:
    """Return the ensemble of the run's templates with these weights.

    Raises:
        ChartError: A weight is negative or no number, none is above zero, or there is not one a template.
    """
    if len(weights) != len(run.templates):
        raise ChartError(f"There are {len(run.templates)} templates and {len(weights)} weights: give one per template.")
    return _mixture(run.image, run.texts, run.truth, weights)


def prompts(
    workspace: Workspace,
    texts: ClassTexts,
    *,
    index: int = 0,
    dataset: str | None = None,
    split: str | None = None,
    progress: Progress = silent,
) -> PromptRun:
    """Return each template alone and the ensemble, for the run with these class vectors.

    Args:
        texts: Its class vectors.
        index: Place of the run among those shown.
        dataset: Of the snapshot; None takes the run's first.
        split: Of the snapshot; None takes the held-out split that is drawn like the training pairs.

    Raises:
        ChartError: No such snapshot, no images, or no labeled image.
    """
    where: dict[str, Any] = {"index": index, "dataset": dataset, "split": split, "templates": len(texts.templates)}
    fields, snapshot, image, rows = open_task(workspace, texts, **where)
    image, truth = np.asarray(image, np.float32), fields["truth"]
    accuracy = template_accuracy(image, texts.vectors, truth, progress)
    shares = np.bincount(truth, minlength=len(texts.labels)) / len(truth)
    return PromptRun(
        **fields,
        rows=rows,
        paths=tuple(snapshot.items.path[row] for row in rows.tolist()),
        image=image,
        texts=texts.vectors,
        accuracy=accuracy,
        overall=np.nan_to_num(accuracy) @ shares,
        mean=_mixture(image, texts.vectors, truth, None),
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
