"""InfoLOOB in both directions, without retrieval: the ablation of CLOOB that only changes the bound."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from trainer.losses.batch_size import needs_two
from trainer.losses.precision import full_precision
from trainer.losses.right_answers import Answers
from trainer.losses.tiles import above_match, both_logsumexps


@full_precision
def info_loob_pair(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    *,
    answers: Answers = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """Return InfoLOOB from images to texts plus InfoLOOB from texts to images, each times tau.

    `tau mean_i(ln sum_{j != i} exp(S_ij) + ln sum_{j != i} exp(S_ji) - 2 S_ii)`, S the cosines times `inv_tau`.

    Ablation "InfoLOOB" of Fuerst et al., CLOOB, 2022, https://arxiv.org/abs/2110.11316

    Args:
        image: Unit-length image embeddings.
        text: Unit-length text embeddings; row k describes image k.
        answers: Which texts of the batch are right answers of which images, and so no negatives; None: the match alone.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.

    Raises:
        ValueError: A single pair.
    """
    needs_two(len(image), "info_loob_pair")
    matched = inv_tau * (image * text).sum(dim=1)
    to_text, to_image = both_logsumexps(image, text, inv_tau, leave_out_matched=True, answers=answers, tile=tile)
    return (above_match(to_text, matched) + above_match(to_image, matched)).mean() / inv_tau
