"""CLOOB: InfoLOOB among retrieved images and texts, alone or together with InfoLOOB of the embeddings."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer.losses.hopfield_retrieval import hopfield_retrieval
from trainer.losses.info_loob import info_loob
from trainer.losses.info_loob_pair import info_loob_pair
from trainer.losses.precision import full_precision
from trainer.losses.right_answers import Answers


def cloob(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    beta: float | Float[Tensor, ""],
    *,
    retrieval_share: float = 1.0,
    residual: bool = False,
    answers: Answers = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """Return InfoLOOB over the retrieved images plus InfoLOOB over the retrieved texts, each times tau.

    `info_loob(U_x, U_y) + info_loob(V_y, V_x)`, U being what images x and texts y retrieve from the images, and V
    what they retrieve from the texts.
    `2 ln(n - 1) / inv_tau` when all cosines are equal; bounded below by `-2 + 2 ln(n - 1) / inv_tau - 2 / (n - 1)`.
    Fuerst et al., CLOOB: Modern Hopfield Networks with InfoLOOB Outperform CLIP, 2022,
    https://arxiv.org/abs/2110.11316

    With a share s below 1 the loss is `s cloob + (1 - s) info_loob_pair`: a caption then learns from its image
    directly, too, and not through its weights in the retrieval alone. That and `residual` are ours.

    Args:
        image: Unit-length image embeddings.
        text: Unit-length text embeddings; row k describes image k.
        inv_tau: Inverse temperature of InfoLOOB; keep it fixed, a learned one always falls to its clamp.
        beta: Inverse temperature of the retrieval.
        retrieval_share: s, from 0 (InfoLOOB without retrieval) to 1 (as published).
        residual: Compare unit rows of embedding plus retrieval in place of the retrieval.
        answers: Which texts of the batch are right answers of which images, and so no negatives; None: the match alone.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.

    Raises:
        ValueError: A single pair.
    """
    if retrieval_share == 0:
        return info_loob_pair(image, text, inv_tau, answers=answers, tile=tile)
    of_texts = None if answers is None else answers.transposed
    images_by_image = _retrieved(image, image, beta, residual, tile)
    images_by_text = _retrieved(text, image, beta, residual, tile)
    texts_by_image = _retrieved(image, text, beta, residual, tile)
    texts_by_text = _retrieved(text, text, beta, residual, tile)
    among_images = info_loob(images_by_image, images_by_text, inv_tau, answers=answers, tile=tile)
    published = among_images + info_loob(texts_by_text, texts_by_image, inv_tau, answers=of_texts, tile=tile)
    if retrieval_share == 1:
        return published
    direct = info_loob_pair(image, text, inv_tau, answers=answers, tile=tile)
    return retrieval_share * published + (1 - retrieval_share) * direct


@full_precision
def _retrieved(
    state: Float[Tensor, "n d"],
    stored: Float[Tensor, "n d"],
    beta: float | Float[Tensor, ""],
    residual: bool,
    tile: int | None,
) -> Float[Tensor, "n d"]:
    """Return what the states retrieve; with `residual`, the normalized sum of state and retrieval."""
    retrieved = hopfield_retrieval(state, stored, beta, tile=tile)
    return F.normalize(state + retrieved, dim=1) if residual else retrieved
