"""Zero-shot classification by a bag of words: a class score is the mean of its words' scores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

_WORD: Final = re.compile(r"\w+")


def class_words(classes: Sequence[str], vocabulary: Sequence[str]) -> Float[np.ndarray, "k c"]:
    """Return weights that convert word scores to class scores: the mean of the words in a class name.

    Words that the vocabulary lacks are left out of the mean; a class all of whose words are missing has a column of
    zeros (see `answerable`).
    """
    row_of = {word: number for number, word in enumerate(vocabulary)}
    weights = np.zeros((len(vocabulary), len(classes)))
    for number, name in enumerate(classes):
        rows = [row_of[word] for word in _WORD.findall(name.lower()) if word in row_of]
        for word in rows:
            weights[word, number] += 1 / len(rows)
    return weights


def answerable(weights: Float[np.ndarray, "k c"]) -> Bool[np.ndarray, " c"]:
    """Return which classes have a word in the vocabulary; the others are never predicted and count as wrong."""
    return weights.any(axis=0)


def class_scores(scores: Float[np.ndarray, "n k"], weights: Float[np.ndarray, "k c"]) -> Float[np.ndarray, "n c"]:
    """Return each image's class scores from the words' scores (logits); minus infinity without a word.

    The mean of logits and the mean of log-probabilities of a softmax over the words differ by a number that all classes
    share, so that both name the same class (compare Li et al., Learning Visual N-Grams, 2017).
    """
    by_class = np.asarray(scores, np.float64) @ weights
    by_class[:, ~answerable(weights)] = -np.inf
    return by_class
