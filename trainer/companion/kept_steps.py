"""Which stored steps of a split stay when they take more room than they may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

KEEP_BYTES: Final = 2 << 30
"""What the snapshots of a run may take unless its logger says otherwise."""


def most_crowded(steps: Sequence[int]) -> int | None:
    """Return the step whose neighbors are nearest to each other, the earliest of several; None of fewer than three.

    Dropping it again and again leaves the first, the last, and steps spread evenly between them.
    """
    ordered = sorted(steps)
    gaps = [(after - before, step) for before, step, after in zip(ordered, ordered[1:], ordered[2:])]
    return min(gaps)[1] if gaps else None
