"""Inspect one batch: its logits, the saturation of its anchors, and the weight of each negative."""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float
from msgspec import Struct

from trainer.analysis.losses import hopfield_retrieval
from trainer.analysis.mispair_evidence import FENCE, lower_fence
from trainer.analysis.tiles import exact
from trainer.analysis.units import Units

MOST_LIKELY: Final = 50
"""Likely false negatives of a batch that are returned at most."""

Side = Literal["pairs", "images", "texts"]
"""What is compared: images with texts, or the two retrievals among the images, or those among the texts."""


class BatchWeights(Struct, frozen=True):
    """The weights of one batch: anchors in rows, samples in columns."""

    logits: Float[np.ndarray, "n n"]  # Cosines times 1/tau.
    # Weight of every sample in the gradient of InfoNCE on the anchor, the match's own share p included.
    infonce: Float[np.ndarray, "n n"]
    # The same of InfoLOOB: the match left out, so the negatives of a row sum to 1; 0 on the diagonal.
    infoloob: Float[np.ndarray, "n n"]
    # 1 - p of every anchor: what is left of InfoNCE's gradient. InfoLOOB keeps all of it.
    unsaturated: Float[np.ndarray, " n"]


def seen_by(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], beta: float | None, side: Side
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]:
    """Return the anchors and samples that the objective compares, after Hopfield retrieval if `beta` is given."""
    image, text = exact(image), exact(text)
    if beta is None or side == "pairs":
        return image, text
    if side == "images":
        return hopfield_retrieval(image, image, beta), hopfield_retrieval(text, image, beta)
    return hopfield_retrieval(text, text, beta), hopfield_retrieval(image, text, beta)


def batch(
    anchors: Float[np.ndarray, "n d"],
    samples: Float[np.ndarray, "n d"],
    inv_tau: float,
    right: Bool[np.ndarray, "n n"] | None = None,
) -> BatchWeights:
    """Return the batch of matched rows at this temperature.

    Args:
        anchors: Row i is matched with row i of the samples.
        samples: What they are compared with.
        inv_tau: Of the logits.
        right: Samples that are right answers to an anchor, too: they are no negatives, and have no weight. None: none
            but the match is.

    Raises:
        ValueError: Fewer than 2 rows: nothing is left once the match is left out.
    """
    n = len(anchors)
    if n < 2:
        raise ValueError("a batch needs at least 2 pairs")
    logits = inv_tau * (exact(anchors).astype(np.float64) @ exact(samples).astype(np.float64).T)
    without = logits.copy() if right is None else np.where(right, -np.inf, logits)
    np.fill_diagonal(without, np.diag(logits))
    infonce = _softmax(without)
    np.fill_diagonal(without, -np.inf)
    infoloob = _softmax(without)
    # 1 - p as such would round to 0 from 1e-16 on. Without any negative, p is 1.
    top = without.max(1)
    finite = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        rest = finite + np.log(np.exp(without - finite[:, None]).sum(1))
    unsaturated = np.exp(-np.logaddexp(0.0, np.diag(logits) - rest))
    return BatchWeights(logits, infonce, infoloob, unsaturated)


def pull_lengths(
    batch: BatchWeights, samples: Float[np.ndarray, "n d"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return tau times the gradient norm on every anchor, for InfoNCE and for InfoLOOB.

    `|sum_j w_ij y_j - y_i|`; InfoNCE's is `1 - p` times InfoLOOB's. Fuerst et al., CLOOB, 2022,
    https://arxiv.org/abs/2110.11316, gradients of InfoNCE and InfoLOOB.
    """
    samples = exact(samples).astype(np.float64)
    loob = np.linalg.norm(batch.infoloob @ samples - samples, axis=1)
    return batch.unsaturated * loob, loob


def likely_false_negatives(
    batch: BatchWeights,
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    units: Units,
    *,
    masked: bool = False,
    most: int = MOST_LIKELY,
) -> list[tuple[int, int, float, float, str]]:
    """Return likely false negatives: anchor, sample, weight in InfoLOOB, cosine of their texts or images, reason.

    A negative is likely false where its caption is a right answer to the anchor's picture, or the other way round, or
    where the two texts, or the two images, are alike by the run's own measure (`alike_limit`). Each unordered pair
    once, the largest weight first. Where right answers are `masked`, these are no negatives.
    """
    texts, images = (_cosines(part) for part in (text, image))
    rows = np.arange(len(units))
    right = units.right(rows, rows)
    others = np.triu(~(right | right.T), 1)
    alike = np.logical_or.reduce([part >= alike_limit(part[others]) for part in (texts, images)])
    same = right | right.T
    if masked:
        alike &= ~(right & right.T)
        same = right ^ right.T
    weight = np.maximum(batch.infoloob, batch.infoloob.T)
    pairs = []
    for i, j in zip(*np.nonzero(np.triu(same | alike, 1)), strict=True):
        if same[i, j]:
            reason, cosine = _same(units, i, j), 1.0
        elif texts[i, j] >= images[i, j]:
            reason, cosine = "texts alike", float(texts[i, j])
        else:
            reason, cosine = "images alike", float(images[i, j])
        first, second = (i, j) if batch.infoloob[i, j] >= batch.infoloob[j, i] else (j, i)
        pairs.append((int(first), int(second), float(weight[i, j]), cosine, reason))
    pairs.sort(key=lambda row: (-row[2], row[0], row[1]))
    return pairs[:most]


def alike_limit(cosines: Float[np.ndarray, " m"]) -> float:
    """Return the cosine from which two items are alike to a run, by its cosines of different items.

    The lower fence of the logarithm of the distances `1 - cosine`, by the rule of `mispair_evidence.suspected`: no
    cosine means the same in two runs. In the narrow cone of a run that has hardly trained all items have a cosine of
    .99, and in a spread one .8 is far from all others. Infinite where distances do not differ beyond rounding, which
    is that of float32.
    """
    distances = np.log(np.maximum(1 - cosines, 1e-6))
    limit = lower_fence(distances, FENCE)
    spread = np.median(distances) - limit if len(distances) else 0.0
    return 1 - math.exp(limit) if spread > 1e-6 else math.inf


def _same(units: Units, i: int, j: int) -> str:
    if units.caption[i] == units.caption[j]:
        return "same caption"
    return "same picture" if units.picture[i] == units.picture[j] else "right answer"


def _softmax(logits: np.ndarray) -> np.ndarray:
    top = logits.max(1, keepdims=True)
    weights = np.exp(logits - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)


def _cosines(vectors: np.ndarray) -> np.ndarray:
    unit = exact(vectors).astype(np.float64)
    return unit @ unit.T
