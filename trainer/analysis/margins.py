"""Distance-based losses on the unit sphere, the distribution of distances there, and negative samplers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from jaxtyping import Float

SAMPLERS: Final = ("random", "hard", "semi-hard", "distance-weighted")
CUTOFF: Final = 0.5
"""Distances below it are weighted as if they were it (Wu et al.; as in `trainer.losses.samplers`)."""
ADMISSIBLE: Final = 1.4
"""Distance-weighted sampling leaves out farther negatives."""


def contrastive_matched(distance: Float[np.ndarray, " m"], margin: float = 0.0) -> Float[np.ndarray, " m"]:
    """Return `max(d - margin, 0)^2 / 2`: the loss of a matched pair, which at margin 0 pulls at any distance.

    Margin 0: equation 4 of Hadsell, Chopra and LeCun, Dimensionality Reduction by Learning an Invariant Mapping, 2006;
    above it the double-margin loss of Lin et al., DeepHash, 2015, https://arxiv.org/abs/1501.04711.
    """
    return np.square(np.maximum(distance - margin, 0)) / 2


def contrastive_unmatched(distance: Float[np.ndarray, " m"], margin: float) -> Float[np.ndarray, " m"]:
    """Return `max(margin - d, 0)^2 / 2`: unmatched pairs repel up to the margin. Hadsell et al., 2006, equation 4."""
    return np.square(np.maximum(margin - distance, 0)) / 2


def triplet(
    to_positive: Float[np.ndarray, " m"] | float,
    to_negative: Float[np.ndarray, " m"] | float,
    margin: float,
    *,
    squared: bool = True,
) -> Float[np.ndarray, " m"]:
    """Return `max(d(a, p) - d(a, n) + margin, 0)`, with squared distances by default.

    Schroff et al., FaceNet, 2015, https://arxiv.org/abs/1503.03832, equation 3.
    """
    power = 2 if squared else 1
    return np.maximum(np.power(to_positive, power) - np.power(to_negative, power) + margin, 0)


def margin_matched(distance: Float[np.ndarray, " m"], beta: float, alpha: float) -> Float[np.ndarray, " m"]:
    """Return `max(alpha + d - beta, 0)`: a matched pair need only be inside the boundary, not at 0.

    Wu et al., Sampling Matters in Deep Embedding Learning, 2017, https://arxiv.org/abs/1706.07567, equation 7.
    """
    return np.maximum(alpha + distance - beta, 0)


def margin_unmatched(distance: Float[np.ndarray, " m"], beta: float, alpha: float) -> Float[np.ndarray, " m"]:
    """Return `max(alpha + beta - d, 0)`: unmatched pairs must be outside the boundary. Wu et al., 2017, equation 7."""
    return np.maximum(alpha + beta - distance, 0)


def log_density(distance: Float[np.ndarray, " ..."], dimension: int) -> Float[np.ndarray, " ..."]:
    """Return the log density of the distance of two uniform points on the unit sphere of `dimension` >= 2.

    `q(d) ~ d^(n-2) (1 - d^2/4)^((n-3)/2)`, Wu et al., 2017, equation 6; here with its constant
    `2^(n-2) B((n-1)/2, (n-1)/2)`, so that it integrates to 1.
    """
    half = (dimension - 1) / 2
    constant = (dimension - 2) * math.log(2) + 2 * math.lgamma(half) - math.lgamma(2 * half)
    with np.errstate(divide="ignore"):
        inner = np.log(np.maximum(1 - np.square(distance) / 4, 1e-8))  # at the antipode it would be infinite
        near = (dimension - 2) * np.log(distance) if dimension > 2 else np.zeros_like(distance)
    return near + (dimension - 3) / 2 * inner - constant


def distances_to_uniform(
    anchors: int, others: int, *, dimension: int, seed: int
) -> Float[np.ndarray, "anchors others"]:
    """Return distances from each of `anchors` points to its own `others` uniform points on the unit sphere."""
    rng = np.random.default_rng(seed)
    # Only the share of a point along the anchor matters: one normal number, and the length of all the others.
    along = rng.standard_normal((anchors, others))
    rest = rng.chisquare(dimension - 1, (anchors, others))
    cosine = along / np.sqrt(np.square(along) + rest)
    return np.sqrt(2 - 2 * cosine)


def distance_weights(distances: Float[np.ndarray, "m n"], dimension: int) -> Float[np.ndarray, "m n"]:
    """Return each negative's probability in distance-weighted sampling: inverse to its distance's density.

    Rows sum to 1. Where no negative of a row is admissible all are equally likely, never NaN. Wu et al., 2017,
    section 4, with the cutoffs of the authors' code.
    """
    weights = -log_density(np.maximum(distances, CUTOFF), dimension)
    weights[distances >= ADMISSIBLE] = -np.inf
    largest = weights.max(axis=1, keepdims=True)
    none = np.isneginf(largest)
    weights = np.where(none, 1.0, np.exp(weights - np.where(none, 0.0, largest)))
    return weights / weights.sum(axis=1, keepdims=True)


def drawn_distances(
    distances: Float[np.ndarray, "m n"], to_positive: float, dimension: int, *, seed: int
) -> Mapping[str, Float[np.ndarray, " m"]]:
    """Return the distance of the negative drawn by each sampler for every anchor.

    Args:
        distances: From m anchors to the n negatives each may take.
        to_positive: Distance of every anchor to its positive.
        dimension: Of the embedding; decides the density of distances.
        seed: Of the random and the distance-weighted draws.
    """
    rng = np.random.default_rng(seed)
    rows = np.arange(len(distances))
    beyond = np.where(distances > to_positive, distances, np.inf).min(axis=1)
    # Where nothing lies beyond the positive, semi-hard takes the farthest there is.
    semi = np.where(np.isfinite(beyond), beyond, distances.max(axis=1))
    chances = distance_weights(distances, dimension).cumsum(axis=1)
    drawn = (rng.random((len(distances), 1)) * chances[:, -1:] >= chances).sum(axis=1)
    return {
        "random": distances[rows, rng.integers(distances.shape[1], size=len(distances))],
        "hard": distances.min(axis=1),
        "semi-hard": semi,
        "distance-weighted": distances[rows, np.minimum(drawn, distances.shape[1] - 1)],
    }
