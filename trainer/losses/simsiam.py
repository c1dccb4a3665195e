"""SimSiam: each view predicts the other, whose gradient is stopped."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def simsiam(
    prediction_a: Float[Tensor, "n d"],
    prediction_b: Float[Tensor, "n d"],
    projection_a: Float[Tensor, "n d"],
    projection_b: Float[Tensor, "n d"],
) -> Float[Tensor, ""]:
    """Return minus half the mean cosine of each prediction with the other view's projection; in [-1, 1].

    No gradient reaches the projections. Chen and He, Exploring Simple Siamese Representation Learning, 2020,
    https://arxiv.org/abs/2011.10566, equation 4.

    Args:
        prediction_a: Predictor output of view a, of any length.
        prediction_b: Predictor output of view b.
        projection_a: Projector output of view a.
        projection_b: Projector output of view b.
    """
    a_to_b = F.cosine_similarity(prediction_a, projection_b.detach(), dim=1)
    return -(a_to_b + F.cosine_similarity(prediction_b, projection_a.detach(), dim=1)).mean() / 2
