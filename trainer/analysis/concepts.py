"""Concepts of embeddings: what the directions of a sparse dictionary are, whose they are, and what they keep."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.cluster_words import words_of
from trainer.analysis.distinct import DistinctItems, in_order
from trainer.analysis.retrieval import question_ranks, recall_at
from trainer.analysis.sparse_dictionary import SparseDictionary, explained, matched, principal
from trainer.analysis.unit_rows import normalized
from trainer.analysis.units import Unit, Units

OWN: Final = 0.7
"""A concept with a greater part in one run is that run's own."""
PICTURES: Final = 6


class Concept(Struct, frozen=True):
    """One concept, measured on all rows."""

    number: int  # In the dictionary.
    words: tuple[str, ...]  # Its name, the best word first.
    parts: tuple[float, ...]  # Its part in each run; they sum to 1.
    frequency: float  # Share of all images and captions that have it.
    of_images: float  # Images' part in its activations.
    stability: float  # Mean cosine with its counterparts in dictionaries of other seeds; NaN for one seed.
    pairs: tuple[int, ...]  # Rows of the snapshot of the pairs that have it most.
    strengths: tuple[float, ...]  # How strongly they have it, the strongest of all 1.

    @property
    def owner(self) -> int:
        """The run that the concept is of, its place; -1 where it is shared."""
        strongest = int(np.argmax(self.parts))
        return strongest if len(self.parts) > 1 and self.parts[strongest] > OWN else -1

    @property
    def name(self) -> str:
        """The words, and the number."""
        return f"{' '.join(self.words) or 'no word'} ({self.number})"


class Kept(Struct, frozen=True):
    """What of one run's held-out embeddings is kept: explained variance and image to text R@1, from 0 to 1."""

    explained: tuple[float, float]
    recall: tuple[float, float, float]
    """As embedded, by the dictionary, by as many principal components."""


class StandardizedRows(Struct, frozen=True):
    """One run's rows, images first, centered by modality and of mean square 1; `text` and `image` are the means."""

    rows: Float[np.ndarray, "2n d"]
    image: Float[np.ndarray, " d"]
    text: Float[np.ndarray, " d"]
    scale: float


def learned_and_held(units: Units) -> tuple[Int[np.ndarray, " t"], Int[np.ndarray, " h"], Unit]:
    """Return the places of the pairs to learn from, of those held out, and what is not in both.

    A fifth of the pictures is held out with all of their captions: linked components, or, where nearly all pictures are
    linked by captions that they share, pictures alone.
    """
    share = (units.count("picture") // 5) / max(units.count("picture"), 1)
    for unit in ("group", "picture"):
        with suppress(ValueError):
            learned, held = units.split(0, share, unit)
            if unit == "picture" or units.taken(held).count("picture") >= share * units.count("picture") / 2:
                return learned, held, unit
    raise ValueError("too few pictures to hold some out")


def once(units: Units, pairs: Int[np.ndarray, " k"]) -> Int[np.ndarray, " r"]:
    """Return the rows of some pairs, each picture and each caption once: rows of images, then n more of captions."""
    chosen = units.taken(pairs)
    return np.concatenate([pairs[chosen.rows("picture")], len(units) + pairs[chosen.rows("caption")]])


def standardized(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], learned: Int[np.ndarray, " r"]
) -> StandardizedRows:
    """Return the rows of one run, centered and scaled by those that are learned from, as `once` gives them."""
    sides, n = [np.asarray(side, np.float32) for side in (image, text)], len(image)
    means = [side[some].mean(axis=0) for side, some in zip(sides, (learned[learned < n], learned[learned >= n] - n))]
    centered = np.concatenate([side - mean for side, mean in zip(sides, means, strict=True)])
    of = learned
    scale = float(np.sqrt((np.float64(centered[of]) ** 2).sum(axis=1).mean())) or 1.0
    return StandardizedRows(centered / np.float32(scale), means[0], means[1], scale)


def stability_of(dictionaries: Sequence[SparseDictionary]) -> Float[np.ndarray, " m"]:
    """Return the mean cosine of each concept of the first dictionary with its counterparts; NaN without others."""
    cosines = [matched(dictionaries[0].decoder, other.decoder)[1] for other in dictionaries[1:]]
    return np.mean(cosines, axis=0) if cosines else np.full(len(dictionaries[0].decoder), np.nan)


def concepts_of(
    dictionary: SparseDictionary,
    codes: Float[np.ndarray, "2n m"],
    stability: Float[np.ndarray, " m"],
    captions: Sequence[str],
    rows: Int[np.ndarray, " n"],
    units: Units,
) -> tuple[Concept, ...]:
    """Return the concepts that any row has, most frequent first; each picture and each caption counts once.

    Args:
        codes: Of all images, then of all captions.
        stability: Of each concept of the dictionary.
        rows: Of the pairs in the snapshot.
        units: Which of the pairs are one picture or one caption.
    """
    n, parts = len(captions), dictionary.shares()
    single = codes[once(units, np.arange(n))]
    images = units.count("picture")
    by_pair = codes[:n] + codes[n:]
    names = concept_words(by_pair, captions)
    listed = []
    for number in np.argsort(-(single > 0).sum(axis=0), kind="stable").tolist():
        if not (total := float(single[:, number].sum())):
            continue
        best = np.argsort(-by_pair[:, number], kind="stable")
        best = best[in_order(units.picture[best])[1][:PICTURES]]
        best = best[by_pair[best, number] > 0]
        strengths = by_pair[best, number] / by_pair[best[0], number]
        listed.append(
            Concept(
                number,
                names[number],
                tuple(parts[number].tolist()),
                float((single[:, number] > 0).mean()),
                float(single[:images, number].sum()) / total,
                float(stability[number]),
                tuple(rows[best].tolist()),
                tuple(strengths.tolist()),
            )
        )
    return tuple(listed)


def concept_words(by_pair: Float[np.ndarray, "n m"], captions: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the words of each concept, the best first.

    Weight of word w: p(w | c) log(p(w | c) / p(w)), with p(w | c) the part of captions with w in the activations of
    concept c, and p(w) their part in all captions: the word's term of the Kullback-Leibler divergence.
    """
    said = [sorted(set(words_of(caption))) for caption in captions]
    names = sorted({word for row_words in said for word in row_words})
    column_of = {word: at for at, word in enumerate(names)}
    if not names:
        return ((),) * by_pair.shape[1]
    has = np.zeros((len(names), len(captions)), np.float32)
    for row, row_words in enumerate(said):
        has[[column_of[word] for word in row_words], row] = 1
    total = np.maximum(by_pair.sum(axis=0), 1e-12)
    within = np.float64(has @ by_pair) / total
    everywhere = has.mean(axis=1, dtype=np.float64)[:, None]
    weights = within * np.log(np.maximum(within, 1e-12) / everywhere)
    named = []
    for column in weights.T:
        best = np.argsort(-column, kind="stable")[:3]
        # A word with less than a third of the best one's weight does not tell what the concept is.
        named.append(tuple(names[at] for at in best if column[at] > max(column[best[0]] / 3, 0)))
    return tuple(named)


def kept_by(
    dictionary: SparseDictionary,
    codes: Float[np.ndarray, "2n m"],
    rows: Float[np.ndarray, "2n d"],
    train: Float[np.ndarray, "t d"],
    spaces: Sequence[StandardizedRows],
    held: Int[np.ndarray, " h"],
    units: Units,
) -> tuple[Kept, ...]:
    """Return what of each space the dictionary, and as many principal components as a row has concepts, keep.

    Args:
        dictionary: Trained on `train`.
        codes: Of all images, then of all captions.
        rows: What the codes are of, the spaces side by side.
        train: The rows that were learned from; the components are theirs.
        spaces: What `rows` consist of.
        held: Pairs that were not learned from; all numbers are of these.
        units: Which of all pairs are one picture or one caption: explained variance counts each once.
    """
    n, texts = len(rows) // 2, units.taken(held).matching.texts
    single = once(units.taken(held), np.arange(len(held)))
    both = np.concatenate([held, held + n])
    components = principal(train, dictionary.active).astype(np.float32)
    versions = (rows[both], dictionary.rebuilt(codes[both]), rows[both] @ components.T @ components)
    shares, start = [], 0
    for space in spaces:
        columns = slice(start, start := start + space.rows.shape[1])
        original, *others = (version[:, columns] for version in versions)
        recall = tuple(_recall(part, space, texts) for part in (original, *others))
        shares.append(Kept(tuple(explained(original[single], part[single]) for part in others), recall))  # type: ignore[arg-type]
    return tuple(shares)


def _recall(rows: Float[np.ndarray, "2h d"], space: StandardizedRows, texts: DistinctItems) -> float:
    """Return image to text R@1 of rows put back at their means and onto the sphere."""
    half = len(rows) // 2
    sides = (rows[:half] * space.scale + space.image, rows[half:] * space.scale + space.text)
    image, text = map(normalized, sides)
    return recall_at(question_ranks(image.astype(np.float32), text.astype(np.float32), texts), 1)
