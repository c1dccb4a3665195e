"""InfoNCE after Hopfield retrieval: the ablation of CLOOB that only adds the retrieval."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from trainer.losses.hopfield_retrieval import hopfield_retrieval
from trainer.losses.info_nce import info_nce_one_way
from trainer.losses.right_answers import Answers


def hopfield_info_nce(
    image: Float[Tensor, "n d"],
    text: Float[Tensor, "n d"],
    inv_tau: float | Float[Tensor, ""],
    beta: float | Float[Tensor, ""],
    *,
    answers: Answers = None,
    tile: int | None = None,
) -> Float[Tensor, ""]:
    """Return the mean of InfoNCE among the retrieved images and InfoNCE among the retrieved texts.

    `(info_nce_one_way(U_x, U_y) + info_nce_one_way(V_y, V_x)) / 2`, with the retrievals of `cloob`.
    Ablation "InfoNCE + Hopfield" of Fuerst et al., CLOOB, 2022, https://arxiv.org/abs/2110.11316

    Args:
        image: Unit-length image embeddings.
        text: Unit-length text embeddings; row k describes image k.
        inv_tau: Inverse temperature of InfoNCE.
        beta: Inverse temperature of the retrieval.
        answers: Which texts of the batch are right answers of which images, and so no negatives; None: the match alone.
        tile: Rows computed at a time; None: all, or as many as fit where the batch is large.
    """
    of_texts = None if answers is None else answers.transposed
    images_by_image = hopfield_retrieval(image, image, beta, tile=tile)
    images_by_text = hopfield_retrieval(text, image, beta, tile=tile)
    texts_by_image = hopfield_retrieval(image, text, beta, tile=tile)
    texts_by_text = hopfield_retrieval(text, text, beta, tile=tile)
    among_images = info_nce_one_way(images_by_image, images_by_text, inv_tau, answers=answers, tile=tile)
    among_texts = info_nce_one_way(texts_by_text, texts_by_image, inv_tau, answers=of_texts, tile=tile)
    return (among_images + among_texts) / 2
