"""Predict the labels of images with several runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from trainer.analysis.progress import Progress
from trainer.inference.embed import embed_files
from trainer.inference.model_cache import AnswerError, OpenModels


def predict(
    models: OpenModels,
    *,
    runs: Sequence[int],
    images: Sequence[str],
    labels: Sequence[str],
    templates: Sequence[str],
    step: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return the response to `trainer.messages.Classify`, with `softmax(inv_tau * cosine)` over the labels.

    `inv_tau` is the run's own, learned or fixed. `milliseconds` is what the run needed for all images together:
    its text side if new, reading and embedding the images, and comparing; not opening the model.

    Raises:
        AnswerError: No run, label or template, a template without `{}`, or as `OpenModels.get`.
    """
    _check(runs, labels, templates)
    answers: dict[str, dict[str, Any]] = {}
    read: tuple[str, ...] = ()
    unreadable: dict[str, str] = {}
    for place, run in enumerate(runs):

        def report(share: float, note: str, place: int = place) -> None:
            if progress:
                progress((place + share) / len(runs), note)

        kept = models.get(run, step)
        report(0.0, "reading")
        started = time.perf_counter()
        weights = kept.class_weights(labels, templates, report)
        embedded = embed_files(kept.opened, images, report)
        cosines = embedded.vectors @ weights.T if len(embedded.images) else np.zeros((0, len(labels)), np.float32)
        probabilities = softmax(kept.inv_tau * cosines)
        answers[str(run)] = {
            "step": kept.opened.step,
            "milliseconds": round(1000 * (time.perf_counter() - started), 2),
            "inv_tau": kept.inv_tau,
            "probabilities": probabilities.tolist(),
            "cosines": cosines.tolist(),
        }
        read, unreadable = embedded.images, embedded.unreadable
    return {"runs": answers, "images": list(read), "unreadable": unreadable}


def softmax(logits: Float[np.ndarray, "n labels"]) -> Float[np.ndarray, "n labels"]:
    """Return rows that sum to 1, computed in float64 and without overflow."""
    logits = logits.astype(np.float64)
    if not logits.size:
        return logits
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def _check(runs: Sequence[int], labels: Sequence[str], templates: Sequence[str]) -> None:
    if not runs:
        raise AnswerError("bad_question", "No run was given.", "Choose at least one.")
    if not labels:
        raise AnswerError("bad_question", "There is no label to choose from.", "Write at least one.")
    if not templates:
        raise AnswerError("bad_question", "There is no template.", "Write one such as: a photo of a {}.")
    for template in templates:
        if "{}" not in template:
            raise AnswerError(
                "bad_question", f"The template {template!r} has no {{}}.", "Write {} where the label belongs."
            )
