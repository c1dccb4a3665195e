"""CLOOB: four Hopfield retrievals, then InfoLOOB among the retrieved images and among the retrieved texts."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from trainer.losses.hopfield_retrieval import hopfield_retrieval
from trainer.losses.info_loob import info_loob


def cloob(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    beta: float | Float[Tensor, ""],
    *,
    groups: Int[Tensor, " n"] | None = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """The sum of InfoLOOB over the retrieved images and InfoLOOB over the retrieved texts, each times tau.

    `info_loob(U_x, U_y) + info_loob(V_y, V_x)`, U being what images x and texts y retrieve from the images, and V
    what they retrieve from the texts.
    `2 ln(n - 1) / inv_tau` when all cosines are equal; bounded below by `-2 + 2 ln(n - 1) / inv_tau - 2 / (n - 1)`.
    Fuerst et al., CLOOB: Modern Hopfield Networks with InfoLOOB Outperform CLIP, 2022,
    https://arxiv.org/abs/2110.11316

    Args:
        image: Unit-length image embeddings.
        text: Unit-length text embeddings; row k describes image k.
        inv_tau: Inverse temperature of InfoLOOB; keep it fixed, a learned one always falls to its clamp.
        beta: Inverse temperature of the retrieval.
        groups: Rows of one group are no negatives of each other; None: every row is its own group.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.

    Raises:
        ValueError: A single pair.
    """
    images_by_image = hopfield_retrieval(image, image, beta, tile=tile)
    images_by_text = hopfield_retrieval(text, image, beta, tile=tile)
    texts_by_image = hopfield_retrieval(image, text, beta, tile=tile)
    texts_by_text = hopfield_retrieval(text, text, beta, tile=tile)
    among_images = info_loob(images_by_image, images_by_text, inv_tau, groups=groups, tile=tile)
    return among_images + info_loob(texts_by_text, texts_by_image, inv_tau, groups=groups, tile=tile)
