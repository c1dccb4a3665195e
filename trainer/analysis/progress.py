"""The progress callback type of long computations, and callbacks of their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[float, str], None]
"""Gets the share that is done, 0 to 1, and a few words; it may raise, which ends the computation."""


def silent(_share: float, _note: str) -> None:
    """Ignore the progress."""


def part_of(progress: Progress, index: int, parts: int) -> Progress:
    """Return the progress callback of part `index` of `parts` equal ones."""
    return between(progress, index / parts, (index + 1) / parts)


def between(progress: Progress, low: float, high: float) -> Progress:
    """Return the progress callback of the part from share `low` to share `high`."""
    return lambda share, note: progress(low + (high - low) * share, note)


def rising(progress: Progress) -> Progress:
    """Return a progress callback whose share never falls, whatever the parts of a computation tell."""
    reached = 0.0

    def tell(share: float, note: str) -> None:
        nonlocal reached
        reached = max(reached, share)
        progress(reached, note)

    return tell
