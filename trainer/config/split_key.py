"""What names the pairs that a number, a snapshot or a view is of. Imports nothing: the window asks before it paints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SplitKey:
    """One split of one dataset; as a text `dataset-split`, which is for people: names of both may have dashes."""

    dataset: str
    split: str

    def __str__(self) -> str:
        return f"{self.dataset}-{self.split}"
