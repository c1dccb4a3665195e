"""DHN-NCE: InfoLOOB with larger weights for harder negatives."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from trainer.losses.batch_size import needs_two
from trainer.losses.precision import full_precision
from trainer.losses.tiles import both_logsumexps, group_sizes


@full_precision
def dhn_nce(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    beta_image: float,
    beta_text: float,
    *,
    detach_weights: bool = False,
    groups: Int[Tensor, " n"] | None = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """Return the sum of both directions' batch means; the gradient on a matched logit is -2/n.

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
        groups: Rows of one group are no negatives of each other; None: every row is its own group.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.

    Raises:
        ValueError: A single pair.
    """
    needs_two(len(image), "dhn_nce")
    if groups is not None and (groups == groups[0]).all():
        return (image.sum() + text.sum()) * 0  # no pair has a negative, so there is nothing to learn
    matched = inv_tau * (image * text).sum(dim=1)
    hardness = (beta_image, beta_text)
    left_out = {"leave_out_matched": True, "groups": groups, "tile": tile}
    sharp = both_logsumexps(image, text, inv_tau, factors=(1 + beta_image, 1 + beta_text), **left_out)
    flat = both_logsumexps(image, text, inv_tau, factors=hardness, **left_out)
    to_text, to_image = (
        _negatives(*sums, beta, detach_weights) for *sums, beta in zip(sharp, flat, hardness, strict=True)
    )
    # The weights of an anchor's negatives sum to their number.
    count = len(image) - group_sizes(groups, len(image))
    return (to_text + to_image - 2 * matched + 2 * count.to(matched).log()).mean()


def _negatives(
    sharp: Float[Tensor, " n"], flat: Float[Tensor, " n"], beta: float, detach_weights: bool
) -> Float[Tensor, " n"]:
    """Return logsumexp of one direction's weighted negatives minus the logarithm of their number."""
    if detach_weights:
        # With constant weights the gradient is softmax((1 + beta) S) alone: that of `sharp` / (1 + beta).
        sharp, flat = sharp / (1 + beta) + (sharp * beta / (1 + beta)).detach(), flat.detach()
    return sharp - flat
