"""The data types of this package: pairs ready to train on, and problems with the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from jaxtyping import Int, UInt8
from msgspec import Struct

from trainer.analysis.class_prompts import captioned
from trainer.data.errors import DataError
from trainer.data.streamed_images import StreamedImages
from trainer.images import Location
from trainer.prompt_suites import PromptSuite

__all__ = ["BATCH", "DataError", "DataSplits", "ImportLog", "ImportReport", "Pairs", "Source", "captioned"]

BATCH: Final = "batch"
"""Name of the split that is one training batch, embedded beside the held-out ones."""


class Source(Struct, frozen=True):
    """One pair on the disk, its image not yet decoded."""

    path: Location
    """Where its image is: a file, a member of a tar, a cell of a table."""
    relative: str
    """Name of the image below the data set's folder, with forward slashes."""
    caption: str
    label: str = ""
    metadata: dict[str, str] = {}


@dataclass
class ImportLog:
    """Remarks about pairs besides problems; collected while they are listed."""

    remarks: list[tuple[str, str]] = field(default_factory=list)
    """(item, what was put right) of pairs that are used."""
    notes: list[str] = field(default_factory=list)
    """Sentences about all of them."""
    split: str = ""
    """What states the split, as a sentence; empty if nothing does."""
    other_parts: list[tuple[str, str]] = field(default_factory=list)
    """(item, reason) of what a stated split puts in a part that is neither trained on nor held out."""


@dataclass(frozen=True)
class ImportReport:
    """How many pairs are used, why others are not, and remarks about used ones.

    Every pair that was found is either used or has a line in `problems` or `other_parts`.
    """

    used: int
    problems: list[tuple[str, str]]
    """(path or line, reason), in the order they were met."""
    remarks: list[tuple[str, str]] = field(default_factory=list)
    """(path, what was put right) of pairs that are used."""
    notes: list[str] = field(default_factory=list)
    """Sentences about all of them: in which encoding they are, what repeats."""
    split: str = ""
    """How the split was chosen, as a sentence."""
    other_parts: list[tuple[str, str]] = field(default_factory=list)
    """(path, reason) of pairs of a stated part that is neither trained on nor held out."""


@dataclass(frozen=True)
class Pairs:
    """One split, ready to train on; row i of every member belongs to pair i."""

    name: str
    """Of the data set: "scenes", the folder's name, the table's stem."""
    split: str
    images: UInt8[np.ndarray, "n size size 3"] | StreamedImages
    """Read-only memory map of the prepared cache; where that does not fit, decoded whenever rows are asked for."""
    captions: Sequence[str]
    labels: Sequence[str]
    """Class of each pair, "" where it has none."""
    paths: Sequence[str]
    """The text of each image's `Location`; of a file its path."""
    metadata: Mapping[str, Sequence[str]]
    fingerprint: str
    """Hash of the decoded images, captions and labels: equal on any machine that holds the same pairs."""

    def __len__(self) -> int:
        return len(self.captions)

    def part(self, rows: Int[np.ndarray, " k"], *, split: str) -> Pairs:
        """Return these rows as a separate split."""
        metadata = {name: [values[row] for row in rows] for name, values in self.metadata.items()}
        captions, labels, paths = ([part[row] for row in rows] for part in (self.captions, self.labels, self.paths))
        return replace(
            self,
            split=split,
            images=self.images[rows],
            captions=captions,
            labels=labels,
            paths=paths,
            metadata=metadata,
        )


@dataclass(frozen=True)
class DataSplits:
    """The training split of a run, and its held-out splits."""

    train: Pairs
    heldout: dict[str, Pairs]
    """Scenes: "renderings" and "combinations"; a folder or table: "heldout"."""
    suite: PromptSuite | None
    """Zero-shot task that the labels of the held-out pairs answer, if they have labels."""
    report: ImportReport
    training_pairs: int
    """How many there are to train on; more than in `train` where only some were asked for."""
    digests: dict[str, list[bytes]] = field(default_factory=dict)
    """Hash of the pixels of each picture of a split; none where that is unknown."""
    reference_suite: PromptSuite | None = None
    """Zero-shot task of the reference set of a fine-tuning, which is then the held-out split `reference`."""

    @property
    def copies(self) -> dict[str, int]:
        """Held-out pairs of each split whose picture has the pixels of a training picture; none while unknown."""
        images = self.train.images
        cache = images.kept if isinstance(images, StreamedImages) else None
        learned = set(self.digests.get("train", ()) if cache is None else cache.digests)
        held = {split: digests for split, digests in self.digests.items() if split != "train"}
        return {split: sum(map(learned.__contains__, digests)) for split, digests in held.items()} if learned else {}
