"""Skip-gram with the hierarchical softmax: a word is a path of yes-no decisions in a binary tree."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def skip_gram_tree(
    scores: Float[Tensor, "n depth"], signs: Float[Tensor, "n depth"], used: Bool[Tensor, "n depth"]
) -> Float[Tensor, ""]:
    """Return the mean over centers of `-sum_j ln sigmoid(s_j node_j . center)` over the path of the context.

    Equation 3 of Mikolov et al., 2013, https://arxiv.org/abs/1310.4546; the probabilities of all words sum to 1. About
    log2 V products a pair.

    Args:
        scores: Products of each center's input vector with the vectors of the nodes on the path.
        signs: 1 where the path goes left, -1 where it goes right.
        used: Nodes of the path; shorter paths are padded.
    """
    return -F.logsigmoid(signs * scores).masked_fill(~used, 0).sum(dim=1).mean()
