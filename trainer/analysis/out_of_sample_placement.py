"""Place new points in an existing layout: at the weighted mean of their nearest neighbors."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int

TWIN: Final = 1e-6
"""Cosine distance up to which two vectors are the same: the new point stands on its twin."""
_HALVINGS: Final = 48


def memberships(distances: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """Return UMAP's neighbor weights: exp(-(d - nearest) / sigma); those after the nearest sum to log2(k).

    McInnes, Healy, Melville, UMAP, 2018, https://arxiv.org/abs/1802.03426, section 3.1. The nearest has weight 1.

    Args:
        distances: To the neighbors, nearest first, at least 0.
    """
    beyond = np.maximum(np.asarray(distances, np.float64) - distances[:, :1], 0)
    target = np.log2(max(distances.shape[1], 2))
    low, high = np.full((len(beyond), 1), 1e-9), np.full((len(beyond), 1), 1e3)
    for _ in range(_HALVINGS):
        # Halved on a scale of ratios: sigma may be 1e-6 as well as 10.
        middle = np.sqrt(low * high)
        too_wide = np.exp(-beyond[:, 1:] / middle).sum(1, keepdims=True) > target
        high, low = np.where(too_wide, middle, high), np.where(too_wide, low, middle)
    return np.exp(-beyond / np.sqrt(low * high))


def place(
    neighbors: Int[np.ndarray, "m k"], distances: Float[np.ndarray, "m k"], xy: Float[np.ndarray, "n 2"]
) -> Float[np.ndarray, "m 2"]:
    """Return the position of each new point in `xy`: its neighbors' mean weighted by `memberships`.

    It is how UMAP's `transform` begins. A point whose nearest neighbor is its twin stands on it.

    Args:
        neighbors: Rows of `xy` nearest to each new point in the embedding space, nearest first.
        distances: How far they are there.
        xy: Where the known points stand.
    """
    weights = memberships(distances)
    twins = distances[:, 0] <= TWIN
    weights[twins] = 0
    weights[twins, 0] = 1
    weights /= weights.sum(1, keepdims=True)
    return np.einsum("mk,mkc->mc", weights, np.asarray(xy, np.float64)[neighbors]).astype(np.float32)
