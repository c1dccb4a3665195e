"""Pairwise ranking of words: one of the caption scores a margin above one of the others."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def pairwise_ranking(
    positive: Float[Tensor, " n"],
    negative: Float[Tensor, " n"],
    counted: Bool[Tensor, " n"],
    *,
    margin: float = 1.0,
) -> Float[Tensor, ""]:
    """Return the mean of `max(0, margin - positive + negative)` over the rows that count; 0 where none does.

    It changes two columns of the output matrix for an image. Weston, Bengio and Usunier, WSABIE, 2011,
    https://www.ijcai.org/Proceedings/11/Papers/460.pdf, without its weight by rank; considered by Joulin et al., 2015,
    https://arxiv.org/abs/1511.02251, section 3.

    Args:
        positive: Score of a word of each caption.
        negative: Score of a word that the caption lacks.
        counted: False for captions without a word of the vocabulary.
        margin: By how much the right word must lead.
    """
    hinges = (margin - positive + negative).clamp(min=0)
    weight = counted.to(hinges.dtype)
    return (hinges * weight).sum() / weight.sum().clamp(min=1)
