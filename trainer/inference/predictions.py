"""Predict the labels of images with several runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from trainer.analysis.calibration import probabilities
from trainer.analysis.progress import Progress, silent
from trainer.inference.class_embeddings import check_templates
from trainer.inference.embed import embed_files
from trainer.inference.model_cache import AnswerError, ModelCache
from trainer.messages import Classify, ClassifyAnswer, RunPrediction, Shares


def predict(models: ModelCache, question: Classify, progress: Progress = silent) -> ClassifyAnswer:
    """Return the answer to the question.

    The shares of labels are `softmax(inv_tau * cosine)`, or of SigLIP `sigmoid(inv_tau * cosine + bias)`. A softmax
    over a single label is 1 whatever the image shows, so that it has no share. `inv_tau` is the run's own, learned or
    fixed.

    Raises:
        AnswerError: No run, label or template, a template without `{}`, or as `ModelCache.get`.
    """
    runs, labels, templates = question.runs, question.labels, question.templates
    _check(runs, labels, templates)
    answers: dict[int, RunPrediction] = {}
    read: tuple[str, ...] = ()
    unreadable: dict[str, str] = {}
    for index, run_id in enumerate(runs):

        def report(share: float, note: str, index: int = index) -> None:
            progress((index + share) / len(runs), note)

        model = models.get(run_id, question.step)
        report(0.0, "reading")
        weights = model.class_weights(labels, templates, report)
        embedded = embed_files(model.opened, question.images, report)
        cosines = embedded.vectors @ weights.T if len(embedded.images) else np.zeros((0, len(labels)), np.float32)
        kind, shares = _shares(cosines, model.inv_tau, model.logit_bias)
        answers[run_id] = RunPrediction(
            step=model.opened.step,
            inv_tau=model.inv_tau,
            bias=model.logit_bias,
            shares=kind,
            probabilities=None if kind == "none" else shares.tolist(),
            cosines=cosines.tolist(),
        )
        read, unreadable = embedded.images, embedded.unreadable
    return ClassifyAnswer(runs=answers, images=tuple(read), unreadable=unreadable)


def _shares(cosines: Float[np.ndarray, "n labels"], inv_tau: float, bias: float | None) -> tuple[Shares, np.ndarray]:
    """Return what the shares of labels are, and the shares; NaN where one label of a softmax has none."""
    if bias is not None:
        return "sigmoid", probabilities(cosines, inv_tau, bias / inv_tau)
    if cosines.shape[1] == 1:
        return "none", np.full(cosines.shape, np.nan)
    return "softmax", probabilities(cosines, inv_tau)


def _check(runs: Sequence[int], labels: Sequence[str], templates: Sequence[str]) -> None:
    if not runs:
        raise AnswerError("bad_question", "No run was given.", "Choose at least one.")
    if not labels:
        raise AnswerError("bad_question", "There is no label to choose from.", "Write at least one.")
    check_templates(templates)
