"""Zero-shot classification: class weights from prompts, and how often they are right."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.tiles import exact, row_blocks


def class_weights(prompts: Float[np.ndarray, "c t d"]) -> Float[np.ndarray, "c d"]:
    """Unit mean of each class's prompt embeddings, one prompt a template.

    The prompts are brought to unit length first, as in CLIP's and CLOOB's evaluation (Radford et al., 2021, 3.1.4,
    https://arxiv.org/abs/2103.00020). A class whose prompts cancel out keeps the weight zero.
    """
    prompts = np.asarray(prompts, dtype=np.result_type(prompts.dtype, np.float32))
    return _unit(_unit(prompts).mean(1))


def class_ranks(
    image: Float[np.ndarray, "n d"], weights: Float[np.ndarray, "c d"], label: Int[np.ndarray, " n"]
) -> Int[np.ndarray, " n"]:
    """Place (1 = best) of each image's own class among all classes; a tie counts against the own class."""
    weights = exact(weights)
    places = np.empty(len(image), dtype=np.int64)
    for rows in row_blocks(len(image), len(weights)):
        cosines = exact(image[rows]) @ weights.T
        own = cosines[np.arange(len(cosines)), label[rows]]
        places[rows] = (~(cosines < own[:, None])).sum(1)
    return places


def top_k_accuracy(
    image: Float[np.ndarray, "n d"], weights: Float[np.ndarray, "c d"], label: Int[np.ndarray, " n"], k: int = 1
) -> float:
    """Share of the images, in [0, 1], whose own class is among the `k` nearest; NaN without images."""
    return float(np.mean(class_ranks(image, weights, label) <= k)) if len(image) else float("nan")


def predict(image: Float[np.ndarray, "n d"], weights: Float[np.ndarray, "c d"]) -> Int[np.ndarray, " n"]:
    """Number of the class nearest to each image."""
    weights = exact(weights)
    nearest = np.empty(len(image), dtype=np.int64)
    for rows in row_blocks(len(image), len(weights)):
        nearest[rows] = np.argmax(exact(image[rows]) @ weights.T, axis=1)
    return nearest


def confusion(
    predicted: Int[np.ndarray, " n"], label: Int[np.ndarray, " n"], *, classes: int
) -> Int[np.ndarray, "c c"]:
    """How many images of class r (row) were taken for class s (column)."""
    return np.bincount(label * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def _unit(vectors: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)
