"""Matched pairs against the hardest unmatched ones: their cosines, and their separation.

Cosines are not comparable across runs (an objective may spread or squeeze them at will): compare runs by AUC, d'
and overlap, which any increasing change of the scale leaves alone (AUC), or any linear one (d', overlap).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.distinct import DistinctItems, one_to_one
from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiles import exact, row_blocks
from trainer.analysis.unmatched import HardestUnmatched, cosine_blocks


def matched_cosines(image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """Return the inner product of each image with its own text."""
    cosines = np.empty(len(image), dtype=exact(image[:0]).dtype)
    for rows in row_blocks(len(image), image.shape[1]):
        cosines[rows] = np.einsum("nd,nd->n", exact(image[rows]), exact(text[rows]))
    return cosines


def hardest_texts(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    k: int = 10,
    answers: DistinctItems | None = None,
    *,
    rows: Int[np.ndarray, " m"] | None = None,
    progress: Progress = silent,
) -> HardestUnmatched:
    """Return the `k` distinct other texts most similar to each image, largest cosine first.

    A caption that many pairs share is one text. Block by block: the n x n matrix never exists. Rows with fewer than
    `k` unmatched texts are filled up with NaN and -1.

    Args:
        image: Unit embeddings.
        text: Unit embeddings; row i belongs to image i.
        k: How many texts an image keeps.
        answers: Which texts are one, and which count as matched; None: all differ, and only row i does.
        rows: The images that ask, a sample; None: all. Every image is compared with all texts.
    """
    rows = np.arange(len(image)) if rows is None else rows
    answers = one_to_one(len(text)) if answers is None else answers
    hardest = HardestUnmatched(len(rows), k, exact(text[:0]).dtype, answers)
    for block in cosine_blocks(image, text, answers, rows, note="comparing pairs", progress=progress):
        hardest.take(block)
    return hardest


def auc(matched: Float[np.ndarray, "*a"], unmatched: Float[np.ndarray, "*b"]) -> float:
    """Return the probability that a matched cosine exceeds an unmatched one, ties counted half; 1 is perfect.

    Without any relation it is .5 against unmatched cosines as they come, and far less against each image's most
    similar ones, which are a maximum over all texts: see `trainer.analysis.shuffled`.
    The Mann-Whitney statistic divided by the number of comparisons. NaN values are left out; NaN if nothing is left.
    """
    matched, unmatched = _present(matched), np.sort(_present(unmatched))
    if not (len(matched) and len(unmatched)):
        return float("nan")
    below = np.searchsorted(unmatched, matched, side="left")
    not_above = np.searchsorted(unmatched, matched, side="right")
    return float((below + not_above).sum() / 2 / len(matched) / len(unmatched))


def d_prime(matched: Float[np.ndarray, "*a"], unmatched: Float[np.ndarray, "*b"]) -> float:
    """Return the difference of means in units of the pooled standard deviation (RMS of both).

    NaN values are left out; NaN if a side is empty or neither side varies.
    """
    matched, unmatched = _present(matched), _present(unmatched)
    if not (len(matched) and len(unmatched)):
        return float("nan")
    spread = np.sqrt((matched.var() + unmatched.var()) / 2)
    return float((matched.mean() - unmatched.mean()) / spread) if spread > 0 else float("nan")


def overlap(matched: Float[np.ndarray, "*a"], unmatched: Float[np.ndarray, "*b"], *, bins: int = 100) -> float:
    """Return the shared area of both normalized histograms over their joint range: 0 disjoint, 1 equal.

    Small where matched cosines are larger, and just as small where they are smaller: AUC says which. Of few values it
    is too small: two samples of 50 of one normal distribution give about .4.
    The overlapping coefficient (Weitzman, Measures of overlap of income distributions, 1970), from `bins` bins.
    NaN values are left out; NaN if a side is empty.
    """
    matched, unmatched = _present(matched), _present(unmatched)
    if not (len(matched) and len(unmatched)):
        return float("nan")
    low, high = min(matched.min(), unmatched.min()), max(matched.max(), unmatched.max())
    if low == high:
        return 1.0
    edges = np.linspace(low, high, bins + 1)
    shares = [np.histogram(values, edges)[0] / len(values) for values in (matched, unmatched)]
    return float(np.minimum(*shares).sum())


def _present(values: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, " n"]:
    flat = np.asarray(values, dtype=np.float64).ravel()
    return flat[~np.isnan(flat)]
