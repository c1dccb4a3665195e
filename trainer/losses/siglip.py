"""SigLIP: binary classification of every image-text pair of the batch."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision
from trainer.losses.right_answers import Answers
from trainer.losses.tiles import softplus_sum


@full_precision
def siglip(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    scale: float | Float[Tensor, ""],
    bias: float | Float[Tensor, ""],
    *,
    answers: Answers = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """Return the sum over all pairs of the logistic loss of matching, divided by the number of images.

    `-1/n sum_ij ln sigmoid(z_ij (scale x_i . y_j + bias))`, z being 1 for a match and -1 for all others. Zhai et al.,
    Sigmoid Loss for Language Image Pre-Training, 2023, https://arxiv.org/abs/2303.15343

    Args:
        image: Unit-length image embeddings.
        text: Unit-length text embeddings; row k describes image k, all others are negatives.
        scale: Positive factor on the cosine.
        bias: Added to every logit; about `-ln(n - 1) - scale * mean cosine` starts small batches well.
        answers: Which texts of the batch are right answers of which images, and so no negatives; None: the match alone.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.
    """
    # -ln sigmoid(-x) = softplus(x) for the negatives, and softplus(x) - x for the matches.
    matched = scale * (image * text).sum(dim=1) + bias
    return (softplus_sum(image, text, scale, bias, answers=answers, tile=tile) - matched.sum()) / len(image)
