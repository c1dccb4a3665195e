"""NT-Xent, SimCLR's objective: find the other view of the same image among all views."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision
from trainer.losses.two_views import split_cosines


@full_precision
def nt_xent(
    view_a: Float[Tensor, "n d"],
    view_b: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
) -> Float[Tensor, ""]:
    """Return the mean over 2n views of the cross-entropy of their partner among the 2n - 1 other views.

    Equation 1 of Chen et al., A Simple Framework for Contrastive Learning of Visual Representations, 2020,
    https://arxiv.org/abs/2002.05709 (their code returns twice this mean).

    Args:
        view_a: Unit rows, one augmentation of each image.
        view_b: Unit rows, another; row k shows the same image in both.

    Raises:
        ValueError: A single image.
    """
    matched, unmatched = split_cosines(view_a, view_b, "nt_xent")
    logits = inv_tau * torch.cat([matched[:, None], unmatched], dim=1)
    return (torch.logsumexp(logits, dim=1) - logits[:, 0]).mean()
