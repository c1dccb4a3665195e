"""Near-duplicates and outliers among image embeddings, by the distance to the nearest other images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.neighbor_cells import neighbors_of_all
from trainer.analysis.progress import Progress, silent

NEIGHBORS: Final = 10
"""Neighbors whose mean distance tells whether an image is an outlier."""
NEAR: Final = 0.05
"""Share of the typical distance to the nearest image, below which two images are near duplicates."""
FAR: Final = 8.0
"""Fence above which an image is an outlier."""


@dataclass(frozen=True)
class ImageNeighbors:
    """Distances (1 - cosine) of each image to other images."""

    nearest: Int[np.ndarray, " n"]  # Row of the nearest other image.
    distance: Float[np.ndarray, " n"]  # To it.
    mean: Float[np.ndarray, " n"]  # Of the distances to the `k` nearest others.
    k: int  # Neighbors of each.


def image_neighbors(
    image: Float[np.ndarray, "n d"], *, k: int = NEIGHBORS, progress: Progress = silent
) -> ImageNeighbors:
    """Return each image's nearest other images; needs at least two rows, one for each picture.

    Of more than 150,000 images the neighbors are sought by cells (`neighbor_cells`): the work grows with n^1.5.

    Args:
        image: Unit embeddings.
        k: Neighbors whose mean distance counts; fewer where there are not so many.
    """
    neighbors = neighbors_of_all(image, k, progress)
    distances = np.maximum(1.0 - neighbors.cosines.astype(np.float64), 0.0)
    return ImageNeighbors(neighbors.rows[:, 0], distances[:, 0], distances.mean(axis=1), distances.shape[1])


def near_duplicates(neighbors: ImageNeighbors) -> tuple[Bool[np.ndarray, " n"], float]:
    """Return which images have a near duplicate as nearest image, and the distance up to which they have.

    The limit is a share of the run's own median distance to the nearest image, since objectives stretch distances at
    will.
    """
    limit = NEAR * float(np.median(neighbors.distance)) if len(neighbors.distance) else math.nan
    # Identical images differ by rounding only.
    return neighbors.distance <= max(limit, 4 * float(np.finfo(np.float32).eps)), limit


def outliers(neighbors: ImageNeighbors) -> tuple[Bool[np.ndarray, " n"], float]:
    """Return which images are far from all others, and the mean distance above which they are.

    The limit is `median + FAR * (upper quartile - median)` of the run's own mean distances to `k` neighbors.
    """
    if not len(neighbors.mean):
        return np.zeros(0, bool), math.nan
    median, quartile = np.quantile(neighbors.mean, (0.5, 0.75))
    limit = float(median + FAR * (quartile - median))
    return neighbors.mean > limit, limit
