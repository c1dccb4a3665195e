"""What a Hopfield retrieval averages: the share of each stored pattern, and how many of them count."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float


def circle_patterns(n: int, seed: int) -> Float[np.ndarray, "n 2"]:
    """`n` points on the unit circle, one somewhere in each n-th of it, in the order of their angles."""
    angles = 2 * math.pi * (np.arange(n) + np.random.default_rng(seed).uniform(0, 0.8, n)) / n
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def retrieval_shares(
    state: Float[np.ndarray, " d"], stored: Float[np.ndarray, "n d"], beta: float
) -> Float[np.ndarray, " n"]:
    """Share of each stored pattern in what the state retrieves: `softmax(beta stored state)`.

    Ramsauer et al., Hopfield Networks is All You Need, 2020, https://arxiv.org/abs/2008.02217, equation 3.
    """
    logits = beta * (stored @ state)
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def entropy(shares: Float[np.ndarray, " n"]) -> float:
    """Entropy of the shares in nats: 0 where one pattern has all, `ln n` where all are equal."""
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum()) + 0.0  # -0 would be shown as such


def effective_number(shares: Float[np.ndarray, " n"]) -> float:
    """How many patterns the retrieval averages: the exponential of the entropy, from 1 to n."""
    return math.exp(entropy(shares))


def effective_numbers(
    state: Float[np.ndarray, " d"], stored: Float[np.ndarray, "n d"], betas: Float[np.ndarray, " m"]
) -> Float[np.ndarray, " m"]:
    """`effective_number` of the retrieval for each beta."""
    logits = betas[:, None] * (stored @ state)
    logits -= logits.max(axis=1, keepdims=True)
    weights = np.exp(logits)
    total = weights.sum(axis=1)
    # H = ln Z - sum p l: finite also where a share underflows.
    return np.exp(np.log(total) - (weights * logits).sum(axis=1) / total)


def self_weight(
    n: Float[np.ndarray, " m"] | int, beta: Float[np.ndarray, " m"] | float, cosine: float = 0.0
) -> Float[np.ndarray, " m"]:
    """Share a stored pattern has in its own retrieval if all `n - 1` others lie at `cosine` to it.

    `e^beta / (e^beta + n - 1)` at cosine 0; otherwise with beta (1 - cosine) in place of beta.
    """
    return 1 / (1 + (np.asarray(n, np.float64) - 1) * np.exp(-np.asarray(beta) * (1 - cosine)))


def equal_self_weight_beta(n: Float[np.ndarray, " m"] | int) -> Float[np.ndarray, " m"]:
    """The beta that keeps, at cosine 0, the self-weight that CLOOB has with beta 8 at n = 512.

    `8 + ln((n - 1) / 511)`. Derived here; neither in the paper nor tried in a long training yet.
    """
    return 8 + np.log((np.asarray(n, np.float64) - 1) / 511)
