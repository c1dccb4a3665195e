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
from trainer.images import Cell, Location, Member, Preprocessing, file_of, size_of
from trainer.untrusted import files as untrusted_files

_BLOCK: Final = 1 << 20


def place_of(path: str) -> str:
    """Return the canonical location of a pair's image for any spelling of its path."""
    return os.path.abspath(path)


class LearnedPairs:
    """The training pairs of a run; empty if none of them still exist."""

    def __init__(self, sources: Sequence[Source] = ()) -> None:
        """Create it without opening files."""
        self.sources = sources
        self._places = {place_of(str(source.path)) for source in sources}
        self._sizes: dict[int, list[Location]] | None = None
        self._contents: dict[Location, bytes] = {}

    def __len__(self) -> int:
        return len(self.sources)

    def seen(self, sources: Sequence[Source]) -> list[bool]:
        """Return for each pair whether its image is a training image, by location or file contents.

        Only files of one size are compared. Images in Parquet tables are known by their pixels alone.
        """
        return [place_of(str(source.path)) in self._places or self._is_copy(source.path) for source in sources]

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
            digests: Of their pixels, as `digests_of` gives them; none where they are not known.
            size: At which both were prepared.
            cache: Folder of the prepared ones.
        """
        if not self.sources:
            return 0
        learned = np.array(self.seen(sources), bool)
        learned_digests = set(digests_of(self.sources, size=size, cache=cache, preprocessing=preprocessing))
        if learned_digests and len(digests) == len(sources):
            learned |= np.array([digest in learned_digests for digest in digests], bool)
        return int(learned.sum())

    def _is_copy(self, location: Location) -> bool:
        if not self.sources or isinstance(location, Cell):
            return False
        if self._sizes is None:
            self._sizes = {}
            for source in self.sources:
                if (size := size_of(source.path)) is not None:
                    self._sizes.setdefault(size, []).append(source.path)
        same = self._sizes.get(-1 if (size := size_of(location)) is None else size, ())
        content = self._content(location) if same else b""
        return bool(content) and any(self._content(other) == content for other in same)

    def _content(self, location: Location) -> bytes:
        if location not in self._contents:
            self._contents[location] = _hash(location)
        return self._contents[location]


def learned_pairs(data: config.Data, workspace_folder: Path, progress: Progress) -> LearnedPairs:
    """Return the training pairs of a run on these data; empty if the data no longer exist."""
    if data.is_downloaded:
        return LearnedPairs()  # they lie in folders of their libraries; `names_data_of` knows them by their name
    if isinstance(data, config.Scenes) and not is_drawn(folder_of(data, workspace_folder), "train"):
        return LearnedPairs()
    try:
        listed = listing(data, workspace_folder, progress, drawn=("train",))
    except DataError:
        return LearnedPairs()
    return LearnedPairs(parts_of(data, listed)["train"])


def _hash(location: Location) -> bytes:
    """Return a hash of an image's bytes; empty if unreadable."""
    digest = hashlib.blake2b(digest_size=16)
    left = size_of(location) or 0
    try:
        with untrusted_files.open_ordinary(file_of(location)) as file:
            file.seek(location.offset if isinstance(location, Member) else 0)
            while left > 0 and (block := file.read(min(_BLOCK, left))):
                digest.update(block)
                left -= len(block)
    except OSError:
        return b""
    return digest.digest()
