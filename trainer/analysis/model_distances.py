"""Distances between the embeddings of models, a plane that keeps them, and the model that differs most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float


def procrustes_profile(vectors: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Return centered rows of unit Frobenius norm in float64; NaN if constant."""
    centered = np.asarray(vectors, np.float64) - np.asarray(vectors, np.float64).mean(0)
    size = float(np.linalg.norm(centered))
    return centered / size if size > 1e-12 else np.full(centered.shape, np.nan)


def procrustes_of_profiles(first: Float[np.ndarray, "n d"], second: Float[np.ndarray, "n e"]) -> float:
    """Return what no rotation, shift or scaling brings together of two spaces, by their profiles, 0 to 1.

    The square root of the disparity of `scipy.spatial.procrustes`: sqrt(1 - s^2), s the sum of the singular values of
    X'Y, both centered and of unit Frobenius norm. It is a metric (Williams et al. 2021, arXiv 2110.14739, up to
    arc sine). NaN where one side does not vary.
    """
    product = first.T @ second
    if not np.isfinite(product).all():
        return float("nan")
    shared = min(float(np.linalg.svd(product, compute_uv=False).sum()), 1.0)
    return float(np.sqrt(max(1.0 - shared**2, 0.0)))


def procrustes_distances(spaces: Sequence[Float[np.ndarray, "n _"]]) -> Float[np.ndarray, "m m"]:
    """Return the distance of every two spaces, a symmetric matrix with zeros in the diagonal."""
    profiles = [procrustes_profile(space) for space in spaces]
    distances = np.zeros((len(spaces), len(spaces)))
    for i, first in enumerate(profiles):
        for j, second in enumerate(profiles[:i]):
            distances[i, j] = distances[j, i] = procrustes_of_profiles(first, second)
    return distances


def plane_of(distances: Float[np.ndarray, "m m"]) -> tuple[Float[np.ndarray, "m 2"], float]:
    """Return places in the plane whose distances are about these, and Kruskal's stress-1, 0 for exact.

    Metric multidimensional scaling (SMACOF of scikit-learn) from the classical solution, so that it is the same each
    time.
    """
    m = len(distances)
    if m < 3:
        points = np.zeros((m, 2))
        if m == 2:
            points[1, 0] = distances[0, 1]
        return points, 0.0
    from sklearn.manifold import smacof

    points, _ = smacof(
        distances, init=_classical(distances), n_init=1, max_iter=500, random_state=0, normalized_stress=False
    )
    apart = np.linalg.norm(points[:, None] - points[None], axis=-1)
    total = float((distances**2).sum())
    stress = float(np.sqrt(((apart - distances) ** 2).sum() / total)) if total else 0.0
    return points, stress


def _classical(distances: Float[np.ndarray, "m m"]) -> Float[np.ndarray, "m 2"]:
    """Return classical scaling: the two leading eigenvectors of the doubly centered squares."""
    center = np.eye(len(distances)) - 1.0 / len(distances)
    values, vectors = np.linalg.eigh(-0.5 * center @ distances**2 @ center)
    points = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0.0))
    # An eigenvector is known up to its sign.
    return points * np.where(points[np.abs(points).argmax(0), range(points.shape[1])] < 0, -1.0, 1.0)


def apartness(distances: Float[np.ndarray, "m m"]) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Return each model's mean distance to the others, and how unusual it is.

    Unusual: the mean distance minus the median of all, in robust deviations (1.4826 times the median absolute
    deviation); NaN of fewer than four models, or where the deviation is 0. Above 3.5 is usually called an outlier
    (Iglewicz and Hoaglin 1993).
    """
    m = len(distances)
    mean = distances.sum(1) / max(m - 1, 1)
    middle = np.median(mean)
    deviation = 1.4826 * float(np.median(np.abs(mean - middle)))
    if m < 4 or not deviation > 1e-12:
        return mean, np.full(m, np.nan)
    return mean, (mean - middle) / deviation
