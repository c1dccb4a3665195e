"""The counts of an exact ranking in a file while it runs: after an interruption it continues from them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import numpy as np

from trainer.analysis.tiled_ranks import AheadCounts
from trainer.store import Snapshot
from trainer.store.component_files import components_name, keep_array, kept_array, remove_array

EVERY_S: Final = 30.0
"""Between two times at which the counts are written."""


class KeptCounts:
    """The counts of one snapshot's questions in both directions, in a file that is removed with the last of them."""

    def __init__(self, workspace_folder: Path, snapshot: Snapshot, images: int, texts: int) -> None:
        """Name the file of a snapshot with these numbers of distinct images and texts."""
        self._folder, self._images, self._texts = workspace_folder, images, texts
        self._name = components_name(snapshot.folder).replace(".components.", ".ranks.")
        self._written = time.monotonic()

    def read(self) -> AheadCounts | None:
        """Return what was counted before; None: nothing."""
        shape = (2 * self._images + self._texts,)
        numbers = kept_array(self._folder, self._name, shape, np.float64)
        if numbers is None:
            return None
        lines, done, columns = np.split(numbers, [self._images, 2 * self._images])
        return AheadCounts(lines.astype(np.int64), columns.astype(np.int64), None, done > 0)

    def see(self, counts: AheadCounts) -> None:
        """Write the counts, at most once in `EVERY_S`."""
        if time.monotonic() - self._written < EVERY_S or counts.columns is None:
            return
        numbers = np.concatenate([counts.lines, counts.done, counts.columns]).astype(np.float64)
        keep_array(self._folder, self._name, numbers)
        self._written = time.monotonic()

    def remove(self) -> None:
        """Remove the file."""
        remove_array(self._folder, self._name)
