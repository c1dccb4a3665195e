"""The part of a data set that the name of a folder, file, tar or table states, by the rules of Hugging Face `datasets`.

A keyword counts where it is delimited by `-`, `.`, `_`, a space, a digit or an end of the name (the default patterns in
`datasets/data_files.py`); here in letters of any case. Folders come before files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, Literal

from msgspec import Struct

Part = Literal["train", "validation", "test"]

KEYWORDS: Final[Mapping[Part, tuple[str, ...]]] = {
    "train": ("train", "training"),
    "test": ("test", "testing", "eval", "evaluation"),
    "validation": ("validation", "valid", "val", "dev"),
}
"""Part -> the words that name it; of the parts to validate on the first that there is is held out."""

SPLIT: Final = "split"
"""The usual name of a column of parts."""
SPLITS: Final = (SPLIT, "partition", "subset", "data set", "dataset_split", "set_name", "set", "phase")
"""Columns that may say where a pair belongs, the likeliest first; those after the first count if they state parts."""
_COLUMN_ONLY: Final[Mapping[str, Part]] = {"restval": "train"}
"""A value of the column `split` in the lists of Karpathy and Li (2015)."""

_PART_OF: Final[Mapping[str, Part]] = {word: part for part, words in KEYWORDS.items() for word in words}
_KEYWORD: Final = re.compile(rf"(?:^|(?<=[-._ 0-9]))({'|'.join(_PART_OF)})(?=[-._ 0-9]|$)", re.IGNORECASE)


class StatedSplit(Struct, frozen=True):
    """The parts that names state."""

    parts: dict[str, Part]  # Name -> its part; names that state none are missing.
    level: Literal["folders", "files", "lists"]
    # Part -> the name of a folder or the keyword in the names of files; without `train` where only what is held
    # out is stated, and the rest is trained on.
    sources: dict[Part, str]

    @property
    def heldout(self) -> Part:
        """The part to validate on."""
        return heldout_of(self.sources)


def part_of(name: str) -> Part | None:
    """Return the part that the name of one file or folder states; None if it states none, or two."""
    stated = {_PART_OF[word.lower()] for word in _KEYWORD.findall(name)}
    return stated.pop() if len(stated) == 1 else None


def without_keyword(name: str) -> str:
    """Return the name with `*` in place of its keywords, which is equal for the parts of one data set."""
    return _KEYWORD.sub("*", name)


def part_of_value(value: str) -> Part | None:
    """Return the part that a value of a column `split` names."""
    plain = value.strip().lower()
    return _PART_OF.get(plain) or _COLUMN_ONLY.get(plain)


def parts_of_values(values: Iterable[str]) -> dict[str, Part]:
    """Return the part that each value of a column `split` names; of `test_a` and `test_b` the first is that part."""
    distinct = sorted(set(values))
    stated = {value: part for value in distinct if (part := part_of_value(value))}
    for value in distinct:
        if (part := part_of(value)) and part not in stated.values():
            stated[value] = part
    return stated


def heldout_of(parts: Iterable[str]) -> Part:
    """Return the part to validate on, of those that are stated.

    Raises:
        StopIteration: There is none.
    """
    stated = set(parts)
    return next(part for part in KEYWORDS if part in stated and part != "train")


def is_split(parts: Collection[str | None]) -> bool:
    """Return whether there is a part to train on and one to validate on."""
    return "train" in parts and any(part in parts for part in KEYWORDS if part != "train")


def stated_split(names: Sequence[str]) -> StatedSplit | None:
    """Return the split that relative paths state by their folders, else by the names of the files; None if by none.

    Folders state it where most files lie in one of its parts, files where every one does: a word such as "test" in a
    few names of many says what a picture shows. Of folders within each other the outermost counts that gives a split.
    Where folders state a part to validate on and none to train on, that is the rest, if it has at least as many.

    Args:
        names: Relative paths with forward slashes.
    """
    folders = {parent: parent.split("/") if parent else [] for parent in {_parent(name) for name in names}}
    rest: StatedSplit | None = None
    for inwards in (True, False):
        chosen: dict[str, tuple[Part, str]] = {}
        for parent, above in folders.items():
            stated = [(part, name) for name in (above if inwards else above[::-1]) if (part := part_of(name))]
            if stated:
                chosen[parent] = stated[0]
        parts = {name: chosen[at][0] for name in names if (at := _parent(name)) in chosen}
        if is_split(set(parts.values())) and 2 * len(parts) > len(names):
            return StatedSplit(parts, "folders", _commonest(chosen.values()))
        if parts and not rest and 2 * len(parts) <= len(names) and "train" not in parts.values():
            every: dict[str, Part] = {name: parts.get(name, "train") for name in names}
            rest = StatedSplit(every, "folders", _commonest(chosen.values()))
    if rest:
        return rest
    by_file = {name: part for name in names if (part := part_of(PurePosixPath(name).name))}
    if len(by_file) == len(names) and is_split(set(by_file.values())):
        keywords = ((part, _keyword(PurePosixPath(name).name)) for name, part in by_file.items())
        return StatedSplit(by_file, "files", _commonest(keywords))
    return None


def unused_keywords(names: Sequence[str]) -> str:
    """Return a sentence about names that state parts and yet no split; empty if there are none."""
    counts: Counter[str] = Counter()
    for name in names:
        stated = [part for step in reversed(name.split("/")) if (part := part_of(step))]
        counts.update(stated[:1])
    if not is_split(counts):
        return ""
    named = ", ".join(f"{count:,} {part}" for part, count in counts.items())
    return f"Some names read like parts of a split ({named} of {len(names):,}), too few to be one."


def _parent(name: str) -> str:
    return name.rpartition("/")[0]


def _keyword(name: str) -> str:
    match = _KEYWORD.search(name)
    return match[0] if match else name


def _commonest(stated: Iterable[tuple[Part, str]]) -> dict[Part, str]:
    counts: dict[Part, Counter[str]] = {}
    for part, name in stated:
        counts.setdefault(part, Counter())[name] += 1
    return {part: min(names, key=lambda name: (-names[name], name)) for part, names in counts.items()}
