"""Curves of one run of another program, held in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from trainer.store.journal import Entry

MOST_POINTS: Final = 10_000
"""Points of a curve that are kept; of longer ones every second, fourth, ... one."""
MOST_NUMBERS: Final = 1_000_000
"""Points of all curves of an import."""
MOST_NAMES: Final = 1_000
MOST_RUNS: Final = 200


@dataclass
class _Curve:
    """A curve, thinned as it grows; the last point is always known."""

    points: dict[int, tuple[float, float]] = field(default_factory=dict)
    seen: int = 0
    every: int = 1
    last: tuple[int, float, float] | None = None

    def add(self, step: int, time: float, value: float) -> int:
        """Add a point and return by how many the kept ones grew; of two at one step the later counts."""
        before = len(self.points)
        if self.seen % self.every == 0 or step in self.points:
            self.points[step] = (time, value)
        self.seen += 1
        self.last = (step, time, value)
        if len(self.points) > 2 * MOST_POINTS:
            self.thin()
        return len(self.points) - before

    def thin(self) -> None:
        """Drop every second point."""
        kept = list(self.points)[::2]
        self.points = {step: self.points[step] for step in kept}
        self.every *= 2


@dataclass
class Curves:
    """The curves of several runs, as they are read.

    Attributes:
        runs: Name of a run -> name of a metric -> its curve.
        passed_over: Numbers of runs or metrics beyond those that are kept.
    """

    runs: dict[str, dict[str, _Curve]] = field(default_factory=dict)
    passed_over: int = 0
    _kept: int = 0

    def add(self, batch: pa.RecordBatch, run: str = "") -> None:
        """Add the rows of a reader of `trainer.untrusted.bounded.tracker_files`; `run` names those without a run."""
        for named, name, step, time, value in zip(*(column.to_pylist() for column in batch.columns)):
            self.put(named or run, name, step, time, value)

    def put(self, run: str, name: str, step: int, time: float, value: float) -> None:
        """Add one number."""
        curve = self._curve(run, name)
        if curve is None:
            self.passed_over += 1
            return
        self._kept += curve.add(step, time, value)
        if self._kept > MOST_NUMBERS:
            self._thin()

    def _curve(self, run: str, name: str) -> _Curve | None:
        if run not in self.runs and len(self.runs) >= MOST_RUNS:
            return None
        curves = self.runs.setdefault(run, {})
        if name not in curves and sum(map(len, self.runs.values())) >= MOST_NAMES:
            return None
        return curves.setdefault(name, _Curve())

    def _thin(self) -> None:
        every = [curve for curves in self.runs.values() for curve in curves.values()]
        longest = max(len(curve.points) for curve in every)
        for curve in every:
            if 2 * len(curve.points) > longest:
                curve.thin()
        self._kept = sum(len(curve.points) for curve in every)

    @property
    def is_thinned(self) -> bool:
        """Whether points were left out."""
        return any(curve.every > 1 for curves in self.runs.values() for curve in curves.values())

    def entries(self, run: str) -> Iterator[Entry]:
        """Yield the numbers of a run, one entry for a step, ascending; one without a time has that before it."""
        steps: dict[int, dict[str, float]] = {}
        times: dict[int, float] = {}
        for name, curve in self.runs[run].items():
            points = dict(curve.points)
            if curve.last is not None:
                points[curve.last[0]] = curve.last[1:]
            for step, (time, value) in points.items():
                steps.setdefault(step, {})[name] = value
                times[step] = max(times.get(step, 0.0), time)
        first = min((time for time in times.values() if time > 0), default=0.0)
        now = first
        for step in sorted(steps):
            now = times[step] or now
            yield Entry(step, now, max(0.0, now - first), steps[step])
