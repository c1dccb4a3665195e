"""The contrastive loss of Hadsell et al., and its form with a margin for equal labels, too."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from trainer.device import sent
from trainer.losses.batch_size import needs_two
from trainer.losses.precision import full_precision
from trainer.losses.samplers import distances


@full_precision
def contrastive_margin(
    embeddings: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    *,
    margin: float = 1.0,
    matched_margin: float = 0.0,
) -> Float[Tensor, ""]:
    """Return the mean over pairs of `max(d - m, 0)^2 / 2` for equal labels, `max(margin - d, 0)^2 / 2` for others.

    With m = `matched_margin` = 0, equation 4 of Hadsell, Chopra and LeCun, Dimensionality Reduction by Learning an
    Invariant Mapping, 2006; above 0 the double-margin loss of Lin et al., DeepHash, 2015,
    https://arxiv.org/abs/1501.04711, which lets equal labels be different by m.

    Args:
        embeddings: One row per item.
        labels: Class of each row, on any device.
        margin: Distance beyond which different classes no longer repel, > 0.
        matched_margin: Distance within which equal classes no longer attract.

    Raises:
        ValueError: A single row.
    """
    needs_two(len(embeddings), "contrastive_margin")
    labels = sent(labels, embeddings.device)
    first, second = torch.triu_indices(len(labels), len(labels), offset=1, device=labels.device)
    distance = distances(embeddings)[first, second]
    repelled = (margin - distance).clamp(min=0)
    attracted = (distance - matched_margin).clamp(min=0)
    return torch.where(labels[first] == labels[second], attracted.square(), repelled.square()).mean() / 2
