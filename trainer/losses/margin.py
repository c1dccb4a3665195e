"""The margin loss: an optionally learned boundary beta between positives and negatives."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from trainer.device import sent
from trainer.losses.precision import full_precision
from trainer.losses.samplers import Sampler, distances, negatives, positive_pairs


@full_precision
def margin(
    embeddings: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    *,
    beta: float | Float[Tensor, ""] | Float[Tensor, " classes"] = 1.2,
    alpha: float = 0.2,
    sampler: Sampler = "distance-weighted",
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    """Return the mean of the active terms of `max(alpha + y (d - beta), 0)`, y = 1 for positives, -1 for negatives.

    0 where no term is active. Wu et al., Sampling Matters in Deep Embedding Learning, 2017,
    https://arxiv.org/abs/1706.07567, equations 7 and 8.

    Args:
        embeddings: Unit rows.
        labels: Class of each row; on the CPU, a GPU is not waited for.
        beta: The boundary: one for all, or one per class (then indexed by the anchor's label); may be learned.
        alpha: Half the width of the gap around the boundary.
        sampler: How the negative of each anchor and positive is chosen.

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
    boundary = torch.as_tensor(beta, dtype=distance.dtype, device=distance.device)
    if boundary.ndim:
        boundary = boundary[sent(labels, distance.device)[anchors]]
    near = (alpha + distance[anchors, positives] - boundary).clamp(min=0)
    far = (alpha + boundary - distance[anchors, chosen]).clamp(min=0)
    active = (near > 0).sum() + (far > 0).sum()
    return (near.sum() + far.sum()) / active.clamp(min=1)
