"""Measures of runs as a table of a panel, as columns of `trainer analyze`, and as rows of a CSV."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from trainer.charts.marks import NumberRow, NumberTable
from trainer.charts.snapshot_label import SnapshotLabel

T = TypeVar("T")

FACTS: Final = ("run", "name", "objective", "step", "dataset", "split")
"""Fields of a `SnapshotLabel`, which begin the values and the records of a chart."""


class Measure(Struct, Generic[T], frozen=True):
    """A row of a table: its label, what it means, how it is read off one run, and its decimals."""

    words: str
    hint: str
    read: Callable[[T], float | str]
    digits: int = 3
    strong: bool = False

    def row(self, runs: Iterable[T | None]) -> NumberRow:
        """Return the row with a value per run; NaN where there is None."""
        values = (math.nan if run is None else self.read(run) for run in runs)
        numbers = tuple(value if isinstance(value, str) else float(value) for value in values)
        return NumberRow(self.words, self.hint, numbers, self.digits, self.strong)


def measure_table(
    key: str,
    title: str,
    names: Sequence[str],
    measures: Iterable[Measure[T]],
    runs: Sequence[T | None],
    *,
    badges: bool = True,
) -> NumberTable:
    """Return a table with a row per measure and a column per run; a run that is None has no values."""
    return NumberTable(key, title, tuple(names), tuple(measure.row(runs) for measure in measures), badges=badges)


def facts_of(run: SnapshotLabel, *more: str) -> dict[str, Any]:
    """Return what identifies a snapshot, then further fields of the run."""
    return {name: getattr(run, name) for name in (*FACTS, *more)}


def filled(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with the keys of all of them in the same order; NaN where a row has none."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name, math.nan) for name in names} for row in rows]
