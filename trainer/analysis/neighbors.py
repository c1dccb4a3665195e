"""Nearest-neighbor classification of embeddings: accuracy without a text tower and without training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float, Int

NEIGHBORS: Final = 20
TAU: Final = 0.07
"""Temperature of the votes, as in Wu et al., 2018."""


def voted(
    classes: Int[np.ndarray, " m"], rows: Int[np.ndarray, "n k"], cosines: Float[np.ndarray, "n k"], *, tau: float = TAU
) -> Int[np.ndarray, " n"]:
    """Return the class with the largest sum of `exp(cosine / tau)` over neighbors; negative classes are ignored.

    Wu et al., Unsupervised Feature Learning via Non-Parametric Instance Discrimination, 2018,
    https://arxiv.org/abs/1805.01978, section 3.4.
    """
    weights = np.exp((cosines - cosines.max(axis=1, keepdims=True)) / tau)
    votes = np.zeros((len(rows), max(1, classes.max(initial=0) + 1)))
    neighbor_class = classes[rows]
    query, neighbor = np.nonzero(neighbor_class >= 0)
    np.add.at(votes, (query, neighbor_class[query, neighbor]), weights[query, neighbor])
    return votes.argmax(axis=1)


def accuracy(
    query_values: Sequence[str],
    stored_values: Sequence[str],
    rows: Int[np.ndarray, "n k"],
    cosines: Float[np.ndarray, "n k"],
) -> float:
    """Return the share of queries whose neighbors vote for the correct value; NaN without values.

    Args:
        query_values: Value of each query; those with an empty one are left out.
        stored_values: Value of each stored vector; empty: it does not vote.
        rows: Neighbors of each query.
        cosines: How near they are.
    """
    number_of = {value: number for number, value in enumerate(sorted(set(stored_values) - {""}))}
    truth = np.array([number_of.get(value, -1) for value in query_values])
    counted = np.array([value != "" for value in query_values], dtype=bool)
    if not number_of or not counted.any():
        return float("nan")
    won = voted(np.array([number_of.get(value, -1) for value in stored_values]), rows, cosines)
    return float((won == truth)[counted].mean())
