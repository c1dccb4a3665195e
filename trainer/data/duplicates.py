"""Near-duplicate images of a data set: within the training pairs, and across the split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from trainer.analysis.near_duplicates import BITS, groups_of_near, perceptual_hashes, small_versions
from trainer.data.pairs import DataError, DataSplits, Pairs

_AT_ONCE: Final = 1_024


@dataclass(frozen=True)
class Group:
    """Images that are near duplicates of each other, by split."""

    train: tuple[str, ...]  # Paths of training pictures.
    heldout: tuple[str, ...]  # Paths of pictures of any held-out split.

    @property
    def leaks(self) -> bool:
        """Whether an image is both in the training and in a held-out split."""
        return bool(self.train and self.heldout)

    @property
    def dropped(self) -> tuple[str, ...]:
        """The images that a cleaned list omits: held-out images stay, else the first training image does."""
        return self.train if self.heldout else self.train[1:]


def groups_of(splits: DataSplits, *, bits: int = BITS) -> list[Group]:
    """Return groups of two or more images in order of their first one; an image with many captions counts once."""
    sides = [splits.train, *splits.heldout.values()]
    at: dict[str, tuple[int, int]] = {}
    for side, pairs in enumerate(sides):
        for row, path in enumerate(pairs.paths):
            at.setdefault(path, (side, row))
    paths = list(at)
    hashes, small = [np.empty(0, np.uint64)], [np.empty((0, 192), np.float32)]
    for pictures in _pictures(sides, list(at.values())):
        hashes.append(perceptual_hashes(pictures))
        small.append(small_versions(pictures))
    first = groups_of_near(np.concatenate(hashes), np.concatenate(small), bits=bits)
    members: dict[int, list[str]] = {}
    for row, group in enumerate(first.tolist()):
        members.setdefault(group, []).append(paths[row])
    groups = (_group(each, at) for each in members.values() if len(each) > 1)
    return sorted(groups, key=lambda group: not group.leaks)


def _group(paths: Sequence[str], at: dict[str, tuple[int, int]]) -> Group:
    train = tuple(path for path in paths if at[path][0] == 0)
    return Group(train, tuple(path for path in paths if at[path][0]))


def _pictures(sides: Sequence[Pairs], rows_of_sides: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
    for side, pairs in enumerate(sides):
        rows = np.array([row for of, row in rows_of_sides if of == side], dtype=np.int64)
        for start in range(0, len(rows), _AT_ONCE):
            yield np.asarray(pairs.images[rows[start : start + _AT_ONCE]])


PAIR: Final = ("filepath", "title", "label")
"""Columns of a cleaned list, as a table of images and captions is read by default."""


def cleaned(splits: DataSplits, groups: Sequence[Group]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return rows of `PAIR`: the remaining training pairs, and every held-out pair.

    Raises:
        DataError: Pictures lie inside other files, or nothing would be left.
    """
    gone = {path for group in groups for path in group.dropped}
    remaining = [row for row in rows_of(splits.train) if row[0] not in gone]
    if not remaining:
        raise DataError("No training pair would be left. Choose fewer --bits.")
    return remaining, heldout_rows(splits)


def heldout_rows(splits: DataSplits) -> list[tuple[str, ...]]:
    """Return rows of `PAIR` of every held-out pair.

    Raises:
        DataError: Pictures of any split lie inside other files.
    """
    inside = next(
        (path for pairs in (splits.train, *splits.heldout.values()) for path in pairs.paths if "::" in path), ""
    )
    if inside:
        raise DataError(f"A list names files, and {inside} lies inside one. Unpack the pictures first.")
    return [row for pairs in splits.heldout.values() for row in rows_of(pairs)]


def rows_of(pairs: Pairs) -> list[tuple[str, ...]]:
    """Return a row of `PAIR` for each pair, in order."""
    return list(zip(pairs.paths, pairs.captions, pairs.labels, strict=True))
