"""Class-balanced one-against-all logistic loss on the words of a caption."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def one_vs_all_logistic(
    logits: Float[Tensor, "n k"],
    bag_of_words: Float[Tensor, "n k"],
) -> Float[Tensor, ""]:
    """Return the sum over words of the mean loss of images with the word plus the mean loss of those without.

    A word that all images of the batch have (or none) has only the other of its two means. Joulin et al.,
    Learning Visual Features from Large Weakly Supervised Data, 2015, https://arxiv.org/abs/1511.02251, equation 2,
    with the minus sign and the class index that transcriptions lose.

    Args:
        logits: Score of every word for every image.
        bag_of_words: 1 where the caption has the word, else 0.
    """
    present = bag_of_words.sum(dim=0)
    absent = len(bag_of_words) - present
    with_word = (bag_of_words * F.logsigmoid(logits)).sum(dim=0) / present.clamp(min=1)
    without_word = ((1 - bag_of_words) * F.logsigmoid(-logits)).sum(dim=0) / absent.clamp(min=1)
    return -(with_word + without_word).sum()
