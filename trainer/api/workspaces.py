"""A workspace for Python users: its runs as a table, and each run by number or name."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trainer.api.frames import frame
from trainer.api.runs import RunHandle
from trainer.store import Workspace

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS: Final = (
    "id", "name", "status", "objective", "data", "preset", "step", "total_steps", "metric", "last", "best", "trained_s",
    "parent", "device", "reason", "note",
)  # fmt: skip


class OpenWorkspace:
    """A folder of runs; see `workspace`.

    Attributes:
        folder: Absolute path.
        store: The store behind it, which may change between versions.
    """

    def __init__(self, store: Workspace) -> None:
        self.store = store
        self.folder = store.folder

    def __repr__(self) -> str:
        return f"workspace({str(self.folder)!r})"

    def runs(self) -> pd.DataFrame:
        """Return one row per run that is not deleted, oldest first.

        Columns are the fields of `trainer.store.RunRow` and `created`, local time. `last` and `best` are values of
        `metric`.

        Raises:
            MissingPandas: pandas is not installed.
            StoreError: The workspace cannot be read.
        """
        rows = self.store.runs.all()
        columns = {name: [getattr(row, name) for row in rows] for name in _COLUMNS}
        columns["created"] = [datetime.datetime.fromtimestamp(row.created_at) for row in rows]
        return frame(columns)

    def run(self, ref: int | str) -> RunHandle:
        """Return the run with this number or name.

        Raises:
            StoreError: There is none, or several have this name.
        """
        return RunHandle(self.store, self.store.runs.get(ref).id)

    def __iter__(self) -> Iterator[RunHandle]:
        """Yield every run that is not deleted, oldest first."""
        return (RunHandle(self.store, row.id) for row in self.store.runs.all())


def workspace(folder: str | Path | OpenWorkspace) -> OpenWorkspace:
    """Return the workspace in a folder, which is created with the first run.

    One that another user or computer made is read-only, as in the window.

    >>> from trainer import api as ce
    >>> ws = ce.workspace("runs")
    >>> ws.runs()[["name", "objective", "status"]]
           name objective    status
    0  squares      clip  finished
    >>> ws.run("squares")
    <run 1 'squares': clip, finished, step 8 of 8>
    """
    return folder if isinstance(folder, OpenWorkspace) else OpenWorkspace(Workspace(Path(folder)))
