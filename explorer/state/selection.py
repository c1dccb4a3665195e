"""The current selection: runs A and B, the step, the data, the selected pairs, the open view.

The only state that views share. Every change that a person makes can be undone; what the application does by itself
(restoring, choosing the first runs, hovering) can not. Opening a view is no change: `view_history` walks back.
"""

from __future__ import annotations

import base64
import dataclasses
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

from trainer.config.split_key import SplitKey

if TYPE_CHECKING:
    import numpy as np

UNDO_LIMIT: Final = 100
MOST_LISTED: Final = 1_000
"""More selected pairs are remembered packed."""


class Rows:
    """An immutable, sorted set of pair numbers that compares by content; a million cost milliseconds."""

    __slots__ = ("_array", "_few")

    def __init__(self, rows: Iterable[int] | np.ndarray = ()) -> None:
        # What is no array is few, and kept as it is: before the first paint nothing needs numpy, which loads slowly.
        self._few: tuple[int, ...] | None = None
        self._array: np.ndarray | None = None
        if hasattr(rows, "dtype"):
            self._array = _ascending(cast("np.ndarray", rows))
        else:
            self._few = tuple(sorted({int(row) for row in rows}))

    @property
    def array(self) -> np.ndarray:
        """The numbers (int64, ascending, unique, read-only)."""
        if self._array is None:
            import numpy as np

            self._array = _ascending(np.array(self._few, np.int64))
        return self._array

    def __len__(self) -> int:
        return len(self.array) if self._few is None else len(self._few)

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.tolist() if self._few is None else self._few)

    def __contains__(self, row: int) -> bool:
        return row in self._few if self._few is not None else bool((self.array == row).any())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rows):
            return tuple(self) == other if isinstance(other, tuple) else NotImplemented
        if self._few is not None and other._few is not None:
            return self._few == other._few
        return len(self) == len(other) and bool((self.array == other.array).all())

    def __hash__(self) -> int:
        return hash(self.array.tobytes())

    def __repr__(self) -> str:
        return f"Rows({list(self) if len(self) <= 8 else f'{len(self):,}'})"


def _ascending(rows: np.ndarray) -> np.ndarray:
    import numpy as np

    values = np.asarray(rows, np.int64)
    # Rows of a lasso are ascending as they come: sorting a million of them would be seen.
    ascending = values.ndim == 1 and bool((values[1:] > values[:-1]).all())
    array = values.copy() if ascending else np.unique(values)
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class Side:
    """One of the two snapshots that are compared."""

    place: int  # 0 is A, 1 is B.
    run: int  # Id of the run.
    step: int | None  # Of its snapshot; None is its last.


@dataclass(frozen=True)
class Looking:
    """One state of the selection; frozen, so that undo can keep it."""

    run_a: int | None = None  # Id of the run that is A, None if none is.
    run_b: int | None = None  # Id of the run that is B, None if none is.
    step: int | None = None  # Step of the snapshots shown; None is the last one.
    step_b: int | None = None  # Step of B's snapshot where it is another than A's; None: that of A.
    dataset: SplitKey | None = None  # Data of the snapshots shown; None is the first there is.
    pairs: Rows = field(default_factory=Rows)  # Selected rows of the dataset's items, ascending.
    queries: tuple[str, ...] = ()  # Image files the person asks about (dropped, pasted or browsed).
    view: str = ""  # Name of the open view; empty is the first.


class Selection(QObject):
    """The selection shared by all views; assigning a property announces the change and can be undone."""

    runs_changed = Signal()  # Run A or run B is another.
    step_changed = Signal()  # Another step is looked at.
    dataset_changed = Signal()  # Other data is looked at; selected pairs are gone with it.
    pairs_changed = Signal()  # Other pairs are selected.
    current_changed = Signal()  # Another of the selected pairs is the current one.
    hovered_changed = Signal()  # Another pair is under the pointer, or none.
    queries_changed = Signal()  # Other images are asked about.
    view_changed = Signal()  # Another view is open.
    placing = Signal(list)  # These image files are to be shown on the maps.
    facts_changed = Signal()  # States of pairs, or kept selections, were written to the store.

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.undo = QUndoStack(self)
        self.undo.setUndoLimit(UNDO_LIMIT)
        self._now = Looking()
        self._current: int | None = None
        self._hovered: int | None = None

    @property
    def now(self) -> Looking:
        """The complete state, frozen."""
        return self._now

    @property
    def run_a(self) -> int | None:
        """Id of the run that is A; a run that was B swaps with it."""
        return self._now.run_a

    @run_a.setter
    def run_a(self, run: int | None) -> None:
        self.select_runs(run, self.run_b if run is None or run != self.run_b else self.run_a)

    @property
    def run_b(self) -> int | None:
        """Id of the run that is B; a run that was A swaps with it."""
        return self._now.run_b

    @run_b.setter
    def run_b(self, run: int | None) -> None:
        self.select_runs(self.run_a if run is None or run != self.run_a else self.run_b, run)

    @property
    def runs(self) -> tuple[int, ...]:
        """A and B without empty places and duplicates."""
        return tuple(dict.fromkeys(run for run in (self.run_a, self.run_b) if run is not None))

    @property
    def sides(self) -> tuple[Side, ...]:
        """A and B, each at its own step, without empty places and duplicates."""
        sides: list[Side] = []
        for index, run in enumerate((self.run_a, self.run_b)):
            side = None if run is None else Side(index, run, self.step_of(index))
            if side is not None and (side.run, side.step) not in {(other.run, other.step) for other in sides}:
                sides.append(side)
        return tuple(sides)

    def follows(self, run: int) -> bool:
        """Return whether this run's last snapshot is selected, whichever it is."""
        return any(side.run == run and side.step is None for side in self.sides)

    @property
    def step(self) -> int | None:
        """The selected step; None is the last."""
        return self._now.step

    @step.setter
    def step(self, step: int | None) -> None:
        self._change("Choose a step", step=step, step_b=None)

    def step_of(self, index: int) -> int | None:
        """Return the step of run A (0) or B (1); None is its last."""
        return self._now.step if index == 0 or self._now.step_b is None else self._now.step_b

    @property
    def dataset(self) -> SplitKey | None:
        """The selected data; None is the first available."""
        return self._now.dataset

    @dataset.setter
    def dataset(self, dataset: SplitKey | None) -> None:
        if dataset != self.dataset:
            self._change("Choose data", dataset=dataset, pairs=Rows())

    @property
    def pairs(self) -> np.ndarray:
        """Selected rows of the dataset's items (int64, ascending, unique)."""
        return self._now.pairs.array

    @pairs.setter
    def pairs(self, rows: Iterable[int]) -> None:
        chosen = Rows(rows)
        self._change("Select pairs" if len(chosen) else "Clear the selection", pairs=chosen)

    @property
    def pair_count(self) -> int:
        """How many pairs are selected; before the first paint, `pairs` would load numpy."""
        return len(self._now.pairs)

    @property
    def queries(self) -> tuple[Path, ...]:
        """The query image files."""
        return tuple(Path(path) for path in self._now.queries)

    @queries.setter
    def queries(self, paths: Iterable[Path | str]) -> None:
        self._change("Choose images", queries=tuple(dict.fromkeys(str(path) for path in paths)))

    @property
    def view(self) -> str:
        """Name of the open view."""
        return self._now.view

    @view.setter
    def view(self, name: str) -> None:
        self.propose(view=name)

    @property
    def current(self) -> int | None:
        """The selected pair whose details every view shows; None before a view has chosen one of them."""
        return self._current

    @current.setter
    def current(self, row: int) -> None:
        if row != self._current and row in self._now.pairs:
            self._current = row
            self.current_changed.emit()

    @property
    def hovered(self) -> int | None:
        """Row of the pair under the pointer; neither undoable nor saved."""
        return self._hovered

    @hovered.setter
    def hovered(self, row: int | None) -> None:
        if row != self._hovered:
            self._hovered = row
            self.hovered_changed.emit()

    def select_runs(self, run_a: int | None, run_b: int | None) -> None:
        """Select these two runs, as one undo step; nothing changes if both are one, which no view could compare."""
        if run_a is not None and run_a == run_b:
            return
        self._change("Choose runs", run_a=run_a, run_b=run_b, step_b=None)

    def select_snapshots(self, a: tuple[int, int | None], b: tuple[int, int]) -> None:
        """Select one run at a step as A and another (or the same at another step) as B, as one undo step."""
        step_b = b[1] if b[1] != a[1] else None
        self._change("Choose snapshots", run_a=a[0], run_b=b[0], step=a[1], step_b=step_b)

    def swap(self) -> None:
        """Swap A and B."""
        steps = {} if self._now.step_b is None else {"step": self._now.step_b, "step_b": self.step}
        self._change("Swap A and B", run_a=self.run_b, run_b=self.run_a, **steps)

    def place(self, paths: Iterable[Path | str]) -> None:
        """Open the Map with these images among its points."""
        self.view = "map"
        self.placing.emit([*paths])

    def clear(self) -> None:
        """Clear the selected and hovered pairs; runs, step and data stay."""
        self.hovered = None
        self.pairs = ()

    def propose(self, **values: Any) -> None:
        """Set fields of `Looking` on the application's own initiative: announced, but without an undo step."""
        if "pairs" in values and not isinstance(values["pairs"], Rows):
            values["pairs"] = Rows(values["pairs"])
        self._become(dataclasses.replace(self._now, **values))

    def remember(self) -> dict[str, Any]:
        """Return what to save for the next session, ready for JSON."""
        names = [each.name for each in dataclasses.fields(self._now)]
        data = self.dataset and dataclasses.astuple(self.dataset)
        return {name: getattr(self._now, name) for name in names} | {
            "pairs": _written(self._now.pairs),
            "dataset": data,
        }

    def restore(self, remembered: dict[str, Any]) -> None:
        """Restore the result of `remember`; unknown or invalid values are skipped."""
        fields: dict[str, Callable[[Any], Any]] = {
            "run_a": _whole,
            "run_b": _whole,
            "step": _whole,
            "step_b": _whole,
            "dataset": _split_read,
            "pairs": _rows_read,
            "queries": lambda v: tuple(str(p) for p in v) if isinstance(v, list | tuple) else (),
            "view": lambda v: v if isinstance(v, str) else "",
        }
        self._become(Looking(**{name: read(remembered.get(name)) for name, read in fields.items()}))

    def _change(self, text: str, **values: Any) -> None:
        before = {name: getattr(self._now, name) for name in values}
        if before != values:
            self.undo.push(_Change(self, text, before, values))

    def _become(self, after: Looking) -> None:
        before, self._now = self._now, after
        if self._current is not None and self._current not in after.pairs:
            self._current = None
        if (before.dataset, before.view) != (after.dataset, after.view) or (
            self._hovered is not None and self._hovered in before.pairs and self._hovered not in after.pairs
        ):
            self.hovered = None
        for fields, signal in (
            (("run_a", "run_b"), self.runs_changed),
            (("dataset",), self.dataset_changed),
            (("step", "step_b"), self.step_changed),
            (("pairs",), self.pairs_changed),
            (("queries",), self.queries_changed),
            (("view",), self.view_changed),
        ):
            if any(getattr(before, f) != getattr(after, f) for f in fields):
                signal.emit()


class _Change(QUndoCommand):
    """A change of some fields from one value to another; pushing it applies it, and later changes of others stay."""

    def __init__(self, selection: Selection, text: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        super().__init__(text)
        self._selection, self._before, self._after = selection, before, after

    def redo(self) -> None:
        self._selection.propose(**self._after)

    def undo(self) -> None:
        self._selection.propose(**self._before)


def _written(rows: Rows) -> list[int] | str:
    """Encode few rows as a list and many as packed bits; a million take some hundred kilobytes."""
    if len(rows) <= MOST_LISTED:
        return list(rows)
    import numpy as np

    chosen = np.zeros(int(rows.array[-1]) + 1, bool)
    chosen[rows.array] = True
    return base64.b64encode(zlib.compress(np.packbits(chosen).tobytes(), 1)).decode()


def _split_read(value: Any) -> SplitKey | None:
    is_key = isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(name, str) for name in value)
    return SplitKey(*value) if is_key else None


def _rows_read(written: object) -> Rows:
    if isinstance(written, str):
        import numpy as np

        try:
            bits = np.frombuffer(zlib.decompress(base64.b64decode(written)), np.uint8)
        except (ValueError, zlib.error):
            return Rows()
        return Rows(np.flatnonzero(np.unpackbits(bits)))
    rows = written if isinstance(written, list | tuple) else ()
    return Rows(i for i in map(_whole, rows) if i is not None and i >= 0)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
