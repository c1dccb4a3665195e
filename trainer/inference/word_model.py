"""The words that a run has learned: what names classes in runs that predict words or captions, and vectors of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from trainer import data, methods
from trainer.checkpoints import checkpoint
from trainer.inference.model_cache import AnswerError

if TYPE_CHECKING:
    from trainer.analysis.progress import Progress
    from trainer.inference.open_model import OpenModel
    from trainer.store import RunRow, Workspace


def word_model(
    workspace: Workspace, run_row: RunRow, opened: OpenModel, progress: Progress
) -> methods.BagOfWords | methods.CaptionPrediction | None:
    """Return what a run that predicts words or captions learned of words, with the vocabulary of its data; else None.

    Raises:
        AnswerError: The captions it was trained on have changed, so that its words cannot be told any more.
    """
    run = workspace.runs.config_of(run_row.id)
    if not run.objective.predicts_texts:
        return None
    splits = data.load(
        run.data,
        image_size=opened.image_size,
        preprocessing=opened.preprocessing,
        workspace_folder=workspace.folder,
        progress=progress,
    )
    method = methods.build(run.objective, methods.Material(run, splits.train, opened.tokenizer, opened.model))
    loaded = checkpoint.load(run_row.folder / "checkpoints" / f"step_{opened.step:06d}", training=False)
    try:
        checkpoint.load_weights(loaded, {"method": method})
    except checkpoint.CheckpointError as error:
        raise AnswerError(
            "unreadable",
            f"The words that {run_row.name} learned are unknown: the captions of {splits.train.name} have changed.",
            "Evaluate it on other tasks, or train it again.",
        ) from error
    assert isinstance(method, methods.BagOfWords | methods.CaptionPrediction)
    return method.to(opened.device).eval()


def word_vectors(
    workspace: Workspace, run_row: RunRow, opened: OpenModel, vocabulary: Sequence[str], progress: Progress
) -> Float[np.ndarray, "w d"] | None:
    """Return each word's column of the output matrix of a bag of words, of length 1; None for other runs.

    Words outside of the vocabulary have a row of zeros.

    Raises:
        AnswerError: As `word_model`.
    """
    method = word_model(workspace, run_row, opened, progress)
    if not isinstance(method, methods.BagOfWords):
        return None
    columns = method.scores.weight.detach().cpu().double().numpy()
    indices = {word: number for number, word in enumerate(method.words)}
    vectors = np.stack(
        [columns[indices[word]] if word in indices else np.zeros(columns.shape[1]) for word in vocabulary]
    )
    return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)).astype(np.float32)
