"""The progress callback type of long computations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[float, str], None]
"""Gets the share that is done, 0 to 1, and a few words; it may raise, which ends the computation."""


def silent(_share: float, _note: str) -> None:
    """Ignore the progress."""
