"""In-memory curves of the runs on screen, extended as new rows arrive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.store import EvaluationRow, RunRow, ScalarRow, SnapshotRow, Workspace

Arrays = tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]


class RunCurves(Struct, frozen=True):
    """A run's curves as stored at one moment: name -> steps, values, seconds of training; and its batch size."""

    run: RunRow
    names: tuple[str, ...]
    series: dict[str, Arrays]
    snapshots: tuple[SnapshotRow, ...]
    batch: int | None


def read_curves(workspace: Workspace, runs: Sequence[int], names: Sequence[str]) -> tuple[RunCurves, ...]:
    """Read the curves `names` of `runs`; runs on a background thread."""
    return tuple(
        RunCurves(
            workspace.runs.get(run),
            tuple(workspace.results.scalar_names(run)),
            {name: workspace.results.series(run, name) for name in names},
            tuple(workspace.results.snapshots(run)),
            workspace.runs.batch_size(run),
        )
        for run in runs
    )


class CurveBook:
    """An in-memory replacement for the parts of a workspace that `trainer.charts.curves` reads.

    So the window draws exactly what `trainer export curves` draws, and a new row costs no reading of old ones.
    """

    def __init__(self) -> None:
        self._runs: dict[int, RunRow] = {}
        self._names: dict[int, set[str]] = {}
        self._snapshots: dict[int, tuple[SnapshotRow, ...]] = {}
        self._batches: dict[int, int | None] = {}
        self._curves: dict[tuple[int, str], _Growing] = {}

    def load(self, read: Iterable[RunCurves]) -> None:
        """Store the curves read for some runs, replacing earlier ones of the same runs."""
        for curves in read:
            self.forget(curves.run.id)
            self._runs[curves.run.id] = curves.run
            self._names[curves.run.id] = set(curves.names)
            self._snapshots[curves.run.id] = curves.snapshots
            self._batches[curves.run.id] = curves.batch
            for name, arrays in curves.series.items():
                self._curves[curves.run.id, name] = _Growing(arrays)

    def append(self, rows: Iterable[ScalarRow]) -> set[int]:
        """Enter new rows into the curves held and return the runs whose curves changed."""
        grown = set()
        for row in rows:
            if row.run in self._names:
                self._names[row.run].add(row.name)
            curve = self._curves.get((row.run, row.name))
            if curve is not None and curve.append(row.step, row.value, row.elapsed_s):
                grown.add(row.run)
        return grown

    def forget(self, run: int) -> None:
        """Remove all data of a run."""
        for by_run in (self._runs, self._names, self._snapshots, self._batches):
            by_run.pop(run, None)
        for key in [key for key in self._curves if key[0] == run]:
            del self._curves[key]

    def holds(self, run: int, names: Iterable[str]) -> bool:
        """Return whether the book has these curves of the run."""
        return all((run, name) in self._curves for name in names)

    def update(self, run: RunRow) -> None:
        """Replace the row of a run that the book holds."""
        if run.id in self._runs:
            self._runs[run.id] = run

    def frozen(self) -> CurveBook:
        """Return a snapshot of the book for another thread; later rows do not affect it and no curve is copied."""
        copy = CurveBook()
        copy._runs, copy._snapshots, copy._batches = dict(self._runs), dict(self._snapshots), dict(self._batches)
        copy._names = {run: set(names) for run, names in self._names.items()}
        copy._curves = {key: _Growing(curve.arrays(), shared=True) for key, curve in self._curves.items()}
        return copy

    # -- as a workspace ----------------------------------------------------------------------------------------

    @property
    def runs(self) -> CurveBook:
        """The object whose `get` returns the row of a run, like `Workspace.runs`."""
        return self

    @property
    def results(self) -> CurveBook:
        """The object with the curves and snapshots, like `Workspace.results`."""
        return self

    def get(self, ref: int) -> RunRow:
        """Return the run's row."""
        return self._runs[ref]

    def batch_size(self, run: int) -> int | None:
        """Return the pairs per step of the run, as of the last read."""
        return self._batches.get(run)

    def series(self, run: int, name: str) -> Arrays:
        """Return steps, values and seconds of training; empty if the run has not logged the name."""
        curve = self._curves.get((run, name))
        return curve.arrays() if curve is not None else _EMPTY

    def scalar_names(self, run: int) -> list[str]:
        """Return the sorted names of the curves logged by the run."""
        return sorted(self._names.get(run, ()))

    def answers(self, run: int) -> list[EvaluationRow]:
        """Return no evaluation: the curves of a window are of what runs log."""
        return []

    def snapshots(self, run: int) -> list[SnapshotRow]:
        """Return the run's snapshots as of the last read."""
        return list(self._snapshots.get(run, ()))


class _Growing:
    """Three arrays with amortized constant-time append."""

    def __init__(self, arrays: Arrays, *, shared: bool = False) -> None:
        self._size = len(arrays[0])
        self._arrays = [array if shared else np.array(array) for array in arrays]

    def arrays(self) -> Arrays:
        """Return views of the current contents that later rows do not change."""
        steps, values, seconds = (array[: self._size] for array in self._arrays)
        return steps, values, seconds

    def append(self, step: int, value: float, seconds: float) -> bool:
        """Enter a point, of which there is one a step; return whether that changes the curve."""
        if self._size and step <= self._arrays[0][self._size - 1]:
            return self._insert(step, value, seconds)
        if self._size == len(self._arrays[0]):
            room = max(64, self._size)
            self._arrays = [np.concatenate([array, np.zeros(room, array.dtype)]) for array in self._arrays]
        for array, new in zip(self._arrays, (step, value, seconds), strict=True):
            array[self._size] = new
        self._size += 1
        return True

    def _insert(self, step: int, value: float, seconds: float) -> bool:
        """Enter a point that comes late, such as a past epoch; arrays that drawings hold stay as they are."""
        steps, values, times = self.arrays()
        at = int(np.searchsorted(steps, step))
        after = at + int(steps[at] == step)
        if after > at and np.array_equal((values[at], times[at]), (value, seconds), equal_nan=True):
            return False
        self._arrays = [
            np.concatenate([array[:at], np.array([new], array.dtype), array[after : self._size]])
            for array, new in zip(self._arrays, (step, value, seconds), strict=True)
        ]
        self._size = len(self._arrays[0])
        return True


_EMPTY: Arrays = (np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
