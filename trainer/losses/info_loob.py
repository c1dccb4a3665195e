"""InfoLOOB, one direction: InfoNCE without the match in the denominator."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from trainer.losses.batch_size import needs_two
from trainer.losses.precision import full_precision
from trainer.losses.right_answers import Answers
from trainer.losses.tiles import above_match, row_logsumexp


@full_precision
def info_loob(
    anchors: Float[Tensor, "n d"],
    samples: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    *,
    answers: Answers = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """Return the mean over anchors of `ln sum_{j != i} exp(S_ij) - S_ii`, times tau as in CLOOB.

    S is `inv_tau anchors samples^T`. Often negative: that is normal. `ln(n - 1) / inv_tau` when all cosines are
    equal. An anchor without any negative adds 0. The factor tau keeps the size of the gradient independent of the
    temperature. Poole et al., On Variational Bounds of Mutual Information, 2019, https://arxiv.org/abs/1905.06922;
    Fuerst et al., CLOOB: Modern Hopfield Networks with InfoLOOB Outperform CLIP, 2022,
    https://arxiv.org/abs/2110.11316

    Args:
        anchors: Unit rows that look for their match.
        samples: Unit rows; row k matches anchor k, all others are its negatives.
        answers: Which samples are right answers of which anchors, and so no negatives; None: the match alone.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.

    Raises:
        ValueError: A single pair: nothing is left once the match is left out.
    """
    needs_two(len(anchors), "info_loob")
    matched = inv_tau * (anchors * samples).sum(dim=1)
    others = row_logsumexp(anchors, samples, inv_tau, leave_out_matched=True, answers=answers, tile=tile)
    return above_match(others, matched).mean() / inv_tau
