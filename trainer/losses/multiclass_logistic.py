"""Multi-class logistic loss on the words of a caption, with target mass spread over them."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def multiclass_logistic(
    logits: Float[Tensor, "n k"],
    bag_of_words: Float[Tensor, "n k"],
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy with 1/words on each caption word; rows without words are omitted.

    Joulin et al., Learning Visual Features from Large Weakly Supervised Data, 2015,
    https://arxiv.org/abs/1511.02251, equation 1.

    Args:
        logits: Score of every word for every image.
        bag_of_words: 1 where the caption has the word, else 0.
    """
    counts = bag_of_words.sum(dim=1)
    target = bag_of_words / counts.clamp(min=1)[:, None]
    rows = -(target * torch.log_softmax(logits, dim=1)).sum(dim=1)
    return rows.sum() / (counts > 0).sum().clamp(min=1)
