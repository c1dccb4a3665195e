"""Skip-gram with the full softmax: every word of the vocabulary is a class."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def skip_gram_softmax(logits: Float[Tensor, "n v"], context: Int[Tensor, " n"]) -> Float[Tensor, ""]:
    """Return the mean over centers of `-w_context . center + ln sum_w exp(w . center)`.

    Equation 2 of Mikolov et al., Distributed Representations of Words and Phrases and their Compositionality,
    2013, https://arxiv.org/abs/1310.4546. V products a pair, where negative sampling takes K + 1.

    Args:
        logits: Products of each center's input vector with the output vectors of all words.
        context: The word seen next to each.
    """
    return F.cross_entropy(logits, context)
