"""Turning one set of points onto another, as far as that is possible without bending it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class ProcrustesTransform:
    """A movement that keeps the shape: `(x - before) @ rotation * scale + after`.

    Attributes:
        rotation: Orthonormal columns or rows; may mirror.
        scale: 1 where lengths are kept.
        before: Taken from the points first.
        after: Added to the turned points.
    """

    rotation: Float[np.ndarray, "d e"]
    scale: float
    before: Float[np.ndarray, " d"]
    after: Float[np.ndarray, " e"]

    def apply(self, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n e"]:
        """The points where this movement takes them, in float64."""
        return (np.asarray(points, np.float64) - self.before) @ self.rotation * self.scale + self.after


def procrustes(
    points: Float[np.ndarray, "n d"],
    onto: Float[np.ndarray, "n e"],
    *,
    moved: bool = True,
    scaled: bool = False,
) -> ProcrustesTransform:
    """The rotation (mirroring allowed) that brings row i of `points` nearest to row i of `onto`, least squares.

    Schoenemann, A generalized solution of the orthogonal Procrustes problem, Psychometrika 31, 1966.

    Args:
        points: What is turned.
        onto: Where it should come to lie; another width is allowed, the narrower one is seen as part of the wider.
        moved: The means are brought together too; False turns about the origin, as suits unit vectors.
        scaled: The size is fitted too.
    """
    points, onto = np.asarray(points, np.float64), np.asarray(onto, np.float64)
    before = points.mean(0) if moved and len(points) else np.zeros(points.shape[1])
    after = onto.mean(0) if moved and len(onto) else np.zeros(onto.shape[1])
    centerd, aim = points - before, onto - after
    left, singular, right = np.linalg.svd(centerd.T @ aim, full_matrices=False)
    size = float((centerd**2).sum())
    scale = float(singular.sum()) / size if scaled and size > 0 else 1.0
    return ProcrustesTransform(left @ right, scale, before, after)
