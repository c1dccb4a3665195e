"""The gradient of an objective on a match, and its weights of one anchor's negatives.

All functions look at one anchor: `matched` are cosines its match might have, `unmatched` the cosines of its negatives.
A pull is the size of the derivative of the loss on the match's cosine, a push that on a negative's logit.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float


def spread_cosines(n: int, center: float, spread: float) -> Float[np.ndarray, " n"]:
    """Return `n` evenly spaced cosines from `center - spread` to `center + spread`, clipped to [-1, 1]."""
    return np.clip(np.linspace(center - spread, center + spread, n), -1.0, 1.0)


def match_factor(
    matched: Float[np.ndarray, " m"], unmatched: Float[np.ndarray, " n"], inv_tau: float
) -> Float[np.ndarray, " m"]:
    """Return 1 - p, where p is the match's softmax probability among the match and the negatives.

    It scales every gradient of InfoNCE against that of InfoLOOB. Fuerst et al., CLOOB: Modern Hopfield Networks with
    InfoLOOB Outperform CLIP, 2022, https://arxiv.org/abs/2110.11316, gradients of InfoNCE and InfoLOOB.
    """
    # 1 - p as such would round to 0 from 1e-16 on.
    return np.exp(-np.logaddexp(0.0, inv_tau * np.asarray(matched) - _logsumexp(inv_tau * unmatched)))


def info_nce_pull(
    matched: Float[np.ndarray, " m"], unmatched: Float[np.ndarray, " n"], inv_tau: float
) -> Float[np.ndarray, " m"]:
    """Return `(1 - p) / tau`, which vanishes for a recognized match because the match is in the denominator."""
    return inv_tau * match_factor(matched, unmatched, inv_tau)


def info_loob_pull(matched: Float[np.ndarray, " m"], inv_tau: float) -> Float[np.ndarray, " m"]:
    """Return `1 / tau` for any match: without the match in the denominator there is no factor 1 - p."""
    return np.full(np.shape(matched), float(inv_tau))


def dhn_weights(unmatched: Float[np.ndarray, " n"], inv_tau: float, beta: float) -> Float[np.ndarray, " n"]:
    """Return the weight of each negative, with mean 1: the softmax of its logit times `beta`.

    Koleilat et al., MedCLIP-SAM, 2024, https://arxiv.org/abs/2403.20253, equations 3 and 4.
    """
    return len(unmatched) * _softmax(beta * inv_tau * unmatched)


def dhn_push(
    unmatched: Float[np.ndarray, " n"], inv_tau: float, beta: float, *, detach_weights: bool = False
) -> Float[np.ndarray, " n"]:
    """Return DHN-NCE's derivative by each negative's logit, with mean 1; a negative value attracts.

    With `detach_weights` the weights count as constants, and every push is positive.
    """
    sharp = _softmax((1 + beta) * inv_tau * unmatched)
    if detach_weights:
        return len(unmatched) * sharp
    return len(unmatched) * ((1 + beta) * sharp - beta * _softmax(beta * inv_tau * unmatched))


def dhn_loss(
    matched: Float[np.ndarray, " m"], unmatched: Float[np.ndarray, " n"], inv_tau: float, beta: float
) -> Float[np.ndarray, " m"]:
    """Return DHN-NCE of the anchor, one direction: `-S_ii + ln b`, b the weighted sum of exp over negatives."""
    return _log_negatives(unmatched, inv_tau, beta) - inv_tau * np.asarray(matched)


def merged_loss(
    matched: Float[np.ndarray, " m"], unmatched: Float[np.ndarray, " n"], inv_tau: float, beta: float
) -> Float[np.ndarray, " m"]:
    """Return `ln(b - a)`, which `ln b - ln a` becomes if the match has weight -1 in the sum: a deliberate mistake.

    NaN from `merge_ends` on. `ln b - ln a` is `ln(b / a)`, which is `dhn_loss`.
    """
    below = _below(matched, unmatched, inv_tau, beta)
    return _log_negatives(unmatched, inv_tau, beta) + np.log(-np.expm1(below))


def merged_pull(
    matched: Float[np.ndarray, " m"], unmatched: Float[np.ndarray, " n"], inv_tau: float, beta: float
) -> Float[np.ndarray, " m"]:
    """Return `a / (b - a)`, the pull of `merged_loss` on the match's logit (DHN-NCE: 1); NaN where the loss is NaN."""
    below = _below(matched, unmatched, inv_tau, beta)
    return -np.exp(below) / np.expm1(below)


def merge_ends(unmatched: Float[np.ndarray, " n"], inv_tau: float, beta: float) -> float:
    """Return the match's cosine from which `merged_loss` is undefined; may exceed 1."""
    return _log_negatives(unmatched, inv_tau, beta) / inv_tau


def _below(matched: np.ndarray, unmatched: np.ndarray, inv_tau: float, beta: float) -> np.ndarray:
    """Return `ln a - ln b` where a < b, NaN elsewhere."""
    difference = inv_tau * np.asarray(matched, np.float64) - _log_negatives(unmatched, inv_tau, beta)
    return np.where(difference < 0, difference, np.nan)


def _log_negatives(unmatched: np.ndarray, inv_tau: float, beta: float) -> float:
    sharp, flat = _logsumexp((1 + beta) * inv_tau * unmatched), _logsumexp(beta * inv_tau * unmatched)
    return math.log(len(unmatched)) + sharp - flat


def _logsumexp(logits: np.ndarray) -> float:
    largest = logits.max()
    return float(largest + np.log(np.exp(logits - largest).sum()))


def _softmax(logits: np.ndarray) -> np.ndarray:
    return np.exp(logits - _logsumexp(logits))
