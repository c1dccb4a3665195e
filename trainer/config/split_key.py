"""The identity of a dataset split. Imports nothing, because the window needs it before its first paint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SplitKey:
    """One split of one dataset; its text `dataset-split` is for display, because names may contain dashes."""

    dataset: str
    split: str

    def __str__(self) -> str:
        return f"{self.dataset}-{self.split}"
