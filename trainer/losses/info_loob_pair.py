"""InfoLOOB in both directions, without retrieval: the ablation of CLOOB that only changes the bound."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from trainer.losses.info_loob import info_loob


def info_loob_pair(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    *,
    groups: Int[Tensor, " n"] | None = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """The sum of InfoLOOB from images to texts and from texts to images, each times tau.

    Ablation "InfoLOOB" of Fuerst et al., CLOOB, 2022, https://arxiv.org/abs/2110.11316

    Args:
        image: Unit-length image embeddings.
        text: Unit-length text embeddings; row k describes image k.
        inv_tau: Inverse temperature.
        groups: Rows of one group are no negatives of each other; None: every row is its own group.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.

    Raises:
        ValueError: A single pair.
    """
    to_text = info_loob(image, text, inv_tau, groups=groups, tile=tile)
    return to_text + info_loob(text, image, inv_tau, groups=groups, tile=tile)
