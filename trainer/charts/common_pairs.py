"""Which rows of two snapshots are of one pair: the same id, and the same caption.

Ids alone do not tell: two data sets of Scenes that were drawn with other sizes both count their pairs from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Int, Shaped

from trainer.store.snapshot_files import Items

LOOKED_AT: Final = 256
"""Captions that are compared; those of other data differ nearly everywhere, and a corrected one makes no other pair."""


def same_pairs(a: Items, b: Items) -> bool:
    """Return whether row i is the same pair in both."""
    return np.array_equal(np.asarray(a.id), np.asarray(b.id)) and _agree(a, b, *[np.arange(len(a.id))] * 2)


def row_of_pair(mine: Items, theirs: Items, row: int) -> int:
    """Return the row of one of their pairs among mine; -1 without it."""
    ids, pair_id = mine.id, theirs.id[row]
    at = row
    if row >= len(ids) or ids[row] != pair_id:
        same_kind = ids.dtype.kind == theirs.id.dtype.kind
        matches = np.flatnonzero(ids == pair_id if same_kind else np.asarray(ids, str) == str(pair_id))
        at = int(matches[0]) if len(matches) else -1
    # Equal ids may be of other pairs. In the same pairs, a caption may have been corrected since.
    same = at >= 0 and (mine.caption[at] == theirs.caption[row] or same_pairs(mine, theirs))
    return at if same else -1


def common_rows(a: Items, b: Items) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Return rows of A, ascending, and the rows of B with the same pairs; none where the captions are others."""
    if np.array_equal(np.asarray(a.id), np.asarray(b.id)):
        at_a = at_b = np.arange(len(a.id))
    else:
        _, at_a, at_b = np.intersect1d(np.asarray(a.id, str), np.asarray(b.id, str), return_indices=True)
        order = np.argsort(at_a)
        at_a, at_b = at_a[order].astype(np.int64), at_b[order].astype(np.int64)
    return (at_a, at_b) if _agree(a, b, at_a, at_b) else (at_a[:0], at_b[:0])


def common_ids(every: Sequence[Items]) -> Shaped[np.ndarray, " n"]:
    """Return the ids of the pairs that all snapshots hold, in the order of the first."""
    common = np.asarray(every[0].id)
    for other in every[1:]:
        shared = np.asarray(every[0].id)[common_rows(every[0], other)[0]]
        common = shared if len(shared) == len(common) == len(every[0].id) else common[np.isin(common, shared)]
    return common


def looked_at(n: int) -> Int[np.ndarray, " k"]:
    """Return the rows, evenly spaced, whose captions stand for those of n."""
    return np.unique(np.linspace(0, n - 1, min(n, LOOKED_AT)).astype(np.int64))


def _agree(a: Items, b: Items, at_a: Int[np.ndarray, " n"], at_b: Int[np.ndarray, " n"]) -> bool:
    """Return whether most captions of these rows are equal, of those that both know."""
    sample = looked_at(len(at_a))
    texts = [(a.caption[int(at_a[position])], b.caption[int(at_b[position])]) for position in sample]
    equal = [caption == other for caption, other in texts if caption and other]
    return not equal or sum(equal) >= len(equal) / 2


def rows_of_ids(ids: Shaped[np.ndarray, " m"], sought: Shaped[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Return the row of each sought id."""
    names = np.asarray(ids, str)
    order = np.argsort(names)
    return order[np.searchsorted(names, np.asarray(sought, str), sorter=order)]
