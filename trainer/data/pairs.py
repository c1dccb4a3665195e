"""The data types of this package: pairs ready to train on, and problems with the others."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from jaxtyping import Int, UInt8

from trainer.catalog import PromptSuite
from trainer.data.errors import DataError
from trainer.data.lazy_images import StreamedImages
from trainer.images import Location

__all__ = ["BATCH", "DataError", "DataSplits", "ImportLog", "ImportReport", "Pairs", "Source", "captioned"]

BATCH: Final = "batch"
"""Name of the split that is one training batch, embedded beside the held-out ones."""


_VOWEL: Final = re.compile(
    r"(?!uni|eu|one\b|us[ae]|ur[aiou]|ut[ei]|uk)[aeiou]|hour|honest|heir|8|1[18](?!\d)", re.IGNORECASE
)
"""Beginnings of English names and numbers that are spoken with a vowel."""
_SINGULAR: Final = re.compile(
    r".*(ss|us|is|os|ops|ois)|yellowlegs|.*pyrenees|gas|atlas|canvas|pancreas|christmas|.*lens|series|species|news"
)
"""Words in s that are no plural."""
_OF: Final = re.compile(r"\w+ of ", re.IGNORECASE)


def captioned(template: str, name: str) -> str:
    """Return the caption of a class: its name in place of `{}`, and for `a(n)` a, an, or nothing before many."""
    if _is_plural(name):
        return template.replace("a(n) ", "").replace("{}", name)
    plain = unicodedata.normalize("NFD", name)
    return template.replace("a(n)", "an" if _VOWEL.match(plain) else "a").replace("{}", name)


def _is_plural(name: str) -> bool:
    """Return whether an English name is one of many things: jeans, but no pair of jeans, glass or bus."""
    last = re.sub(r"\s*\(.*", "", name.lower()).split()[-1:]
    word = last[0] if last else ""
    return (
        len(word) > 3
        and word.endswith("s")
        and word.isalpha()
        and not _SINGULAR.fullmatch(word)
        and not _OF.match(name)
    )


@dataclass(frozen=True)
class Source:
    """One pair on the disk, its image not yet decoded."""

    path: Location
    """Where its image is: a file, a member of a tar, a cell of a table."""
    relative: str
    """Name of the image below the data set's folder, with forward slashes."""
    caption: str
    label: str = ""
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass
class ImportLog:
    """Remarks about pairs besides problems; collected while they are listed."""

    remarks: list[tuple[str, str]] = field(default_factory=list)
    """(item, what was put right) of pairs that are used."""
    notes: list[str] = field(default_factory=list)
    """Sentences about all of them."""
    split: str = ""
    """What states the split, as a sentence; empty if nothing does."""


@dataclass(frozen=True)
class ImportReport:
    """How many pairs are used, why others are not, and remarks about used ones.

    Every pair that was found is either used or has a line in `problems`.
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


@dataclass(frozen=True)
class Pairs:
    """One split, ready to train on; row i of every member belongs to pair i."""

    name: str
    """Of the data set: "scenes", the folder's name, the table's stem."""
    split: str
    images: UInt8[np.ndarray, "n size size 3"] | StreamedImages
    """Read-only memory map of the prepared cache; where that does not fit, decoded whenever rows are asked for."""
    captions: list[str]
    labels: list[str]
    """Class of each pair, "" where it has none."""
    paths: list[str]
    """The text of each image's `Location`; of a file its path."""
    metadata: dict[str, list[str]]
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
    copies: dict[str, int] = field(default_factory=dict)
    """Held-out pairs of each split whose picture has the pixels of a training picture; none where that is unknown."""
