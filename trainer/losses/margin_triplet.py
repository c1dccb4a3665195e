"""Margin triplet of SimCLR's table 2: each unmatched view is a margin less similar than the matched one."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision
from trainer.losses.two_views import semi_hard_cosines, split_cosines


@full_precision
def margin_triplet(
    view_a: Float[Tensor, "n d"],
    view_b: Float[Tensor, "n d"],
    margin: float,
    *,
    semi_hard: bool = False,
) -> Float[Tensor, ""]:
    """Return the mean over 2n views of the summed hinge `max(s- - s+ + margin, 0)` over their 2n - 2 negatives.

    Table 2 of Chen et al., SimCLR, 2020, https://arxiv.org/abs/2002.05709 (cosines, no temperature).

    Args:
        view_a: Unit rows, one augmentation of each image.
        view_b: Unit rows, another; row k shows the same image in both.
        margin: By how much the matched cosine must lead.
        semi_hard: Whether one negative of each anchor counts instead of all: the most similar one below the match.

    Raises:
        ValueError: A single image.
    """
    matched, unmatched = split_cosines(view_a, view_b, "margin_triplet")
    if semi_hard:
        unmatched = semi_hard_cosines(matched, unmatched)
    return (unmatched - matched[:, None] + margin).clamp(min=0).sum(dim=1).mean()
