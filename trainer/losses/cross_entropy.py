"""Cross-entropy of the class: the supervised baseline."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def cross_entropy(
    logits: Float[Tensor, "n k"],
    classes: Int[Tensor, " n"],
    *,
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """Return the mean of `-(1 - s) ln p_class - s mean over k of ln p_k` over the rows that have a class.

    Label smoothing s: Szegedy et al., Rethinking the Inception Architecture, 2016, https://arxiv.org/abs/1512.00567,
    section 7.

    Args:
        logits: Score of every class for every image.
        classes: Index of the class of each image; negative: none, and the row does not count.
        smoothing: Share of the probability that is spread over all classes.
    """
    log_shares = torch.log_softmax(logits, dim=1)
    log_share = log_shares.gather(1, classes.clamp(min=0)[:, None])[:, 0]
    rows = -(1 - smoothing) * log_share - smoothing * log_shares.mean(dim=1)
    counted = (classes >= 0).to(rows.dtype)
    return (rows * counted).sum() / counted.sum().clamp(min=1)
