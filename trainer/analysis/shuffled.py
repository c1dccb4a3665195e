"""The chance level of separation: the measures after shuffling the pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.separation import MEASURES, ks
from trainer.analysis.similarity import auc, d_prime, overlap

IMAGES: Final = 2_000
"""Images that are enough: of fewer pairs several shufflings are averaged, so that together they are about as many."""
MOST: Final = 10
"""Most shufflings."""

Shuffled = Callable[[Int[np.ndarray, " n"]], tuple[Float[np.ndarray, "*a"], Float[np.ndarray, "*b"]]]
"""Takes for each pair the one whose text it gets; gives the cosines that are matched then, and the unmatched ones."""


def shuffled_level(n: int, measure: Shuffled, *, queries: int | None = None, seed: int = 0) -> Mapping[str, float]:
    """Return AUC, d', overlap and KS for shuffled pairs: the level of a model that knows nothing.

    Against all unmatched cosines AUC is about .5 then; against the k most similar ones of n texts it is far below,
    and the more so the more texts there are. So splits of unlike n do not compare.

    Args:
        n: Pairs.
        measure: The cosines of a shuffling.
        queries: Images that ask in each; None: n.

    Returns:
        The means over the shufflings; NaN with fewer than 2 pairs.
    """
    if n < 2:
        return dict.fromkeys(MEASURES, float("nan"))
    rng, measured = np.random.default_rng(seed), []
    for _ in range(int(np.clip(IMAGES // max(n if queries is None else queries, 1), 1, MOST))):
        matched, unmatched = measure(shuffling(n, rng))
        measured.append([auc(matched, unmatched), d_prime(matched, unmatched), overlap(matched, unmatched)])
        measured[-1].append(ks(matched, unmatched))
    return dict(zip(MEASURES, np.mean(measured, axis=0).tolist(), strict=True))


def shuffling(n: int, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
    """Return a random permutation of at least 2 without fixed points: one cycle (Sattolo, 1986)."""
    order = rng.permutation(n)
    permutation = np.empty(n, np.int64)
    permutation[order] = np.roll(order, 1)
    return permutation
