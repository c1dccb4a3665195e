"""MoCo: find the key of the same image among the keys of earlier ones."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def moco(
    query: Float[Tensor, "n d"],
    key: Float[Tensor, "n d"],
    queue: Float[Tensor, "q d"],
    inv_tau: float | Float[Tensor, ""],
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of each query's key among itself and the queue; `ln(q + 1)` if all are equal.

    No gradient reaches the keys. Equation 1 of He et al., Momentum Contrast for Unsupervised Visual Representation
    Learning, 2020, https://arxiv.org/abs/1911.05722

    Args:
        query: Unit rows of the encoder.
        key: Unit rows of the momentum encoder; row k shows the same image.
        queue: Unit rows of earlier keys, the negatives.
    """
    matched = (query * key.detach()).sum(dim=1, keepdim=True)
    logits = inv_tau * torch.cat([matched, query @ queue.detach().T], dim=1)
    return (torch.logsumexp(logits, dim=1) - logits[:, 0]).mean()
