"""Hits of a search among the pairs of a snapshot, where equal pictures and captions count once."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.lru_cache import LruCache
from trainer.analysis.search import best_of
from trainer.charts.matching import units_of
from trainer.store.snapshot_files import Snapshot

Target = Literal["image", "text"]
_NUMBERS: Final = LruCache[tuple[Path, Target], np.ndarray](8)


def best_distinct(
    scores: Float[np.ndarray, " n"], snapshot: Snapshot, target: Target, k: int
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return `best_of`, but of equal pictures or captions the best pair alone."""
    numbers, count = _numbers(snapshot, target), 2 * k
    while True:
        rows, best = best_of(scores, count)
        first = np.sort(np.unique(numbers[rows], return_index=True)[1])
        if len(first) >= k or len(rows) < count:
            return rows[first[:k]], best[first[:k]]
        count *= 4


def distinct_count(snapshot: Snapshot, target: Target) -> int:
    """Return how many different pictures, or captions, a snapshot has."""
    return int(_numbers(snapshot, target).max(initial=-1)) + 1


def _numbers(snapshot: Snapshot, target: Target) -> Int[np.ndarray, " n"]:
    """Return the number of each row's picture or caption; kept for the latest."""
    unit: Literal["caption", "picture"] = "caption" if target == "text" else "picture"
    return _NUMBERS.obtain((snapshot.folder, target), lambda: units_of(snapshot).of(unit))
