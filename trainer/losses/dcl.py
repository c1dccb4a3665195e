"""DCL: NT-Xent without the other view of the same image in the denominator; DCLW gives hard pairs more weight."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision
from trainer.losses.two_views import split_cosines


@full_precision
def dcl(
    view_a: Float[Tensor, "n d"],
    view_b: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    *,
    sigma: float | None = None,
) -> Float[Tensor, ""]:
    """Return the mean over 2n views of `ln sum_k exp(u v_k / tau) - w u v / tau`, v_k the views of other images.

    Without sigma w is 1: DCL. With it `w_i = 2 - exp(u_i v_i / sigma) / mean_j exp(u_j v_j / sigma)`: DCLW, whose
    weights have mean 1 and are larger the less the two views of an image agree. No gradient follows the weights.
    Equations 6 and 7 of Yeh et al., Decoupled Contrastive Learning, 2022, https://arxiv.org/abs/2110.06848. Between an
    image and its text the same bound is InfoLOOB.

    Args:
        view_a: Unit rows, one augmentation of each image.
        view_b: Unit rows, another; row k shows the same image in both.
        sigma: Of the weights; None: no weights.

    Raises:
        ValueError: A single image.
    """
    matched, unmatched = split_cosines(view_a, view_b, "dcl")
    weight = torch.ones_like(matched)
    if sigma is not None:
        # Both directions of a pair have its cosine, so the mean over 2n anchors is that over n pairs.
        weight = 2 - len(matched) * torch.softmax(matched.detach() / sigma, dim=0)
    return (torch.logsumexp(inv_tau * unmatched, dim=1) - inv_tau * weight * matched).mean()
