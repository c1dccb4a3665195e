"""DHN-NCE: InfoLOOB with larger weights for harder negatives."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from trainer.losses.batch_size import needs_two
from trainer.losses.precision import full_precision
from trainer.losses.right_answers import Answers
from trainer.losses.tiles import above_match, both_logsumexps, negatives


@full_precision
def dhn_nce(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    beta_image: float,
    beta_text: float,
    *,
    detach_weights: bool = False,
    answers: Answers = None,
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
        beta_image: Hardness of the image-to-text direction; 0 weighs all negatives alike.
        beta_text: Hardness of the text-to-image direction.
        detach_weights: Treat the weights as constants; then no easy negative is ever attracted.
        answers: Which texts of the batch are right answers of which images, and so no negatives; None: the match alone.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.

    Raises:
        ValueError: A single pair.
    """
    needs_two(len(image), "dhn_nce")
    matched = inv_tau * (image * text).sum(dim=1)
    hardness = (beta_image, beta_text)
    left_out: dict[str, Any] = {"leave_out_matched": True, "answers": answers, "tile": tile}
    sharp = both_logsumexps(image, text, inv_tau, factors=(1 + beta_image, 1 + beta_text), **left_out)
    flat = both_logsumexps(image, text, inv_tau, factors=hardness, **left_out)
    to_text, to_image = (
        _negatives(*sums, beta, detach_weights) for *sums, beta in zip(sharp, flat, hardness, strict=True)
    )
    # The weights of an anchor's negatives sum to their number.
    counts = negatives(answers, len(image), matched.device).to(matched).clamp(min=1).log()
    return (above_match(to_text, matched) + above_match(to_image, matched) + counts.sum(0)).mean()


def _negatives(
    sharp: Float[Tensor, " n"], flat: Float[Tensor, " n"], beta: float, detach_weights: bool
) -> Float[Tensor, " n"]:
    """Return logsumexp of one direction's weighted negatives minus the logarithm of their number; -inf without any."""
    if detach_weights:
        # With constant weights the gradient is softmax((1 + beta) S) alone: that of `sharp` / (1 + beta).
        sharp, flat = sharp / (1 + beta) + (sharp * beta / (1 + beta)).detach(), flat.detach()
    return torch.where(flat.isneginf(), flat, sharp - flat)
