"""The effect of prompt templates on zero-shot classification: each alone, and all as an ensemble."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.progress import Progress, silent
from trainer.analysis.unit_rows import normalized
from trainer.analysis.zero_shot import predict


def ensemble(texts: Float[np.ndarray, "t c d"], weights: Float[np.ndarray, " t"] | None = None) -> np.ndarray:
    """Return class vectors (c x d): the normalized weighted mean of each class's unit prompt embeddings.

    Args:
        texts: Embedding of every class in every template.
        weights: One a template, not negative; None: all alike, as in CLIP's evaluation (Radford et al., 2021, 3.1.4).

    Raises:
        ValueError: Weights of another number than the templates, a negative one, or none above zero.
    """
    texts = np.asarray(texts, np.float64)
    weights = np.ones(len(texts)) if weights is None else np.asarray(weights, np.float64)
    if weights.shape != (len(texts),) or not np.all(np.isfinite(weights)) or weights.min() < 0 or weights.sum() <= 0:
        raise ValueError("weights must be one per template, non-negative, and at least one positive")
    return normalized(np.einsum("t,tcd->cd", weights / weights.sum(), normalized(texts)))


def accuracy_by_class(
    predicted: Int[np.ndarray, " n"], label: Int[np.ndarray, " n"], classes: int
) -> Float[np.ndarray, " c"]:
    """Return the recall of each class in [0, 1]; NaN for a class without images."""
    with np.errstate(invalid="ignore"):
        right = np.bincount(label[predicted == label], minlength=classes)
        return right / np.bincount(label, minlength=classes)


def template_accuracy(
    image: Float[np.ndarray, "n d"],
    texts: Float[np.ndarray, "t c d"],
    label: Int[np.ndarray, " n"],
    progress: Progress = silent,
) -> Float[np.ndarray, "t c"]:
    """Return `accuracy_by_class` for each template alone (unit class vectors), one row per template; tiled."""
    rows = np.empty((len(texts), texts.shape[1]))
    for index, vectors in enumerate(texts):
        rows[index] = accuracy_by_class(predict(image, normalized(vectors)), label, texts.shape[1])
        progress((index + 1) / len(texts), "comparing templates")
    return rows
