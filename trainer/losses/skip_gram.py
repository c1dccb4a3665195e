"""Skip-gram with negative sampling, the objective of word2vec."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def skip_gram(
    center: Float[Tensor, "n d"],
    context: Float[Tensor, "n d"],
    negatives: Float[Tensor, "n k d"],
    *,
    skipped: Bool[Tensor, "n k"] | None = None,
) -> Float[Tensor, ""]:
    """Return the mean over centers of `-ln sigmoid(context . center) - sum_k ln sigmoid(-negative_k . center)`.

    Equation 4 of Mikolov et al., Distributed Representations of Words and Phrases and their Compositionality,
    2013, https://arxiv.org/abs/1310.4546. Vectors are not normalized.

    Args:
        center: Input vectors of the center words.
        context: Output vectors of the words seen beside them.
        negatives: Output vectors of k drawn words each.
        skipped: Negatives that do not count, because the word drawn is the very context; None: all count.
    """
    matched = F.logsigmoid((center * context).sum(dim=1))
    unmatched = F.logsigmoid(-torch.einsum("nd,nkd->nk", center, negatives))
    if skipped is not None:
        unmatched = unmatched.masked_fill(skipped, 0)
    return -(matched + unmatched.sum(dim=1)).mean()
