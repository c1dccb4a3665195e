"""Evidence that an image and its caption do not belong together, in units that are equal in every run."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from msgspec import Struct

from trainer.analysis.distinct import DistinctItems, Matching
from trainer.analysis.progress import Progress, part_of, silent
from trainer.analysis.tiles import exact, row_blocks

FENCE: Final = 7.0
"""Default of `suspected`: of clean pairs of Scenes at most 0.7 % are suspected, of planted ones 94 % found."""


class MispairEvidence(Struct, frozen=True):
    """How well each image and its own caption fit, compared with what does not belong together."""

    cosine: Float[np.ndarray, " n"]  # Of each pair.
    margin: Float[np.ndarray, " n"]  # `(cosine - mean) / deviation` of each pair.
    mean: float  # Of all unmatched cosines of the run.
    deviation: float
    # Place (1 = best) of the own caption among it and the captions of other images.
    caption_rank: Int[np.ndarray, " n"]
    image_rank: Int[np.ndarray, " n"]  # Place of the own image among it and the images of other captions.
    best_caption: Int[np.ndarray, " n"]  # Row of the most similar caption of another image; -1 without one.
    best_image: Int[np.ndarray, " n"]  # Row of the most similar image of another caption; -1 without one.


def mispair_evidence(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    matching: Matching,
    progress: Progress = silent,
    *,
    favor: Float[np.ndarray, " n"] | None = None,
) -> MispairEvidence:
    """Return the evidence of every pair, in two tiled passes.

    An image's other captions are no unmatched ones, and do not stand before its own. Ties stand before it, so that a
    collapsed model finds nothing good.

    Args:
        image: Unit embeddings.
        text: Unit embeddings; row i belongs to image i.
        matching: Which captions and which images are one, and which belong together.
        favor: Added to the own cosine of each pair.
    """
    image, text = exact(image), exact(text)
    cosine = np.einsum("nd,nd->n", image, text, dtype=np.float64)
    cosine = cosine if favor is None else cosine + favor
    captions = _one_way(image, text, matching.texts, cosine, part_of(progress, 0, 2))
    images = _one_way(text, image, matching.images, cosine, part_of(progress, 1, 2))
    count, total, squares = captions.count, captions.total, captions.squares
    mean = total / count if count else math.nan
    deviation = math.sqrt(max(squares / count - mean * mean, 0.0)) if count else math.nan
    margin = (cosine - mean) / deviation if deviation > 1e-9 else np.full(len(cosine), math.nan)
    return MispairEvidence(
        cosine, margin, mean, deviation, captions.rank, images.rank, captions.best_other, images.best_other
    )


def suspected(
    margin: Float[np.ndarray, " n"],
    caption_rank: Int[np.ndarray, " n"],
    image_rank: Int[np.ndarray, " n"],
    *,
    fence: float = FENCE,
) -> tuple[Bool[np.ndarray, " n"], float]:
    """Return which pairs are suspected to be mispaired, and the margin below which they are.

    The limit is `median - fence * (median - lower quartile)` of the run's own margins: neither moves much where less
    than a quarter of the pairs are wrong, and a run that separates badly gets a lower limit instead of more alarms. A
    pair whose caption or whose image is found first is never suspected.
    """
    limit = lower_fence(margin, fence)
    below = np.less(margin, limit, where=~np.isnan(margin), out=np.zeros(len(margin), bool))
    return below & (caption_rank > 1) & (image_rank > 1), limit


def lower_fence(values: Float[np.ndarray, " n"], fence: float) -> float:
    """Return `median - fence * (median - lower quartile)`; NaN without numbers."""
    finite = values[~np.isnan(values)]
    if not len(finite):
        return math.nan
    quartile, median = np.quantile(finite, (0.25, 0.5))
    return float(median - fence * (median - quartile))


class _OneWay(Struct, frozen=True):
    rank: Int[np.ndarray, " n"]
    best_other: Int[np.ndarray, " n"]
    count: int
    total: float
    squares: float


def _one_way(
    query: np.ndarray, stored: np.ndarray, answers: DistinctItems, cosine: np.ndarray, progress: Progress
) -> _OneWay:
    gallery = answers.gallery(stored)
    n, tie = len(query), np.finfo(np.float32).eps * np.sqrt(query.shape[1])
    rank, best = np.ones(n, np.int64), np.full(n, -1, np.int64)
    count, total, squares = 0, 0.0, 0.0
    for block in row_blocks(n, len(gallery)):
        progress(block.start / max(n, 1), "comparing pairs")
        similarity = query[block] @ gallery.T
        line, cell, first = answers.cells(answers.question[block])
        right = similarity[line, cell].astype(np.float64)
        count += similarity.size - len(line)
        total += float(similarity.sum(dtype=np.float64)) - float(right.sum())
        squares += float(np.einsum("bn,bn->", similarity, similarity, dtype=np.float64)) - float((right**2).sum())
        similarity[line, cell] = -np.inf
        rank[block] = 1 + np.count_nonzero(~(similarity < (cosine[block] - tie)[:, None]), axis=1)
        others = similarity.shape[1] - np.diff(first, append=len(line))
        best[block] = np.where(others > 0, answers.rows[similarity.argmax(axis=1)], -1)
    return _OneWay(rank, best, count, total, squares)
