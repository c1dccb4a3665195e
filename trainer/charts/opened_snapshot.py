"""A snapshot as a chart reads it: its run, what it is of, and its embeddings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from jaxtyping import Float
from numpy import ndarray

from trainer.analysis.units import Units
from trainer.charts import BOTH, ChartError
from trainer.charts.matching import units_of
from trainer.charts.snapshot_label import shown
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Request, Target
from trainer.store import RunRow, SnapshotRow, Workspace
from trainer.store.snapshot_files import Snapshot, read_snapshot


@dataclass(frozen=True)
class OpenedSnapshot:
    """A run, one of its snapshots, and what that holds."""

    run: RunRow
    row: SnapshotRow

    @cached_property
    def snapshot(self) -> Snapshot:
        """Its embeddings and items, read on first use."""
        return read_snapshot(self.row.folder)

    @property
    def key(self) -> tuple[str, SnapshotRow, int]:
        """Its run, row and time of writing, which no other shares."""
        return self.run.name, self.row, (self.row.folder / "snapshot.json").stat().st_mtime_ns

    @property
    def label(self) -> dict[str, Any]:
        """The fields of a `SnapshotLabel`."""
        return shown(self.run, self.row) | {"counted": _counted(self.row.folder, self.key[-1])}

    @cached_property
    def units(self) -> Units:
        """Which of its rows are one picture or one caption."""
        return units_of(self.snapshot)

    def both(self, what: str) -> tuple[Float[ndarray, "n d"], Float[ndarray, "n d"]]:
        """Return images and texts; `what` is the subject of the message if there is only one of them.

        Raises:
            ChartError: The run embeds only one modality.
        """
        if self.snapshot.image is None or self.snapshot.text is None:
            raise ChartError(f"Run {self.run.short_name} embeds only one modality; {what} images and texts. {BOTH}")
        return self.snapshot.image, self.snapshot.text


@lru_cache(maxsize=256)
def _counted(folder: Path, _written: int) -> str:
    """Return what a label says of pictures and captions that repeat; kept, as a slider asks for labels all the time."""
    return units_of(read_snapshot(folder)).counted


def open_target(workspace: Workspace, target: Target, request: Request) -> OpenedSnapshot:
    """Return the snapshot of a target on the data of the request.

    Raises:
        ChartError: The run has no such snapshot; names those there are.
    """
    run = workspace.runs.get(target.run)
    row = choose_snapshot(workspace, run, step=target.step, dataset=request.dataset, split=request.split)
    return OpenedSnapshot(run, row)


def open_targets(workspace: Workspace, request: Request) -> list[OpenedSnapshot]:
    """Return the snapshots of all targets, on the data of the first one where the request names none.

    Raises:
        ChartError: A run has no such snapshot.
    """
    opened: list[OpenedSnapshot] = []
    for target in request.targets:
        opened.append(open_target(workspace, target, request))
        request = replace(request, dataset=opened[0].row.dataset, split=opened[0].row.split)
    return opened
