"""Zero-shot classification: class weights from prompts, and their accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.tiles import exact, row_blocks
from trainer.analysis.unit_rows import normalized


def class_weights(prompts: Float[np.ndarray, "c t d"]) -> Float[np.ndarray, "c d"]:
    """Return the normalized mean of each class's prompt embeddings, one prompt per template.

    The prompts are brought to unit length first, as in CLIP's and CLOOB's evaluation (Radford et al., 2021, 3.1.4,
    https://arxiv.org/abs/2103.00020). A class whose prompts cancel out keeps the weight zero.
    """
    prompts = np.asarray(prompts, dtype=np.result_type(prompts.dtype, np.float32))
    return normalized(normalized(prompts).mean(1))


def grouped(prompts: Float[np.ndarray, "p d"], counts: Sequence[int]) -> Float[np.ndarray, "c t d"]:
    """Return the unit embeddings of prompts, class after class, by class: their mean where classes have unequal counts.

    `class_weights` is the same of both. A class without prompts keeps zeros.
    """
    if len({*counts}) == 1:
        return prompts.reshape(len(counts), counts[0], -1)
    parts = np.split(prompts, np.cumsum(counts)[:-1])
    return np.stack([part.mean(0, keepdims=True) if len(part) else np.zeros_like(prompts[:1]) for part in parts])


def class_ranks(
    image: Float[np.ndarray, "n d"], weights: Float[np.ndarray, "c d"], label: Int[np.ndarray, " n"]
) -> Int[np.ndarray, " n"]:
    """Return the rank (1 = best) of each image's own class among all classes; ties count against it."""
    weights = exact(weights)
    ranks = np.empty(len(image), dtype=np.int64)
    for rows in row_blocks(len(image), len(weights)):
        cosines = exact(image[rows]) @ weights.T
        label_cosine = cosines[np.arange(len(cosines)), label[rows]]
        ranks[rows] = (~(cosines < label_cosine[:, None])).sum(1)
    return ranks


def predict(image: Float[np.ndarray, "n d"], weights: Float[np.ndarray, "c d"]) -> Int[np.ndarray, " n"]:
    """Return the index of each image's nearest class."""
    weights = exact(weights)
    nearest = np.empty(len(image), dtype=np.int64)
    for rows in row_blocks(len(image), len(weights)):
        nearest[rows] = np.argmax(exact(image[rows]) @ weights.T, axis=1)
    return nearest


def confusion(
    predicted: Int[np.ndarray, " n"], label: Int[np.ndarray, " n"], *, classes: int
) -> Int[np.ndarray, "c c"]:
    """Return how many images of class r (row) were classified as class s (column)."""
    return np.bincount(label * classes + predicted, minlength=classes * classes).reshape(classes, classes)
