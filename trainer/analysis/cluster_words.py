"""Clusters of embeddings, and the words that distinguish each cluster's captions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiles import exact, row_blocks

MOST_FITTED: Final = 20_000
"""More rows than this are sampled to find the centers; every row is then given to its nearest one."""
MOST_READ: Final = 50_000
"""More captions than this are sampled to weigh their words."""

_WORDS: Final = 2
"""Of a group."""
_LEAST_SHARE: Final = 0.3
"""Of a group's captions that hold a word of its name, and at least `_FEWEST` of them: others do not describe it."""
_FEWEST: Final = 3
_MOST_SHARE: Final = 0.9
"""Of all captions: a word that more of them hold tells no group from another."""
_SPARE: Final = 4
"""Further words of a group, taken where its best ones are another group's too."""
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_FILLERS: Final = """
an the and or of in on at to by for with from into over under near above below against between behind is are was were
be been has have had it its this that these those his her their there here one two three some as up down out very
photo picture image
"""
_STOP: Final = frozenset(_WORD.findall(_FILLERS))


class ClusterWords(Struct, frozen=True):
    """Clusters in an embedding space, largest first."""

    group: Int[np.ndarray, " n"]  # Number of each row's group.
    # Most distinctive words of each group's captions, the best first, of those that 30 % of them and at least
    # three hold, but not 90 % of all captions; may be empty. Two groups have the same ones only where they have
    # no others.
    words: tuple[tuple[str, ...], ...]
    counts: tuple[int, ...]  # Rows in each group.
    fitted: int  # Rows that the centers were found from.
    read: int  # Captions that the words were weighed by.


def cluster_words(
    vectors: Float[np.ndarray, "n d"],
    captions: Sequence[str],
    *,
    k: int = 12,
    progress: Progress = silent,
) -> ClusterWords:
    """Cluster the rows with k-means in the embedding space and name each cluster by its captions' distinctive words.

    Args:
        vectors: Unit embeddings; rows that are not finite are in group 0.
        captions: One a row, plain text.
        k: Groups; fewer where there are fewer rows.
        progress: Called with the share done and a note; what it raises ends the computation.
    """
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(0)
    n = len(vectors)
    rows = np.sort(rng.choice(n, MOST_FITTED, replace=False)) if n > MOST_FITTED else np.arange(n)
    progress(0.0, "grouping")
    finite = _finite(exact(vectors[rows])).astype(np.float64)  # of which k-means++ takes a fifth of the time
    groups = min(k, len(np.unique(finite, axis=0)))
    centers = KMeans(groups, n_init=1, random_state=0).fit(finite).cluster_centers_
    group = nearest_center(vectors, centers)
    progress(0.5, "reading captions")
    counts = np.bincount(group, minlength=len(centers))
    order = np.argsort(-counts, kind="stable")
    new_number = np.empty_like(order)
    new_number[order] = np.arange(len(order))
    group, counts = new_number[group], counts[order]
    read = np.sort(rng.choice(n, MOST_READ, replace=False)) if n > MOST_READ else np.arange(n)
    texts = [captions[i] for i in read]
    candidates = [
        tuple(word for word in ranked if word in common)
        for ranked, common in zip(
            distinctive_words(texts, group[read], len(counts), most=_WORDS + _SPARE),
            _common_words(texts, group[read], len(counts)),
            strict=True,
        )
    ]
    progress(1.0, "named")
    return ClusterWords(group, distinct_words(candidates, _WORDS), tuple(map(int, counts)), len(rows), len(read))


def _common_words(captions: Sequence[str], group: Int[np.ndarray, " n"], groups: int) -> list[set[str]]:
    """Return the words that describe each group: enough of its captions hold them, and not nearly all captions do."""
    holds = [Counter[str]() for _ in range(groups)]
    for caption, number in zip(captions, group.tolist(), strict=True):
        holds[number].update(set(words_of(caption)))
    least = np.maximum(_FEWEST, _LEAST_SHARE * np.bincount(group, minlength=groups))
    everywhere = {word for word, n in sum(holds, Counter()).items() if n > _MOST_SHARE * len(captions)}
    return [
        {word for word, n in counts.items() if n >= least[number] and word not in everywhere}
        for number, counts in enumerate(holds)
    ]


def nearest_center(vectors: Float[np.ndarray, "n d"], centers: Float[np.ndarray, "k d"]) -> Int[np.ndarray, " n"]:
    """Return the index of the center nearest to each row, the first of ties; 0 for rows that are not finite."""
    nearest = np.zeros(len(vectors), np.int64)
    for rows in row_blocks(len(vectors), max(len(centers), vectors.shape[1])):
        nearest[rows] = _squared(_finite(exact(vectors[rows])), centers).argmin(1)
    return nearest


def distinctive_words(
    captions: Sequence[str], group: Int[np.ndarray, " n"], groups: int, *, most: int = 2
) -> tuple[tuple[str, ...], ...]:
    """Return each group's `most` words by class-based tf-idf, best first, ties in alphabetical order.

    Weight of word t in group c: tf(t, c) log(1 + A / f(t)), with tf the share of the group's words, f(t) how often t
    is said in all groups and A the mean number of words of a group (Grootendorst, BERTopic, 2022,
    https://arxiv.org/abs/2203.05794, section 3.3). Numbers, single letters and a few English fillers are no words.
    Only words that are commoner in the group than in all captions together count as its own.
    """
    said = [Counter() for _ in range(groups)]
    for caption, number in zip(captions, group.tolist(), strict=True):
        said[number].update(words_of(caption))
    everywhere = sum(said, Counter())
    total = sum(everywhere.values())
    mean = total / max(groups, 1)
    named = []
    for counts in said:
        size = sum(counts.values())
        weights = {
            word: count / size * np.log1p(mean / everywhere[word])
            for word, count in counts.items()
            if count * total >= everywhere[word] * size
        }
        named.append(tuple(sorted(weights, key=lambda word: (-weights[word], word))[:most]))
    return tuple(named)


def distinct_words(ranked_words: Sequence[Sequence[str]], most: int) -> tuple[tuple[str, ...], ...]:
    """Return each group's best words; if two groups tie, the later one replaces its last word by its next best."""
    named: list[tuple[str, ...]] = []
    for candidates in ranked_words:
        tried = [(*candidates[: most - 1], word) for word in candidates[most - 1 :]] or [tuple(candidates)]
        free = (choice for choice in tried if set(choice) not in map(set, named))
        named.append(next(free, tried[0]))
    return tuple(named)


def words_of(caption: str) -> list[str]:
    """Return a caption's words in lower case, with repetitions, without numbers and stop words."""
    return [word for word in _WORD.findall(caption.lower()) if word not in _STOP]


def _squared(vectors: np.ndarray, centers: np.ndarray) -> np.ndarray:
    product = vectors @ centers.T.astype(vectors.dtype)
    lengths = np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64)[:, None]
    return np.maximum(lengths - 2.0 * product + (centers**2).sum(1), 0.0)


def _finite(vectors: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(vectors).all(axis=1, keepdims=True), vectors, 0)
