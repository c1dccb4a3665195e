"""ConVIRT: the weighted sum of both directions of InfoNCE."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision
from trainer.losses.right_answers import Answers
from trainer.losses.tiles import both_logsumexps


@full_precision
def convirt(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    image_weight: float,
    *,
    answers: Answers = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """Return `image_weight` times InfoNCE from images to texts plus the rest times InfoNCE from texts to images.

    Equations 2-4 of Zhang et al., Contrastive Learning of Medical Visual Representations from Paired Images and
    Text, 2020, https://arxiv.org/abs/2010.00747 (there: tau 0.1, image_weight 0.75)

    Args:
        image: Unit-length image embeddings.
        text: Unit-length text embeddings; row k describes image k.
        image_weight: Share of the image-to-text direction, in [0, 1].
        answers: Which texts of the batch are right answers of which images, and so no negatives; None: the match alone.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.

    Raises:
        ValueError: A weight outside [0, 1].
    """
    if not 0 <= image_weight <= 1:
        raise ValueError(f"image_weight {image_weight} must lie between 0 and 1")
    matched = inv_tau * (image * text).sum(dim=1)
    to_text, to_image = both_logsumexps(image, text, inv_tau, answers=answers, tile=tile)
    return (image_weight * to_text + (1 - image_weight) * to_image - matched).mean()
