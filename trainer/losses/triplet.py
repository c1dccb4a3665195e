"""The triplet loss: a positive is nearer than a negative by a margin."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from trainer.device import sent
from trainer.losses.precision import full_precision
from trainer.losses.samplers import Sampler, distances, negatives, positive_pairs


@full_precision
def triplet(
    embeddings: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    *,
    margin: float = 0.2,
    sampler: Sampler = "semi-hard",
    squared: bool = True,
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    """Return the mean over anchors and positives of `max(d(a, p) - d(a, n) + margin, 0)`; 0 without positives.

    Schroff et al., FaceNet, 2015, https://arxiv.org/abs/1503.03832, equation 3 (squared distances).

    Args:
        embeddings: Unit rows.
        labels: Class of each row; on the CPU, a GPU is not waited for.
        margin: By how much the positive must be nearer.
        sampler: How the negative of each anchor and positive is chosen.
        squared: Squared distances, as in the paper; plain ones otherwise.

    Raises:
        ValueError: An unknown sampler, or a batch of one class only.
    """
    distance = distances(embeddings)
    anchors, positives = (sent(rows, embeddings.device) for rows in positive_pairs(labels))
    if not len(anchors):
        return embeddings.sum() * 0
    chosen = negatives(
        distance, labels, anchors, positives, sampler=sampler, dimension=embeddings.shape[1], generator=generator
    )
    if squared:
        distance = distance.square()
    return (distance[anchors, positives] - distance[anchors, chosen] + margin).clamp(min=0).mean()
