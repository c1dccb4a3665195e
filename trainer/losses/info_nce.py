"""InfoNCE in both directions, the objective of CLIP."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def info_nce(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
) -> Float[Tensor, ""]:
    """Mean over both directions of the cross-entropy of finding the matched row in the batch.

    `ln n` when all cosines are equal, 0 when every match is certain. Figure 3 of Radford et al., Learning
    Transferable Visual Models From Natural Language Supervision, 2021, https://arxiv.org/abs/2103.00020

    Args:
        image: Unit-length image embeddings.
        text: Unit-length text embeddings; row k describes image k.
        inv_tau: Inverse temperature; factor on the cosines.
    """
    logits = inv_tau * (image @ text.T)
    matched = torch.arange(len(image), device=image.device)
    return (F.cross_entropy(logits, matched) + F.cross_entropy(logits.T, matched)) / 2
