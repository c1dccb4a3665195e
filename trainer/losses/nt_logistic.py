"""NT-Logistic of SimCLR's table 2: binary classification of matched and unmatched views."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision
from trainer.losses.two_views import semi_hard_cosines, split_cosines


@full_precision
def nt_logistic(
    view_a: Float[Tensor, "n d"],
    view_b: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    *,
    semi_hard: bool = False,
) -> Float[Tensor, ""]:
    """Return the mean over 2n views of `-ln sigmoid(s+) - sum over negatives of ln sigmoid(-s-)`, s = cosine / tau.

    Table 2 of Chen et al., SimCLR, 2020, https://arxiv.org/abs/2002.05709. The table gives one negative; all
    2n - 2 of the batch are summed here, as NT-Xent does and as SigLIP, its modern form.

    Args:
        view_a: Unit rows, one augmentation of each image.
        view_b: Unit rows, another; row k shows the same image in both.
        semi_hard: Whether one negative of each anchor counts instead of all: the most similar one below the match.

    Raises:
        ValueError: A single image.
    """
    matched, unmatched = split_cosines(view_a, view_b, "nt_logistic")
    if semi_hard:
        unmatched = semi_hard_cosines(matched, unmatched)
    return -(F.logsigmoid(inv_tau * matched) + F.logsigmoid(-inv_tau * unmatched).sum(dim=1)).mean()
