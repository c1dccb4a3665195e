"""Gradients of SimCLR's three losses by the cosines of views, and semi-hard negatives.

Table 2 and section 5.1 of Chen et al., SimCLR, 2020, https://arxiv.org/abs/2002.05709.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def nt_xent_push(
    cosine: Float[np.ndarray, " m"], match: float, unmatched: Float[np.ndarray, " k"], inv_tau: float
) -> Float[np.ndarray, " m"]:
    """Return `dL / d cosine` of one more negative: `softmax_k / tau`, the larger the more similar it is."""
    logits = inv_tau * np.concatenate([[match], unmatched])
    largest = max(float(logits.max()), inv_tau * float(np.max(cosine)))
    rest, weight = np.exp(logits - largest).sum(), np.exp(inv_tau * cosine - largest)
    return inv_tau * weight / (rest + weight)


def nt_logistic_push(cosine: Float[np.ndarray, " m"], inv_tau: float) -> Float[np.ndarray, " m"]:
    """Return `dL / d cosine` of a negative, `sigmoid(cosine / tau) / tau`, which does not know the others."""
    from scipy.special import expit

    return inv_tau * expit(inv_tau * cosine)


def triplet_push(cosine: Float[np.ndarray, " m"], match: float, margin: float) -> Float[np.ndarray, " m"]:
    """Return `dL / d cosine` of a negative: 1 above `match - margin`, else 0, however hard it is."""
    return (np.asarray(cosine) > match - margin).astype(float)


def semi_hard(match: float, unmatched: Float[np.ndarray, "m k"]) -> Float[np.ndarray, " m"]:
    """Return of each anchor the largest cosine below its match's, or the smallest where none is below."""
    below = np.where(unmatched < match, unmatched, -np.inf).max(axis=1)
    return np.where(np.isfinite(below), below, unmatched.min(axis=1))
