"""InfoLOOB, one direction: InfoNCE that leaves the match out of the denominator."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from trainer.losses.off_diagonal import needs_two, off_diagonal_logsumexp
from trainer.losses.precision import full_precision


@full_precision
def info_loob(
    anchors: Float[Tensor, "n d"],
    samples: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
) -> Float[Tensor, ""]:
    """Mean over anchors of the leave-one-out bound, times tau as in CLOOB.

    Often negative: that is normal. `ln(n - 1) / inv_tau` when all cosines are equal. The factor tau keeps the
    size of the gradient independent of the temperature. Poole et al., On Variational Bounds of Mutual Information,
    2019, https://arxiv.org/abs/1905.06922; Fuerst et al., CLOOB: Modern Hopfield Networks with InfoLOOB Outperform
    CLIP, 2022, https://arxiv.org/abs/2110.11316

    Args:
        anchors: Unit rows that look for their match.
        samples: Unit rows; row k matches anchor k, all others are its negatives.
        inv_tau: Inverse temperature.

    Raises:
        ValueError: A single pair: nothing is left once the match is left out.
    """
    needs_two(len(anchors), "info_loob")
    logits = inv_tau * (anchors @ samples.T)
    return (off_diagonal_logsumexp(logits) - logits.diagonal()).mean() / inv_tau
