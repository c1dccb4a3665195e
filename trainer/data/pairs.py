"""What the data room hands out: pairs ready to train on, and what was wrong with the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from trainer.catalog import PromptSuite
from trainer.problem import Problem


class DataError(Problem):
    """Data that cannot be trained on; the message names the cause and the next step."""


@dataclass(frozen=True)
class Source:
    """One pair as it lies on the disk, its image not yet decoded."""

    path: Path
    relative: str
    """Name of the image below the data set's folder, with forward slashes."""
    caption: str
    label: str = ""
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportReport:
    """How many pairs are used, and why each of the others is not."""

    used: int
    problems: list[tuple[str, str]]
    """(path or line, reason), in the order they were met."""


@dataclass(frozen=True)
class Pairs:
    """One split, ready to train on. Row i of every member belongs to pair i."""

    name: str
    """Of the data set: "scenes", the folder's name, the table's stem."""
    split: str
    images: UInt8[np.ndarray, "n size size 3"]
    """Read-only memory map of the prepared cache."""
    captions: list[str]
    labels: list[str]
    """Class of each pair, "" where it has none."""
    paths: list[str]
    metadata: dict[str, list[str]]
    fingerprint: str
    """Hash of the decoded images, captions and labels: equal on any machine that holds the same pairs."""

    def __len__(self) -> int:
        return len(self.captions)


@dataclass(frozen=True)
class DataSplits:
    """What a run learns from and what it is measured on."""

    train: Pairs
    heldout: dict[str, Pairs]
    """Scenes: "renderings" and "combinations"; a folder or table: "heldout"."""
    suite: PromptSuite | None
    """Zero-shot task that the labels of the held-out pairs answer, if they have labels."""
    report: ImportReport
