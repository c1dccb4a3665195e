"""Geometry of embeddings on the sphere: gap, alignment, uniformity."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.distinct import Matching
from trainer.analysis.tiles import exact, row_blocks


def modality_gap(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "m d"], matched: Matching | None = None
) -> tuple[Float[np.ndarray, " d"], float]:
    """Return mean image minus mean text, and its norm.

    With `matched` each picture counts once, against the mean of its own captions: a picture of five captions weighs no
    more than one of a single caption, and where every picture equals its captions there is no gap.

    Liang et al., Mind the Gap: Understanding the Modality Gap, 2022, https://arxiv.org/abs/2203.02053
    """
    if matched is None or len(matched.images) == len(matched.texts) == len(image):
        gap = weighted_sum(image) / len(image) - weighted_sum(text) / len(text)
        return gap, float(np.linalg.norm(gap))
    sizes = np.diff(matched.texts.starts)
    weights = np.bincount(matched.texts.right, np.repeat(1 / sizes, sizes), len(matched.texts)) / len(sizes)
    mean = weighted_sum(text, matched.texts.rows, weights)
    gap = weighted_sum(image, matched.images.rows) / len(matched.images) - mean
    return gap, float(np.linalg.norm(gap))


def weighted_sum(
    vectors: Float[np.ndarray, "n d"],
    items: Int[np.ndarray, " g"] | None = None,
    weights: Float[np.ndarray, " g"] | None = None,
) -> Float[np.ndarray, " d"]:
    """Return the sum of some rows in double precision, block by block: a mapped file is never copied whole."""
    total = np.zeros(vectors.shape[1])
    for part in row_blocks(len(vectors) if items is None else len(items), vectors.shape[1]):
        block = exact(vectors[part] if items is None or len(items) == len(vectors) else vectors[items[part]])
        total += block.sum(0, dtype=np.float64) if weights is None else weights[part] @ block
    return total


def alignment(image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"]) -> float:
    """Return the mean squared distance of an image to its text: 0 is best, 2 is expected for unrelated directions.

    Wang & Isola, Understanding Contrastive Representation Learning through Alignment and Uniformity, 2020,
    https://arxiv.org/abs/2005.10242
    """
    return float(np.mean(((exact(image) - exact(text)).astype(np.float64) ** 2).sum(1)))


def uniformity(vectors: Float[np.ndarray, "n d"], t: float = 2.0) -> float:
    """Return log of the mean over pairs of exp(-t * squared distance): 0 if collapsed, lower is more uniform.

    Unit rows are assumed. Block by block; NaN with fewer than two rows. Wang & Isola, 2020, as `alignment`.
    """
    vectors = exact(vectors)
    n = len(vectors)
    if n < 2:
        return float("nan")
    total = 0.0
    for rows in row_blocks(n, n):
        squared = 2 - 2 * (vectors[rows] @ vectors.T)
        potential = np.exp(-t * np.maximum(squared, 0))
        potential[np.arange(len(potential)), np.arange(rows.start, rows.stop)] = 0
        total += float(potential.sum(dtype=np.float64))
    return float(np.log(total / n / (n - 1)))


def ajne(vectors: Float[np.ndarray, "n d"]) -> float:
    """Return Ajne's n/4 - (sum of pairwise angles) / (n pi): about .25 if uniform, n/4 if all rows are equal.

    Off uniformity it grows with n, so give n with it; it does not see a lack of uniformity that is symmetric about
    the origin. Prentice, On invariant tests of uniformity for directions and orientations, 1978. Block by block.
    """
    vectors = exact(vectors)
    n = len(vectors)
    total = 0.0
    for rows in row_blocks(n, n):
        angles = np.arccos(np.clip(vectors[rows] @ vectors.T, -1, 1))
        angles[np.arange(len(angles)), np.arange(rows.start, rows.stop)] = 0
        total += float(angles.sum(dtype=np.float64)) / 2
    return n / 4 - total / (n * np.pi) if n else float("nan")
