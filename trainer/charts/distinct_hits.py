"""Hits of a search among the pairs of a snapshot, where equal pictures and captions count once."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.search import best_of
from trainer.charts.matching import caption_numbers, image_numbers
from trainer.store.snapshot_files import Items, Snapshot

Target = Literal["image", "text"]
_KEPT: Final = 8
_COUNTS: OrderedDict[tuple[Path, Target], int] = OrderedDict()
_LOCK: Final = Lock()


def best_distinct(
    scores: Float[np.ndarray, " n"], items: Items, target: Target, k: int
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return `best_of`, but of equal pictures (by their pixels) or captions the best pair alone."""
    among = items.caption if target == "text" else items.content if len(items.content) else items.path
    asked = 2 * k
    while True:
        rows, best = best_of(scores, asked)
        first: dict[object, int] = {}
        for place, row in enumerate(rows.tolist()):
            first.setdefault(among[row] or row, place)  # what is empty equals nothing
        if len(first) >= k or len(rows) < asked:
            kept = list(first.values())[:k]
            return rows[kept], best[kept]
        asked *= 4


def distinct_count(snapshot: Snapshot, target: Target) -> int:
    """Return how many different pictures, or captions, a snapshot has; kept for the latest."""
    key = (snapshot.folder, target)
    with _LOCK:
        if key in _COUNTS:
            _COUNTS.move_to_end(key)
            return _COUNTS[key]
    items = snapshot.items
    count = len(np.unique(caption_numbers(items.caption) if target == "text" else image_numbers(items, snapshot.image)))
    with _LOCK:
        _COUNTS[key] = count
        while len(_COUNTS) > _KEPT:
            _COUNTS.popitem(last=False)
    return count
