"""Sets of embeddings that several processes of a training log in parts, which the first of them merges by id.

The parts lie in the workspace's cache until they are merged. No process waits for another one: what is missing after a
bounded time is left out, and the set is then a sample.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from trainer.companion.embedding_set import PreparedSet
from trainer.store.snapshot_files import Items, read_snapshot, write_snapshot
from trainer.untrusted import confined

WAIT_S: Final = 20.0
"""How long the first process waits for the parts of the others; its numbers are written meanwhile."""
_BEFORE_S: Final = 60.0
"""How much earlier than the first process another one may write, by the clocks of both."""
_LAUNCHES: Final = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "OMPI_MCA_ess_base_jobid")
"""Variables that tell one launch from another, equal in all of its processes."""


@dataclass(frozen=True)
class RankParts:
    """The parts of one training."""

    workspace: Path  # Its folder.
    name: str  # Of the run, the same in all processes.
    rank: str  # Of this process, a name that no other has.
    count: int  # How many processes there are.
    # When this process began, in seconds: parts of an earlier training of the name are older.
    since: float = field(default_factory=time.time)

    @property
    def folder(self) -> Path:
        """Where the parts lie."""
        launch = [os.environ.get(name, "") for name in _LAUNCHES]
        digest = hashlib.sha256("\n".join((self.name, *launch)).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return self.workspace / "cache" / f"ranks-{digest}"

    def clear(self) -> None:
        """Remove all parts: the training is over."""
        confined.remove_tree(self.workspace, f"cache/{self.folder.name}")

    def write(self, step: int, split: str, part: PreparedSet) -> None:
        """Write the part of this process.

        Raises:
            StoreError: It is no part of a set.
            OSError: The disk is full or gone.
        """
        confined.make_folder(self.workspace, f"cache/{self.folder.name}")
        write_snapshot(
            self._place(step, split) / self.rank,
            image=part.arrays.get("image"),
            text=part.arrays.get("text"),
            items=part.items,
            step=step,
            dataset="part",
            split=split,
            model=self.name,
        )

    def read(self, step: int, split: str) -> list[PreparedSet]:
        """Return the parts of the other processes that are complete."""
        parts = []
        for folder in sorted(self._place(step, split).glob("[!.]*")):
            with contextlib.suppress(OSError, ValueError):
                if folder.stat().st_mtime < self.since - _BEFORE_S:
                    continue
                stored = read_snapshot(folder)
                sides = {"image": stored.image, "text": stored.text}
                arrays = {name: np.array(rows) for name, rows in sides.items() if rows is not None}
                parts.append(PreparedSet(arrays, stored.items, []))
        return parts

    def remove(self, step: int, split: str) -> None:
        """Remove the parts of a set that is stored."""
        confined.remove_tree(self.workspace, self._place(step, split).relative_to(self.workspace))

    def _place(self, step: int, split: str) -> Path:
        return self.folder / f"{split}-{step}"


def merged(parts: Sequence[PreparedSet]) -> PreparedSet:
    """Return one set with every id once, of the first part that has it; ids that are numbers are in their order.

    Raises:
        ValueError: The parts have not the same sides and columns.
    """
    shapes = {(tuple(sorted(part.arrays)), part.width, tuple(sorted(part.items.metadata))) for part in parts}
    if len(shapes) > 1:
        raise ValueError("the parts of several processes have other sides, widths or columns of items")
    ids = np.concatenate([part.items.id for part in parts])
    _, first = np.unique(ids, return_index=True)
    rows = first if ids.dtype.kind in "iu" else np.sort(first)
    arrays = {name: np.concatenate([part.arrays[name] for part in parts])[rows] for name in parts[0].arrays}
    names = ("path", "caption", "label", "split")
    columns = (_joined([getattr(part.items, name) for part in parts], rows) for name in names)
    path, caption, label, split = columns
    items = Items(ids[rows], path, caption, label, split)
    metadata = {name: _joined([part.items.metadata[name] for part in parts], rows) for name in parts[0].items.metadata}
    return PreparedSet(arrays, replace(items, metadata=metadata), [row for part in parts for row in part.dropped])


def _joined(columns: Sequence[Sequence[Any]], rows: np.ndarray) -> list[Any]:
    values = [value for column in columns for value in column]
    return [values[row] for row in rows.tolist()]
