"""Identify identical items, so that equal captions or images count as one correct result.

A ranking is over distinct items. Were a caption that a hundred pictures share a hundred entries, the first five of a
ranking would be one wrong caption five times, and ranks and recalls would measure how often captions repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True)
class DistinctItems:
    """The distinct items to rank for one query direction, and which of them are correct.

    Items and questions are numbered in the order in which they first occur.
    """

    rows: Int[np.ndarray, " g"]  # Of the vectors that answer, the first row of each distinct item; ascending.
    place: Int[np.ndarray, " n"]  # Of each row, the place in `rows` of its item.
    question: Int[np.ndarray, " n"]  # Of each row that asks, the number of its question: equal rows ask the same.
    right: Int[np.ndarray, " e"]  # Places in `rows` of the right answers of each question, question after question.
    starts: Int[np.ndarray, " q+1"]  # Where those of each question begin in `right`, and where the last ends.

    def __len__(self) -> int:
        """Return the number of distinct items."""
        return len(self.rows)

    def asking(self, rows: Int[np.ndarray, " m"] | None = None) -> Int[np.ndarray, " q"]:
        """Return where each distinct question first occurs in `rows` (None: all), ascending.

        Recalls are means over these: equal questions have equal answers, and count once.
        """
        question = self.question if rows is None else self.question[rows]
        return np.sort(np.unique(question, return_index=True)[1])

    def fewest_wrong(self, rows: Int[np.ndarray, " m"] | None = None) -> int:
        """Return how many wrong answers each of the questions of `rows` (None: all) has at least."""
        sizes = np.diff(self.starts) if rows is None else np.diff(self.starts)[self.question[rows]]
        return len(self.rows) - int(sizes.max(initial=0))

    @property
    def majority(self) -> int:
        """The number of questions that the most frequent answer is right for."""
        return int(np.bincount(self.right).max(initial=0))

    def gallery(self, vectors: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "g d"]:
        """Return one vector per distinct item; the vectors themselves if all are distinct."""
        return vectors if len(self.rows) == len(vectors) else vectors[self.rows]

    def cells(
        self, questions: Int[np.ndarray, " b"]
    ) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"], Int[np.ndarray, " b"]]:
        """Return the correct items of some queries as (line, column) of a block, and where each line begins."""
        sizes = self.starts[questions + 1] - self.starts[questions]
        first = np.cumsum(sizes) - sizes
        line = np.repeat(np.arange(len(questions)), sizes)
        within = np.arange(int(sizes.sum())) - np.repeat(first, sizes)
        return line, self.right[np.repeat(self.starts[questions], sizes) + within], first


@dataclass(frozen=True)
class Matching:
    """The correct items in both query directions."""

    texts: DistinctItems  # Images ask; the distinct captions answer, right are all of the same picture.
    images: DistinctItems  # Texts ask; the distinct pictures answer, right are all of the same caption.


def matching(captions: Int[np.ndarray, " n"], images: Int[np.ndarray, " n"] | None = None) -> Matching:
    """Return which items are correct for each query among n pairs.

    Args:
        captions: Equal exactly where the captions are.
        images: Equal exactly where the pictures are; None: all differ.
    """
    captions = np.asarray(captions)
    images = np.arange(len(captions)) if images is None else np.asarray(images)
    texts = answers(images, captions)
    # Of a million pairs of their own a second one would be another 8 MB.
    return Matching(texts, texts if texts.rows is texts.right else answers(captions, images))


def one_to_one(n: int) -> DistinctItems:
    """Return the matching where row i is correct only for row i."""
    starts = np.arange(n + 1)
    rows = starts[:-1]
    return DistinctItems(rows, rows, rows, rows, starts)


def answers(
    asking: Int[np.ndarray, " n"], answering: Int[np.ndarray, " n"], order: Int[np.ndarray, " n"] | None = None
) -> DistinctItems:
    """Return the correct items among `answering` for the queries `asking` of n pairs.

    With an `order` row i is a right question for row `order[i]`, as after shuffling the answers.
    """
    question, questions = in_order(asking)
    position, rows = in_order(answering)
    if order is None and len(questions) == len(rows) == len(question):
        return one_to_one(len(rows))
    edges = np.unique(question * max(len(rows), 1) + (position if order is None else position[order]))
    edge_question, right = np.divmod(edges, max(len(rows), 1))
    starts = np.searchsorted(edge_question, np.arange(int(question.max(initial=-1)) + 2))
    return DistinctItems(rows, position, question, right, starts)


def numbered(values: Sequence[str]) -> Int[np.ndarray, " n"]:
    """Return integers that are equal exactly where the values are; an empty value equals no other."""
    seen: dict[str, int] = {}
    numbers = np.fromiter((seen.setdefault(value, len(seen)) for value in values), np.int64, len(values))
    return apart(numbers, numbers == seen.get("", -1))


def apart(numbers: Int[np.ndarray, " n"], unknown: np.ndarray) -> Int[np.ndarray, " n"]:
    """Return the numbers, with a unique one for each `unknown` row."""
    alone = np.flatnonzero(unknown)
    separated = np.array(numbers, np.int64)
    separated[alone] = int(separated.max(initial=-1)) + 1 + np.arange(len(alone))
    return separated


def in_order(numbers: Int[np.ndarray, " n"]) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " g"]]:
    """Return integers from 0 in order of first occurrence, and the row of each first occurrence."""
    if (numbers[1:] > numbers[:-1]).all():
        return np.arange(len(numbers)), np.arange(len(numbers))
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse.reshape(-1)], first[order].astype(np.int64)
