"""Identify a model's training images: by location, by file contents, and by pixels.

A picture that was copied, linked, or packed into a tar or a table lies elsewhere and is the same picture.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from trainer import config
from trainer.data.dataset_index import listing
from trainer.data.pairs import DataError, Source
from trainer.data.prepared import Progress, digests_of
from trainer.data.scenes import folder_of, is_drawn
from trainer.data.splits import parts_of
from trainer.images import Cell, Location, Member, Preprocessing, file_of
from trainer.untrusted import files as untrusted_files

_BLOCK: Final = 1 << 20


def place_of(path: str) -> str:
    """Return the canonical location of a pair's image for any spelling of its path."""
    return os.path.abspath(path)


class LearnedPairs:
    """The training pairs of a run; empty if none of them still exist."""

    def __init__(self, sources: Sequence[Source] = ()) -> None:
        """Create it without opening files."""
        self._sources = sources
        self._places = {place_of(str(source.path)) for source in sources}
        self._sizes: dict[int, list[Location]] | None = None
        self._contents: dict[Location, bytes] = {}

    def __len__(self) -> int:
        return len(self._sources)

    @property
    def sources(self) -> Sequence[Source]:
        """The pairs."""
        return self._sources

    def seen(self, sources: Sequence[Source]) -> list[bool]:
        """Return for each pair whether its image is a training image, by location or file contents.

        Only files of one size are compared. Images in Parquet tables are known by their pixels alone.
        """
        return [place_of(str(one.path)) in self._places or self._is_copy(one.path) for one in sources]

    def count(
        self,
        sources: Sequence[Source],
        digests: Sequence[bytes],
        *,
        size: int,
        cache: Path,
        preprocessing: Preprocessing | None,
    ) -> int:
        """Count the pairs with a training image, also by equal pixels if both are prepared.

        Args:
            sources: The pairs.
            digests: Of their pixels, as `digests_of` gives them; none where they are not known.
            size: At which both were prepared.
            cache: Folder of the prepared ones.
            preprocessing: By which.
        """
        if not self._sources:
            return 0
        found = np.array(self.seen(sources), bool)
        own = set(digests_of(self._sources, size=size, cache=cache, preprocessing=preprocessing))
        if own and len(digests) == len(sources):
            found |= np.array([digest in own for digest in digests], bool)
        return int(found.sum())

    def _is_copy(self, place: Location) -> bool:
        if not self._sources or isinstance(place, Cell):
            return False
        if self._sizes is None:
            self._sizes = {}
            for source in self._sources:
                if (size := _size(source.path)) is not None:
                    self._sizes.setdefault(size, []).append(source.path)
        same = self._sizes.get(-1 if (size := _size(place)) is None else size, ())
        own = self._content(place) if same else b""
        return bool(own) and any(self._content(other) == own for other in same)

    def _content(self, place: Location) -> bytes:
        if place not in self._contents:
            self._contents[place] = _hash(place)
        return self._contents[place]


def learned_pairs(data: config.Data, workspace_folder: Path, progress: Progress) -> LearnedPairs:
    """Return the training pairs of a run on these data; empty if the data no longer exist."""
    if isinstance(data, config.Named | config.HubDataset):
        return LearnedPairs()  # they lie in folders of their libraries; `names_data_of` knows them by their name
    if isinstance(data, config.Scenes) and not is_drawn(folder_of(data, workspace_folder), "train"):
        return LearnedPairs()
    try:
        listed = listing(data, workspace_folder, progress)
    except DataError:
        return LearnedPairs()
    return LearnedPairs(parts_of(data, listed)["train"])


def _size(place: Location) -> int | None:
    """Return an image's size in bytes; None if unknown without reading it."""
    if isinstance(place, Member):
        return place.size
    try:
        return None if isinstance(place, Cell) else place.stat().st_size
    except OSError:
        return None


def _hash(place: Location) -> bytes:
    """Return a hash of an image's bytes; empty if unreadable."""
    digest = hashlib.blake2b(digest_size=16)
    left = _size(place) or 0
    try:
        with untrusted_files.open_ordinary(file_of(place)) as file:
            file.seek(place.offset if isinstance(place, Member) else 0)
            while left > 0 and (block := file.read(min(_BLOCK, left))):
                digest.update(block)
                left -= len(block)
    except OSError:
        return b""
    return digest.digest()
