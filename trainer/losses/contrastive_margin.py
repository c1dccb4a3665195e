"""The contrastive loss of Hadsell et al.: equal labels attract, others repel up to a margin."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from trainer.losses.batch_size import needs_two
from trainer.losses.precision import full_precision
from trainer.losses.samplers import distances


@full_precision
def contrastive_margin(
    embeddings: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    *,
    margin: float = 1.0,
) -> Float[Tensor, ""]:
    """Return the mean over pairs i < j of `d^2 / 2` for equal labels and `max(margin - d, 0)^2 / 2` for others.

    Equation 4 of Hadsell, Chopra and LeCun, Dimensionality Reduction by Learning an Invariant Mapping, 2006.

    Args:
        embeddings: One row per item.
        labels: Class of each row.
        margin: Distance beyond which different classes no longer repel, > 0.

    Raises:
        ValueError: A single row.
    """
    needs_two(len(embeddings), "contrastive_margin")
    first, second = torch.triu_indices(len(labels), len(labels), offset=1, device=labels.device)
    distance = distances(embeddings)[first, second]
    repelled = (margin - distance).clamp(min=0)
    return torch.where(labels[first] == labels[second], distance.square(), repelled.square()).mean() / 2
