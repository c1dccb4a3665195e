"""Exact search for the items most similar to a query, in one pass over the vectors."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis import half_precision
from trainer.analysis.tiles import row_blocks
from trainer.analysis.worker_threads import share_out

PIECE: Final = 16_384
"""Rows that a thread multiplies at a time."""


def products(stored: Float[np.ndarray, "n d"], query: Float[np.ndarray, " d"]) -> Float[np.ndarray, " n"]:
    """Return the inner product of every stored vector with `query`, in float32 or better."""
    if stored.dtype != np.float16:
        return stored @ np.asarray(query, stored.dtype)
    scores = np.empty(len(stored), np.float32)
    asking = np.asarray(query, np.float32)

    def multiply(rows: slice, _: None) -> None:
        scores[rows] = half_precision.products(stored[rows], asking)

    share_out([*row_blocks(len(stored), 1, cells=PIECE)], multiply, lambda: None)
    return scores


def best_of(scores: Float[np.ndarray, " n"], k: int) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return the places of the `k` largest scores, ties by place, and the scores; NaN counts as -inf."""
    k = max(0, min(k, len(scores)))
    if not k:
        return np.empty(0, np.int64), scores[:0]
    # One pass for the sum instead of one with a mask: NaN shows in it, and there hardly ever is one.
    if np.isnan(scores.sum()):
        scores = np.where(np.isnan(scores), -np.inf, scores)
    if k < len(scores):
        least = _kth_largest(scores, k)
        above = np.flatnonzero(scores >= least)
    else:
        above = np.arange(len(scores))
    rows = above[np.argsort(-scores[above], kind="stable")][:k]
    return rows, scores[rows]


def _kth_largest(scores: Float[np.ndarray, " n"], k: int) -> float:
    """Return a bound reached by at least `k` scores and few more: from chunk maxima, or the k-th score itself."""
    chunks = max(1, len(scores) // 1024)
    if chunks < 4 * k:
        return float(np.partition(scores, len(scores) - k)[len(scores) - k])
    # The k-th largest maximum of the chunks is reached by k scores at least, one in each of k chunks.
    chunked = len(scores) // chunks * chunks
    tops = scores[:chunked].reshape(chunks, -1).max(1)
    return float(np.partition(tops, chunks - k)[chunks - k])
