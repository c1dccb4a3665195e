"""Separation of two sets of cosines, with confidence intervals and densities.

Cosines are counted in `FINE` bins between the smallest and the largest one, a group of anchors. Counts are small
whatever was counted (all n x n cells too), add up over groups, and can be drawn again with other weights: that is the
bootstrap.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from msgspec import Struct

from trainer.analysis.distinct import DistinctItems, one_to_one
from trainer.analysis.progress import Progress, part_of, silent
from trainer.analysis.tiles import exact, row_blocks
from trainer.analysis.unmatched import HardestUnmatched, cosine_blocks

FINE: Final = 4000
"""Bins between the smallest and the largest cosine: a narrow cone of embeddings has as many as a wide one."""

SAMPLE: Final = 100_000
"""Unmatched pairs drawn where they are sampled."""

MEASURES: Final = ("auc", "d_prime", "overlap", "ks")

SURE: Final = ("auc", "d_prime")
"""Those with an interval: resampling adds as much noise to an overlap or a distance as there is in it already, and what
it gives does not hold the true value (in 1 to 82 of 100 samples)."""


class Bins(Struct, frozen=True):
    """`FINE` bins of equal width between two cosines; values outside count in the end bins."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The width of a bin."""
        return (self.high - self.low) / FINE

    @property
    def centers(self) -> Float[np.ndarray, " bins"]:
        """The cosine at the center of each bin."""
        return self.low + (np.arange(FINE) + 0.5) * self.width

    def places(self, cosines: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Return the bin of each cosine; none may be NaN."""
        return np.clip((np.asarray(cosines, np.float64) - self.low) / self.width, 0, FINE - 1).astype(np.int64)


def spanning(*cosines: Float[np.ndarray, "*any"]) -> Bins:
    """Return bins from the smallest to the largest cosine, ignoring NaN; equal cosines are padded."""
    finite = [part[np.isfinite(part)] for part in map(np.asarray, cosines)]
    finite = [part for part in finite if part.size]
    if not finite:
        return Bins(-1.0, 1.0)
    low, high = min(float(part.min()) for part in finite), max(float(part.max()) for part in finite)
    room = 1e-9 * max(1.0, abs(low), abs(high))
    return Bins(low, high) if high - low > room else Bins(low - room, high + room)


def bar_count(values: Float[np.ndarray, " n"], ends: tuple[float, float], most: int) -> int:
    """Return into how many bars a histogram between these ends is divided, at most `most`.

    The rule of Freedman and Diaconis (1981), bars as wide as 2 IQR / n^(1/3), or the square root of n if that is more.
    """
    finite = values[np.isfinite(values)]
    iqr = float(np.subtract(*np.percentile(finite, (75, 25)))) if len(finite) else 0.0
    by_spread = (ends[1] - ends[0]) * np.cbrt(len(finite)) / (2 * iqr) if iqr > 0 else 0.0
    return int(np.ceil(min(most, max(by_spread, np.sqrt(len(finite)), 1))))


def ks(matched: Float[np.ndarray, "*a"], unmatched: Float[np.ndarray, "*b"]) -> float:
    """Return the Kolmogorov-Smirnov statistic of both distributions: 0 equal, 1 disjoint.

    The two-sample statistic of Kolmogorov and Smirnov. No p-value: with thousands of pairs any difference is
    significant, and the distance itself says how large it is. NaN values are left out; NaN if a side is empty.
    """
    first, second = (
        np.sort(v[~np.isnan(v)]) for v in (np.asarray(x, np.float64).ravel() for x in (matched, unmatched))
    )
    if not (len(first) and len(second)):
        return float("nan")
    values = np.concatenate([first, second])
    below = (np.searchsorted(v, values, side="right") / len(v) for v in (first, second))
    return float(np.abs(np.subtract(*below)).max())


def fine_counts(
    cosines: Float[np.ndarray, " n *m"], group_of: Int[np.ndarray, " n"], bins: Bins
) -> Int[np.ndarray, "g bins"]:
    """Return how many cosines of each group are in each fine bin, ignoring NaN; row i is in group `group_of[i]`."""
    groups = int(group_of.max(initial=-1)) + 1
    flat = np.asarray(cosines, np.float64).reshape(len(cosines), -1)
    owner = np.broadcast_to(group_of[:, None], flat.shape)
    finite = np.isfinite(flat)
    return np.bincount(owner[finite] * FINE + bins.places(flat[finite]), minlength=groups * FINE).reshape(groups, FINE)


def all_unmatched(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    k: int,
    group_of: Int[np.ndarray, " m"],
    answers: DistinctItems | None = None,
    *,
    rows: Int[np.ndarray, " m"] | None = None,
    progress: Progress = silent,
) -> tuple[Int[np.ndarray, "g bins"], Bins, HardestUnmatched]:
    """Return counts of each image's cosines with all distinct other texts, and the `k` hardest of each.

    Two passes, block by block, the first for the smallest and the largest: 100,000 x 100,000 cosines take the time of
    multiplying them twice, some minutes on one core.

    Args:
        image: Unit embeddings.
        text: Unit embeddings; row i belongs to image i.
        k: How many texts an image keeps.
        group_of: Group of each asking image.
        answers: Which texts are one, and which count as matched; None: all differ, and only row i does.
        rows: The images that ask; None: all.

    Returns:
        Counts by group of anchors, their bins (which span the right cosines too), and what
        `trainer.analysis.similarity.hardest_texts` gives.
    """
    rows = np.arange(len(image)) if rows is None else rows
    answers = one_to_one(len(text)) if answers is None else answers
    counts = np.zeros((int(group_of.max(initial=-1)) + 1, FINE), np.int64)
    hardest = HardestUnmatched(len(rows), k, exact(text[:0]).dtype, answers)
    ends = [
        np.array([np.nanmin(block.cosines), np.nanmax(block.cosines)])
        for block in cosine_blocks(
            image, text, answers, rows, note="looking for the ends", progress=part_of(progress, 0, 2)
        )
        if np.isfinite(block.cosines).any()
    ]
    bins = spanning(*ends)
    first_half = part_of(progress, 1, 2)
    for block in cosine_blocks(image, text, answers, rows, note="counting unmatched pairs", progress=first_half):
        groups = group_of[block.rows]
        for cosines, group in zip(block.cosines, groups, strict=True):
            # A row at a time: its bins stay in the cache, and no mask as large as the block is made.
            counts[group] += _binned(cosines, bins)
        own_cosine = block.cosines[block.own]
        finite = np.isfinite(own_cosine)
        np.subtract.at(counts, (groups[block.own[0][finite]], bins.places(own_cosine[finite])), 1)
        hardest.take(block)
    return counts, bins, hardest


def sampled_unmatched(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "n d"],
    count: int,
    answers: DistinctItems | None = None,
    *,
    rows: Int[np.ndarray, " m"] | None = None,
    seed: int = 0,
) -> Float[np.ndarray, "m c"]:
    """Return cosines of each image with `ceil(count / m)` random texts; NaN where its own was drawn.

    Each distinct text of `answers` (None: every one) is as likely as another, however many pairs share it.
    """
    rows = np.arange(len(image)) if rows is None else rows
    answers = one_to_one(len(text)) if answers is None else answers
    text = answers.gallery(text)
    if not len(rows):
        return np.zeros((0, 1))
    each = max(1, -(-count // len(rows)))
    drawn = np.random.default_rng(seed).integers(0, len(text), (len(rows), each))
    cosines = np.empty(drawn.shape, exact(text[:0]).dtype)
    for block in row_blocks(len(rows), each * text.shape[1]):
        cosines[block] = np.einsum(
            "nd,ncd->nc", exact(image[rows[block]]), exact(text[drawn[block].ravel()]).reshape(-1, each, text.shape[1])
        )
    cosines[_among_right(answers, answers.question[rows], drawn)] = np.nan
    return cosines


def unmatched_deviation(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], answers: DistinctItems | None = None
) -> float:
    """Return the standard deviation of about `SAMPLE` random unmatched cosines; NaN if there are none."""
    cosines = sampled_unmatched(image, text, SAMPLE, answers)
    cosines = cosines[np.isfinite(cosines)]
    return float(np.std(cosines, dtype=np.float64)) if len(cosines) else float("nan")


def _among_right(
    answers: DistinctItems, questions: Int[np.ndarray, " m"], drawn: Int[np.ndarray, "m c"]
) -> Bool[np.ndarray, "m c"]:
    # Edges are sorted by question and place: a drawn cell is one of them or not.
    query_of_edge = np.repeat(np.arange(len(answers.starts) - 1), np.diff(answers.starts))
    edges, cells = query_of_edge * len(answers) + answers.right, questions[:, None] * len(answers) + drawn
    return edges[np.searchsorted(edges, cells).clip(max=len(edges) - 1)] == cells


def separation(
    matched: Float[np.ndarray, "*r bins"], unmatched: Float[np.ndarray, "*r bins"], bins: Bins
) -> dict[str, Float[np.ndarray, "*r"]]:
    """Return AUC, d', overlap and KS of fine-binned counts for each row; NaN if a side is empty.

    As the functions of those names on the values, but that values of one bin count as ties.
    """
    first, second = (np.atleast_2d(np.asarray(c, np.float64)) for c in (matched, unmatched))
    with np.errstate(invalid="ignore", divide="ignore"):
        p, q = first / first.sum(-1, keepdims=True), second / second.sum(-1, keepdims=True)
        below = np.cumsum(q, -1)
        auc = (p * (below - q / 2)).sum(-1)
        # From the lower end: squares of large numbers would lose a narrow cone's deviation.
        centers = bins.centers - bins.low
        means = [(x * centers).sum(-1) for x in (p, q)]
        spread = np.sqrt(sum((x * centers**2).sum(-1) - m**2 for x, m in zip((p, q), means, strict=True)) / 2)
        d_prime = np.where(spread > 0, (means[0] - means[1]) / spread, np.nan)
        shared = np.minimum(*(x @ _coarse(first, second) for x in (p, q))).sum(-1)
        distance = np.abs(np.cumsum(p, -1) - below).max(-1)
    shape = np.shape(matched)[:-1]
    values = zip(MEASURES, (auc, d_prime, shared, distance), strict=True)
    return {name: value.reshape(shape) for name, value in values}


def intervals(
    matched: Int[np.ndarray, "g bins"],
    unmatched: Int[np.ndarray, "g bins"],
    bins: Bins,
    *,
    draws: int = 400,
    seed: int = 0,
) -> dict[str, tuple[float, float]]:
    """Return 95 % bootstrap intervals of AUC and d' over the anchors; NaN with fewer than 2 groups.

    The percentile bootstrap of Efron (1979) over groups of anchors, those of `Units.bootstrap_groups`: the cosines of
    one picture, with all of its captions, are not independent of each other, so whole pictures are drawn, with all that
    was counted of them. Overlap and KS have none, see `SURE`.
    """
    groups = len(matched)
    if groups < 2:
        return dict.fromkeys(SURE, (float("nan"), float("nan")))
    weights = (
        np.random.default_rng(seed).multinomial(groups, np.full(groups, 1 / groups), size=draws).astype(np.float64)
    )
    drawn = separation(weights @ matched, weights @ unmatched, bins)
    ends = {
        name: np.nanquantile(drawn[name], (0.025, 0.975)) if np.isfinite(drawn[name]).any() else (np.nan, np.nan)
        for name in SURE
    }
    return {name: (float(low), float(high)) for name, (low, high) in ends.items()}


def density(counts: Float[np.ndarray, " bins"], at: Float[np.ndarray, " m"], bins: Bins) -> Float[np.ndarray, " m"]:
    """Return the Gaussian kernel density of fine-binned cosines at `at`; its integral is 1.

    The width of the kernel is Silverman's rule of thumb, .9 min(sd, IQR / 1.34) n^(-1/5), at least one fine bin.
    Silverman, Density Estimation for Statistics and Data Analysis, 1986, equation 3.31.
    """
    counts = np.asarray(counts, np.float64)
    n = counts.sum()
    if not n:
        return np.zeros(len(at))
    share, centers = counts / n, bins.centers
    mean = (share * centers).sum()
    deviation = np.sqrt((share * (centers - mean) ** 2).sum())
    quartiles = centers[np.searchsorted(np.cumsum(share), (0.25, 0.75)).clip(max=FINE - 1)]
    spread = min(s for s in (deviation, (quartiles[1] - quartiles[0]) / 1.34, np.inf) if s > 0 or s == np.inf)
    width = max(0.9 * (spread if np.isfinite(spread) else 0) * n**-0.2, bins.width)
    occupied = counts > 0
    away = (np.asarray(at, np.float64)[:, None] - centers[occupied]) / width
    return (np.exp(-(away**2) / 2) @ share[occupied]) / (width * np.sqrt(2 * np.pi))


def _binned(cosines: Float[np.ndarray, " n"], bins: Bins) -> Int[np.ndarray, " bins"]:
    """Count the cosines in `bins`, in 16 bits, which is four times as fast for rows of 100,000."""
    finite = np.isfinite(cosines)
    position = (cosines if finite.all() else cosines[finite]).astype(np.float64)
    position -= bins.low
    position /= bins.width
    np.clip(position, 0, FINE - 1, out=position)
    return np.bincount(position.astype(np.int16), minlength=FINE)


def _coarse(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return a 0-1 matrix that maps fine bins to 100 bars between the smallest and the largest cosine."""
    occupied = np.flatnonzero((first.sum(0) + second.sum(0)) > 0)
    if not len(occupied):
        return np.zeros((FINE, 100))
    bar = (np.arange(FINE) - occupied[0]) * 100 // (occupied[-1] - occupied[0] + 1)
    return (bar[:, None] == np.arange(100)).astype(np.float64)
