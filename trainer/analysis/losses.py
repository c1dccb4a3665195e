"""Numpy versions of the objectives, for live panels: equal to `trainer.losses` to 1e-12 in float64.

Row by block, so that a panel may ask for the loss of a whole snapshot; `progress` is told the share done between
blocks, and may raise to cancel.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from trainer.analysis.progress import Progress, part_of, silent
from trainer.analysis.tiles import exact, row_blocks
from trainer.analysis.unit_rows import normalized


def info_nce(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    inv_tau: float,
    *,
    progress: Progress = silent,
) -> float:
    """Return the mean cross-entropy of matching rows in both directions: the objective of CLIP.

    `ln n` when all cosines are equal, 0 when every match is certain. Figure 3 of Radford et al., Learning
    Transferable Visual Models From Natural Language Supervision, 2021, https://arxiv.org/abs/2103.00020
    """
    forward = _mean_surprise(image, text, inv_tau, progress=part_of(progress, 0, 2))
    return (forward + _mean_surprise(text, image, inv_tau, progress=part_of(progress, 1, 2))) / 2


def info_loob(
    anchors: Float[np.ndarray, "n d"],
    samples: Float[np.ndarray, "n d"],
    inv_tau: float,
    *,
    progress: Progress = silent,
) -> float:
    """Return the mean leave-one-out bound over anchors, times tau as in CLOOB; it is often negative.

    `ln(n - 1) / inv_tau` when all cosines are equal. Equation 10 of Fuerst et al., CLOOB: Modern Hopfield Networks
    with InfoLOOB Outperform CLIP, 2022, https://arxiv.org/abs/2110.11316

    Raises:
        ValueError: A single pair: nothing is left once the match is left out.
    """
    if len(anchors) < 2:
        raise ValueError("info_loob needs at least 2 pairs: with the match left out, a single pair has no negatives")
    return _mean_surprise(anchors, samples, inv_tau, leave_out=True, progress=progress) / inv_tau


def hopfield_retrieval(
    state: Float[np.ndarray, "n d"],
    stored: Float[np.ndarray, "m d"],
    beta: float,
    *,
    progress: Progress = silent,
) -> Float[np.ndarray, "n d"]:
    """Return the unit rows that each state retrieves: `softmax(beta state stored^T) stored`.

    A stored pattern that equals the state is not masked. Equation 6 of Fuerst et al., 2022, as `info_loob`.
    """
    state, stored = exact(state), exact(stored)
    retrieved = np.empty_like(state)
    for rows in row_blocks(len(state), len(stored)):
        progress(rows.start / len(state), "retrieving")
        logits = beta * (state[rows] @ stored.T)
        weights = np.exp(logits - logits.max(1, keepdims=True))
        retrieved[rows] = (weights / weights.sum(1, keepdims=True)) @ stored
    return normalized(retrieved)


def cloob(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    inv_tau: float,
    beta: float,
    *,
    retrieval_share: float = 1.0,
    residual: bool = False,
    progress: Progress = silent,
) -> float:
    """Return InfoLOOB over the retrieved images plus InfoLOOB over the retrieved texts, each times tau.

    `2 ln(n - 1) / inv_tau` when all cosines are equal. Equation 8 of Fuerst et al., 2022, as `info_loob`. The share
    and the residual are those of `trainer.losses.cloob`.

    Raises:
        ValueError: A single pair.
    """
    total = 0.0
    for half, (queries, stored) in enumerate(((image, text), (text, image))):
        parts = [part_of(progress, 4 * half + part, 8) for part in range(4)]
        if retrieval_share < 1:
            total += (1 - retrieval_share) * info_loob(queries, stored, inv_tau, progress=parts[3])
        if retrieval_share > 0:
            anchors, samples = (
                _retrieved(state, queries, beta, residual, report_part)
                for state, report_part in zip((queries, stored), parts, strict=False)
            )
            total += retrieval_share * info_loob(anchors, samples, inv_tau, progress=parts[2])
    return total


def _retrieved(state: np.ndarray, stored: np.ndarray, beta: float, residual: bool, progress: Progress) -> np.ndarray:
    retrieved = hopfield_retrieval(state, stored, beta, progress=progress)
    if not residual:
        return retrieved
    return normalized(exact(state) + retrieved)


def _mean_surprise(
    anchors: np.ndarray,
    samples: np.ndarray,
    inv_tau: float,
    *,
    leave_out: bool = False,
    progress: Progress = silent,
) -> float:
    """Return the mean of logsumexp of an anchor's logits (with or without its match) minus its match's logit."""
    anchors, samples = exact(anchors), exact(samples)
    total = 0.0
    for rows in row_blocks(len(anchors), len(samples)):
        progress(rows.start / len(anchors), "comparing pairs")
        logits = inv_tau * (anchors[rows] @ samples.T)
        diagonal = (np.arange(len(logits)), np.arange(rows.start, rows.stop))
        matched = logits[diagonal]
        if leave_out:
            logits[diagonal] = -np.inf
        largest = logits.max(1)
        total += float((np.log(np.exp(logits - largest[:, None]).sum(1)) + largest - matched).sum(dtype=np.float64))
    return total / len(anchors)
