"""DHN-NCE: InfoLOOB whose negatives weigh more the harder they are."""

from __future__ import annotations

import math

from jaxtyping import Float
from torch import Tensor

from trainer.losses.batch_size import needs_two
from trainer.losses.precision import full_precision
from trainer.losses.tiles import row_logsumexp


@full_precision
def dhn_nce(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    beta_image: float,
    beta_text: float,
    *,
    detach_weights: bool = False,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """The mean over the batch of each direction, summed over the two; the gradient on a matched logit is -2/n.

    The closed form `-S_ii + ln(n-1) + lse((1+beta) S_ij) - lse(beta S_ij)`, both sums over j != i. With both
    betas 0 it is `inv_tau (info_loob(image, text) + info_loob(text, image))`. Koleilat et al., MedCLIP-SAM,
    2024, https://arxiv.org/abs/2403.20253, equations 1-4; neither the derivation that merges the match into the
    sum (it is NaN for aligned pairs) nor the authors' code (it attracts the hardest negatives) is followed.

    Args:
        image: Unit-length image embeddings.
        text: Unit-length text embeddings; row k describes image k.
        inv_tau: Inverse temperature.
        beta_image: Hardness of the image-to-text direction; 0 weighs all negatives alike.
        beta_text: Hardness of the text-to-image direction.
        detach_weights: Treat the weights as constants; then no easy negative is ever attracted.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.

    Raises:
        ValueError: A single pair.
    """
    needs_two(len(image), "dhn_nce")
    matched = inv_tau * (image * text).sum(dim=1)
    to_text = _negatives(image, text, inv_tau, beta_image, detach_weights, tile)
    to_image = _negatives(text, image, inv_tau, beta_text, detach_weights, tile)
    return (to_text + to_image - 2 * matched).mean()


def _negatives(
    anchors: Float[Tensor, "n d"],
    samples: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    beta: float,
    detach_weights: bool,
    tile: int | None,
) -> Float[Tensor, " n"]:
    sharp = row_logsumexp(anchors, samples, (1 + beta) * inv_tau, leave_out_matched=True, tile=tile)
    flat = row_logsumexp(anchors, samples, beta * inv_tau, leave_out_matched=True, tile=tile)
    if detach_weights:
        # With constant weights the gradient is softmax((1 + beta) S) alone: that of `sharp` / (1 + beta).
        sharp, flat = sharp / (1 + beta) + (sharp * beta / (1 + beta)).detach(), flat.detach()
    return math.log(len(anchors) - 1) + sharp - flat
