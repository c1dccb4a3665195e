"""BYOL: the online network predicts the target network's projection of the other view."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def byol(
    prediction_a: Float[Tensor, "n d"],
    prediction_b: Float[Tensor, "n d"],
    target_a: Float[Tensor, "n d"],
    target_b: Float[Tensor, "n d"],
) -> Float[Tensor, ""]:
    """Return the sum over both directions of the mean of `2 - 2 cos(prediction, other view's target)`; in [0, 8].

    No gradient reaches the targets. Grill et al., Bootstrap Your Own Latent, 2020,
    https://arxiv.org/abs/2006.07733, equation 2, symmetrized.

    Args:
        prediction_a: Online prediction of view a, of any length.
        prediction_b: Online prediction of view b.
        target_a: Projection of view a by the slow network.
        target_b: Projection of view b by the slow network.
    """
    a_to_b = F.cosine_similarity(prediction_a, target_b.detach(), dim=1)
    b_to_a = F.cosine_similarity(prediction_b, target_a.detach(), dim=1)
    return (2 - 2 * a_to_b).mean() + (2 - 2 * b_to_a).mean()
