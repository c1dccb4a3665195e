"""The logits of 2n anchors among two augmented views, shared by SimCLR's three objectives."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from trainer.losses.batch_size import needs_two
from trainer.losses.samplers import semi_hard


def split_cosines(
    view_a: Float[Tensor, "n d"], view_b: Float[Tensor, "n d"], loss: str
) -> tuple[Float[Tensor, " m"], Float[Tensor, "m k"]]:
    """Return the cosine of each of the m = 2n anchors with its other view, and with k = 2n - 2 views of other images.

    Raises:
        ValueError: A single image has no negatives.
    """
    needs_two(len(view_a), loss)
    views = torch.cat([view_a, view_b])
    n, m = len(view_a), len(views)
    cosines = views @ views.T
    anchor = torch.arange(m, device=views.device)[:, None]
    partner = (anchor + n) % m
    # The columns of each row but these two; a mask as an index would wait for the device.
    other = torch.arange(m - 2, device=views.device).expand(m, -1)
    for left_out in (torch.minimum(anchor, partner), torch.maximum(anchor, partner)):
        other = other + (other >= left_out)
    return cosines.gather(1, partner)[:, 0], cosines.gather(1, other)


def semi_hard_cosines(matched: Float[Tensor, " m"], unmatched: Float[Tensor, "m k"]) -> Float[Tensor, "m 1"]:
    """Return of each anchor the cosine of one negative: the largest below its match, the smallest where none is below.

    Semi-hard mining as in Chen et al., SimCLR, 2020, section 5.1, and Schroff et al., FaceNet, 2015, by cosines.
    """
    index = semi_hard(-unmatched.detach(), torch.ones_like(unmatched, dtype=torch.bool), -matched.detach()[:, None])
    return unmatched.gather(1, index[:, None])
