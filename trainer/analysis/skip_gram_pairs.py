"""The examples that skip-gram learns from, and one step of gradient descent on one of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

_WORD: Final = re.compile(r"\w+")
_SENTENCE: Final = re.compile(r"[.;!?\n]+")


def sentences_of(text: str) -> list[list[str]]:
    """Return the words of each sentence in lower case; sentences without a word are left out."""
    parts = (_WORD.findall(part.lower()) for part in _SENTENCE.split(text))
    return [sentence for sentence in parts if sentence]


def positives(sentences: Sequence[Sequence[str]], word: str, window: int) -> list[str]:
    """Return the words within `window` places of each occurrence of a word, in their order."""
    contexts: list[str] = []
    for sentence in sentences:
        for at, center in enumerate(sentence):
            if center == word:
                contexts += [*sentence[max(0, at - window) : at], *sentence[at + 1 : at + 1 + window]]
    return contexts


def noise_shares(sentences: Sequence[Sequence[str]], power: float) -> dict[str, float]:
    """Return the share of each word among the drawn negatives, `count^power` over their sum, the largest first.

    Mikolov et al., Distributed Representations of Words and Phrases, 2013, https://arxiv.org/abs/1310.4546, section
    2.2: a power of 3/4 draws rare words more often than they occur.
    """
    counts = Counter(word for sentence in sentences for word in sentence)
    total = sum(count**power for count in counts.values())
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return {word: count**power / total for word, count in ordered}


def drawn_negatives(
    shares: dict[str, float], contexts: Sequence[str], count: int, generator: np.random.Generator
) -> list[list[str]]:
    """Return `count` negatives for each context, drawn by their shares; one equal to the context is drawn again."""
    vocabulary, weights = list(shares), np.array(list(shares.values()))
    if len(vocabulary) < 2:
        return [[] for _ in contexts]
    negatives = []
    for context in contexts:
        others = np.where([word != context for word in vocabulary], weights, 0.0)
        chosen = generator.choice(len(vocabulary), count, p=others / others.sum())
        negatives.append([vocabulary[index] for index in chosen])
    return negatives


def gradient_step(
    center: Float[np.ndarray, " d"],
    positive: Float[np.ndarray, " d"],
    negatives: Float[np.ndarray, "k d"],
    rate: float,
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"], Float[np.ndarray, "k d"], float]:
    """Return center, positive and negatives after one step, and the loss before it.

    `L = -ln sigma(c_pos . w) - sum_k ln sigma(-c_k . w)`; Jurafsky and Martin, Speech and Language Processing, 3rd ed.,
    equations 6.34 to 6.39 and figure 6.14.
    """
    from scipy.special import expit

    right, wrong = expit(positive @ center), expit(negatives @ center)
    loss = -np.log(right) - np.log1p(-wrong).sum()
    pull = (right - 1) * positive + wrong @ negatives
    return (
        center - rate * pull,
        positive - rate * (right - 1) * center,
        negatives - rate * wrong[:, None] * center,
        float(loss),
    )
