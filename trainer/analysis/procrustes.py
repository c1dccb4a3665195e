"""Align one set of points with another by rotation, reflection, translation and scaling."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from msgspec import Struct


class ProcrustesTransform(Struct, frozen=True):
    """A similarity transform: `(x - before) @ rotation * scale + after`."""

    rotation: Float[np.ndarray, "d e"]  # Orthonormal columns or rows; may mirror.
    scale: float  # 1 where lengths are kept.
    before: Float[np.ndarray, " d"]  # Taken from the points first.
    after: Float[np.ndarray, " e"]  # Added to the turned points.

    def apply(self, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n e"]:
        """Return the transformed points, in float64."""
        return (np.asarray(points, np.float64) - self.before) @ self.rotation * self.scale + self.after


def nearest_rotation(products: Float[np.ndarray, "d e"]) -> Float[np.ndarray, "d e"]:
    """Return the rotation or reflection that maximizes the trace of its product with `points.T @ onto`."""
    left, _, right = np.linalg.svd(products, full_matrices=False)
    return left @ right


def procrustes(
    points: Float[np.ndarray, "n d"],
    onto: Float[np.ndarray, "n e"],
    *,
    moved: bool = True,
    scaled: bool = False,
) -> ProcrustesTransform:
    """Return the least-squares rotation or reflection of `points` onto `onto`, row by row.

    Schoenemann, A generalized solution of the orthogonal Procrustes problem, Psychometrika 31, 1966.

    Args:
        onto: Where it should come to lie; another width is allowed, the narrower one is seen as part of the wider.
        moved: The means are brought together too; False turns about the origin, as suits unit vectors.
        scaled: The size is fitted too.
    """
    points, onto = np.asarray(points, np.float64), np.asarray(onto, np.float64)
    before = points.mean(0) if moved and len(points) else np.zeros(points.shape[1])
    after = onto.mean(0) if moved and len(onto) else np.zeros(onto.shape[1])
    centered, aim = points - before, onto - after
    left, singular, right = np.linalg.svd(centered.T @ aim, full_matrices=False)
    size = float((centered**2).sum())
    scale = float(singular.sum()) / size if scaled and size > 0 else 1.0
    return ProcrustesTransform(left @ right, scale, before, after)
