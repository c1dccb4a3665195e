"""Importance of each word of a caption: cosine and rank with and without it."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.tiles import exact, inner_products, ranked, row_blocks

_WORD: Final = re.compile(r"\S+")


def without_each_word(caption: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a caption's words, and the caption without each of them; a single word leaves an empty caption."""
    caption_words = tuple(_WORD.findall(caption))
    return caption_words, tuple(" ".join(caption_words[:i] + caption_words[i + 1 :]) for i in range(len(caption_words)))


def caption_effect(
    texts: Float[np.ndarray, "w d"], image: Float[np.ndarray, "n d"], row: int
) -> tuple[Float[np.ndarray, " w"], Int[np.ndarray, " w"]]:
    """Return each text's cosine to image `row`, and that image's rank (1 = best) for the text.

    An image that ties with the own one stands before it, as in `trainer.analysis.retrieval.ranks`. Block by block.
    """
    products = len(texts) * len(image)
    texts = ranked(texts, products)
    cosines = inner_products(texts, ranked(image[row : row + 1], products))[:, 0]
    before = np.zeros(len(texts), np.int64)
    for rows in row_blocks(len(image), max(len(texts), image.shape[1])):
        similar = inner_products(texts, ranked(image[rows], products))
        if rows.start <= row < rows.stop:
            # The same product may round differently as part of a matrix.
            similar[:, row - rows.start] = -np.inf
        before += (~(similar < cosines[:, None])).sum(1)
    return cosines, np.minimum(before + 1, len(image))


def text_axis(plus: Float[np.ndarray, "p d"], minus: Float[np.ndarray, "m d"]) -> Float[np.ndarray, " d"]:
    """Return the unit direction from the mean of `minus` to that of `plus`; of `plus` alone without `minus`.

    Zeros if both are the same.
    """
    towards = exact(plus).mean(0, dtype=np.float64)
    if len(minus):
        towards = towards - exact(minus).mean(0, dtype=np.float64)
    length = float(np.linalg.norm(towards))
    return towards / length if length > 1e-9 else np.zeros_like(towards)


def along(vectors: Float[np.ndarray, "n d"], axis: Float[np.ndarray, " d"]) -> Float[np.ndarray, " n"]:
    """Return each row's projection on an axis, in float32; block by block."""
    out = np.empty(len(vectors), np.float32)
    for rows in row_blocks(len(vectors), vectors.shape[1]):
        out[rows] = exact(vectors[rows]) @ axis.astype(np.float32)
    return out
