"""Concepts of embeddings: what the directions of a sparse dictionary are, whose they are, and what they keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.cluster_words import words_of
from trainer.analysis.distinct import DistinctItems
from trainer.analysis.retrieval import question_ranks, recall_at
from trainer.analysis.sparse_dictionary import SparseDictionary, explained, matched, principal

OWN: Final = 0.7
"""A concept with a greater part in one run is that run's own."""
PICTURES: Final = 6


@dataclass(frozen=True)
class Concept:
    """One concept, measured on all rows.

    Attributes:
        number: In the dictionary.
        words: Its name, the best word first.
        parts: Its part in each run; they sum to 1.
        frequency: Share of all images and captions that have it.
        of_images: Images' part in its activations.
        stability: Mean cosine with its counterparts in dictionaries of other seeds; NaN for one seed.
        pairs: Rows of the snapshot of the pairs that have it most.
        strengths: How strongly they have it, the strongest of all 1.
    """

    number: int
    words: tuple[str, ...]
    parts: tuple[float, ...]
    frequency: float
    of_images: float
    stability: float
    pairs: tuple[int, ...]
    strengths: tuple[float, ...]

    @property
    def owner(self) -> int:
        """The run that the concept is of, its place; -1 where it is shared."""
        place = int(np.argmax(self.parts))
        return place if len(self.parts) > 1 and self.parts[place] > OWN else -1

    @property
    def name(self) -> str:
        """The words, and the number."""
        return f"{' '.join(self.words) or 'no word'} ({self.number})"


@dataclass(frozen=True)
class Kept:
    """What of one run's held-out embeddings is kept: explained variance and image to text R@1, from 0 to 1."""

    explained: tuple[float, float]
    recall: tuple[float, float, float]
    """As embedded, by the dictionary, by as many principal components."""


@dataclass(frozen=True)
class StandardizedRows:
    """One run's rows, images first, centered by modality and of mean square 1; `text` and `image` are the means."""

    rows: Float[np.ndarray, "2n d"]
    image: Float[np.ndarray, " d"]
    text: Float[np.ndarray, " d"]
    scale: float


def learned_and_held(n: int) -> tuple[Int[np.ndarray, " t"], Int[np.ndarray, " h"]]:
    """Return the places of the pairs to learn from, and of a fifth that is held out; the same for the same n."""
    order = np.random.default_rng(0).permutation(n)
    return np.sort(order[n // 5 :]), np.sort(order[: n // 5])


def standardized(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], learned: Int[np.ndarray, " t"]
) -> StandardizedRows:
    """Return the rows of one run, centered and scaled by the pairs that are learned from."""
    sides = [np.asarray(side, np.float32) for side in (image, text)]
    means = [side[learned].mean(axis=0) for side in sides]
    centered = np.concatenate([side - mean for side, mean in zip(sides, means, strict=True)])
    of = np.concatenate([learned, learned + len(image)])
    scale = float(np.sqrt((np.float64(centered[of]) ** 2).sum(axis=1).mean())) or 1.0
    return StandardizedRows(centered / np.float32(scale), means[0], means[1], scale)


def stability_of(dictionaries: Sequence[SparseDictionary]) -> Float[np.ndarray, " m"]:
    """Return the mean cosine of each concept of the first dictionary with its counterparts; NaN without others."""
    found = [matched(dictionaries[0].decoder, other.decoder)[1] for other in dictionaries[1:]]
    return np.mean(found, axis=0) if found else np.full(len(dictionaries[0].decoder), np.nan)


def concepts_of(
    dictionary: SparseDictionary,
    codes: Float[np.ndarray, "2n m"],
    stability: Float[np.ndarray, " m"],
    captions: Sequence[str],
    rows: Int[np.ndarray, " n"],
) -> tuple[Concept, ...]:
    """Return the concepts that any row has, most frequent first.

    Args:
        dictionary: Whose concepts they are.
        codes: Of all images, then of all captions.
        stability: Of each concept of the dictionary.
        captions: Of the pairs.
        rows: Of the pairs in the snapshot.
    """
    n, parts = len(captions), dictionary.shares()
    by_pair = codes[:n] + codes[n:]
    names = concept_words(by_pair, captions)
    found = []
    for number in np.argsort(-(codes > 0).sum(axis=0), kind="stable").tolist():
        if not (total := float(codes[:, number].sum())):
            continue
        best = np.argsort(-by_pair[:, number], kind="stable")[:PICTURES]
        best = best[by_pair[best, number] > 0]
        strengths = by_pair[best, number] / by_pair[best[0], number]
        found.append(
            Concept(
                number,
                names[number],
                tuple(parts[number].tolist()),
                float((codes[:, number] > 0).mean()),
                float(codes[:n, number].sum()) / total,
                float(stability[number]),
                tuple(rows[best].tolist()),
                tuple(strengths.tolist()),
            )
        )
    return tuple(found)


def concept_words(
    by_pair: Float[np.ndarray, "n m"], captions: Sequence[str], *, most: int = 3
) -> tuple[tuple[str, ...], ...]:
    """Return the words of each concept, the best first.

    Weight of word w: p(w | c) log(p(w | c) / p(w)), with p(w | c) the part of captions with w in the activations of
    concept c, and p(w) their part in all captions: the word's term of the Kullback-Leibler divergence.
    """
    said = [sorted(set(words_of(caption))) for caption in captions]
    names = sorted({word for words in said for word in words})
    place = {word: at for at, word in enumerate(names)}
    if not names:
        return ((),) * by_pair.shape[1]
    has = np.zeros((len(names), len(captions)), np.float32)
    for row, words in enumerate(said):
        has[[place[word] for word in words], row] = 1
    total = np.maximum(by_pair.sum(axis=0), 1e-12)
    there = np.float64(has @ by_pair) / total
    everywhere = has.mean(axis=1, dtype=np.float64)[:, None]
    weights = there * np.log(np.maximum(there, 1e-12) / everywhere)
    found = []
    for column in weights.T:
        best = np.argsort(-column, kind="stable")[:most]
        # A word with less than a third of the best one's weight does not tell what the concept is.
        found.append(tuple(names[at] for at in best if column[at] > max(column[best[0]] / 3, 0)))
    return tuple(found)


def kept_by(
    dictionary: SparseDictionary,
    codes: Float[np.ndarray, "2n m"],
    rows: Float[np.ndarray, "2n d"],
    train: Float[np.ndarray, "t d"],
    spaces: Sequence[StandardizedRows],
    held: Int[np.ndarray, " h"],
    texts: DistinctItems,
) -> tuple[Kept, ...]:
    """Return what of each space the dictionary, and as many principal components as a row has concepts, keep.

    Args:
        dictionary: Trained on `train`.
        codes: Of all images, then of all captions.
        rows: What the codes are of, the spaces side by side.
        train: The rows that were learned from; the components are theirs.
        spaces: What `rows` consist of.
        held: Pairs that were not learned from; all numbers are of these.
        texts: Which of their captions are right for which image.
    """
    n = len(rows) // 2
    both = np.concatenate([held, held + n])
    components = principal(train, dictionary.active).astype(np.float32)
    versions = (rows[both], dictionary.rebuilt(codes[both]), rows[both] @ components.T @ components)
    found, start = [], 0
    for space in spaces:
        own = slice(start, start := start + space.rows.shape[1])
        original, *others = (version[:, own] for version in versions)
        recall = tuple(_recall(part, space, texts) for part in (original, *others))
        found.append(Kept(tuple(explained(original, part) for part in others), recall))  # type: ignore[arg-type]
    return tuple(found)


def _recall(rows: Float[np.ndarray, "2h d"], space: StandardizedRows, texts: DistinctItems) -> float:
    """Return image to text R@1 of rows put back at their means and onto the sphere."""
    half = len(rows) // 2
    sides = (rows[:half] * space.scale + space.image, rows[half:] * space.scale + space.text)
    image, text = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12) for side in sides)
    return recall_at(question_ranks(image.astype(np.float32), text.astype(np.float32), texts), 1)
