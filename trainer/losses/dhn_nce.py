"""DHN-NCE: InfoLOOB whose negatives weigh more the harder they are."""

from __future__ import annotations

import math

from jaxtyping import Float
from torch import Tensor

from trainer.losses.off_diagonal import needs_two, off_diagonal_logsumexp
from trainer.losses.precision import full_precision


@full_precision
def dhn_nce(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    beta_image: float,
    beta_text: float,
    *,
    detach_weights: bool = False,
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

    Raises:
        ValueError: A single pair.
    """
    needs_two(len(image), "dhn_nce")
    logits = inv_tau * (image @ text.T)
    to_text = _one_way(logits, beta_image, detach_weights)
    return to_text + _one_way(logits.T, beta_text, detach_weights)


def _one_way(logits: Float[Tensor, "n n"], beta: float, detach_weights: bool) -> Float[Tensor, ""]:
    # The weights as logarithms: ln W_ij = ln(n-1) + beta S_ij - lse_{k != i}(beta S_ik).
    log_weights = math.log(len(logits) - 1) + beta * logits - off_diagonal_logsumexp(beta * logits)[:, None]
    if detach_weights:
        log_weights = log_weights.detach()
    return (off_diagonal_logsumexp(logits + log_weights) - logits.diagonal()).mean()
