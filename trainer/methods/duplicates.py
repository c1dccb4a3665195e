"""Duplicate training pairs, which would be false negatives of each other."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Int

from trainer.data import Pairs


def duplicate_groups(pairs: Pairs) -> Int[np.ndarray, " n"]:
    """Return integers that are equal for pairs sharing a caption or image, directly or through other pairs.

    A caption of one copy of an image describes all copies, so the relation is closed under such chains.
    """
    # Of streamed images it is known already, and decoding them again would take as long as an epoch.
    images = getattr(pairs.images, "digests", ()) or [
        hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=16).digest() for image in pairs.images
    ]
    return linked([pairs.captions, images])


def linked(columns: Sequence[Sequence[Hashable]]) -> Int[np.ndarray, " n"]:
    """Return integers that are equal for rows that agree in any column, directly or through other rows."""
    leader = list(range(len(columns[0])))

    def lead(row: int) -> int:
        while leader[row] != row:
            leader[row] = leader[leader[row]]
            row = leader[row]
        return row

    for column in columns:
        first: dict[Hashable, int] = {}
        for row, value in enumerate(column):
            leader[lead(row)] = lead(first.setdefault(value, row))
    return np.array([lead(row) for row in range(len(leader))], dtype=np.int64)
