"""InfoNCE in both directions, the objective of CLIP, and in one."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision
from trainer.losses.right_answers import Answers
from trainer.losses.tiles import both_logsumexps, row_logsumexp


@full_precision
def info_nce(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    *,
    answers: Answers = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """Return the mean over both directions of the cross-entropy of finding the matched row in the batch.

    `ln n` when all cosines are equal, 0 when every match is certain. Figure 3 of Radford et al., Learning
    Transferable Visual Models From Natural Language Supervision, 2021, https://arxiv.org/abs/2103.00020

    Args:
        image: Unit-length image embeddings.
        text: Unit-length text embeddings; row k describes image k.
        inv_tau: Inverse temperature; factor on the cosines.
        answers: Which texts of the batch are right answers of which images, and so no negatives; None: the match alone.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.
    """
    matched = inv_tau * (image * text).sum(dim=1)
    to_text, to_image = both_logsumexps(image, text, inv_tau, answers=answers, tile=tile)
    return ((to_text + to_image) / 2 - matched).mean()


@full_precision
def info_nce_one_way(
    anchors: Float[Tensor, "n d"],
    samples: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    *,
    answers: Answers = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """Return the mean over anchors of the cross-entropy of finding their match among the samples.

    Equation 4 of Oord et al., Representation Learning with Contrastive Predictive Coding, 2018,
    https://arxiv.org/abs/1807.03748

    Args:
        anchors: Unit rows that look for their match.
        samples: Unit rows; row k matches anchor k, all others are its negatives.
        answers: Which samples are right answers of which anchors, and so no negatives; None: the match alone.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.
    """
    matched = inv_tau * (anchors * samples).sum(dim=1)
    return (row_logsumexp(anchors, samples, inv_tau, answers=answers, tile=tile) - matched).mean()
