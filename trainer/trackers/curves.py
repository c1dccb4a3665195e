"""Curves of one run of another program, held in bounded memory."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from trainer.store.journal import Entry
from trainer.store.run_texts import MOST_SETTINGS, MOST_WORDS
from trainer.untrusted.bounded.tracker_rows import EPOCH, LATER, NOTE, REPLACED, RESTART, SETTING, TrackerRow

MOST_POINTS: Final = 10_000
"""Points of a curve that are kept; of longer ones every second, fourth, ... one."""
MOST_NUMBERS: Final = 1_000_000
"""Points of all curves of an import."""
MOST_NAMES: Final = 1_000
MOST_RUNS: Final = 200
BEYOND: Final = f"numbers of more than {MOST_NAMES:,} curves or {MOST_RUNS} runs"


@dataclass
class Curve:
    """A curve, thinned as it grows; the last point is always known."""

    points: dict[int, tuple[float, float]] = field(default_factory=dict)  # Step -> time and value.
    # Those of the points, ascending, so that what a restart voids is found at once.
    steps: list[int] = field(default_factory=list)
    seen: int = 0
    every: int = 1
    last: tuple[int, float, float] | None = None
    is_resumed: bool = False  # Whether the next point is the first of another session.

    def add(self, step: int, time: float, value: float) -> int:
        """Add a point and return by how many the kept ones grew; of two at one step the later counts."""
        before = len(self.points)
        if self.seen % self.every == 0 or step in self.points:
            if step not in self.points:
                bisect.insort(self.steps, step)
            self.points[step] = (time, value)
        self.seen += 1
        self.last = (step, time, value)
        if len(self.points) > 2 * MOST_POINTS:
            self.thin()
        return len(self.points) - before

    def has(self, step: int) -> bool:
        """Return whether there is a point of this step, as far as it was kept."""
        return step in self.points or (self.last is not None and self.last[0] == step)

    def void(self, step: int) -> int:
        """Drop the points at this step and later, which a session logged that was resumed before; return how many."""
        first = bisect.bisect_left(self.steps, step)
        dropped = self.steps[first:]
        for at in dropped:
            del self.points[at]
        del self.steps[first:]
        if self.last is not None and self.last[0] >= step:
            self.last = (self.steps[-1], *self.points[self.steps[-1]]) if self.steps else None
        return len(dropped)

    def count(self, updates: Callable[[int], int]) -> None:
        """Count the steps as updates, of which `updates` says how many a step is: more at a later one."""
        self.points = {updates(step): point for step, point in self.points.items()}
        self.steps = sorted(self.points)
        if self.last is not None:
            self.last = (updates(self.last[0]), *self.last[1:])

    def thin(self) -> None:
        """Drop every second point."""
        self.steps = self.steps[::2]
        self.points = {step: self.points[step] for step in self.steps}
        self.every *= 2


@dataclass
class Curves:
    """The curves of several runs, as they are read."""

    runs: dict[str, dict[str, Curve]] = field(default_factory=dict)  # Name of a run -> name of a metric -> its curve.
    # Name of a run -> names and words of settings that its files tell.
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    steps_per_epoch: dict[str, int] = field(default_factory=dict)  # Name of a run -> steps.
    # Name of a run -> what of its files is left out -> how many values.
    skipped: dict[str, Counter[str]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)  # Name of a run -> sentences on its files.
    _kept: int = 0

    def begin(self, run: str) -> None:
        """Begin another file of the run: what it logs at a step voids what files before it have there and later."""
        for curve in self.runs.get(run, {}).values():
            curve.is_resumed = True

    def add(self, batch: pa.RecordBatch, run: str = "", *, is_within: bool = False) -> None:
        """Add the rows of a reader of `trainer.untrusted.bounded.tracker_files`; `run` names those without a run.

        With `is_within`, runs that rows name are those of one log of several, and are called after it too.
        """
        for row in map(TrackerRow._make, zip(*(column.to_pylist() for column in batch.columns))):
            named = f"{run} {row.run}".strip() if is_within else row.run or run
            if not row.remark or (row.remark == LATER and row.name in self.runs.get(named, {})):
                self._replace(named, row)
                self.put(named, row.name, row.step, row.time, row.value)
            else:
                self._remark(named, row)

    def note(self, run: str, sentence: str) -> None:
        """Note a sentence on the files of a run."""
        self.notes.setdefault(run, []).append(sentence)

    def skip(self, run: str, what: str, count: int = 1) -> None:
        """Count values of a run that are left out."""
        self.skipped.setdefault(run, Counter())[what] += count

    def said(self, run: str) -> tuple[str, ...]:
        """Return what is to be said of a run and of files that gave no run, in sentences."""
        others = [name for name in {**self.notes, **self.skipped} if name not in {run, *self.runs}]
        sentences = [sentence for name in (run, *others) for sentence in self.notes.get(name, ())]
        counts: Counter[str] = sum((self.skipped.get(name, Counter()) for name in (run, *others)), Counter())
        if counts:
            values = ", ".join(f"{what} ({count:,})" for what, count in counts.most_common(8))
            sentences.append(f"Left out: {values}.")
        if any(curve.every > 1 for curve in self.runs.get(run, {}).values()):
            sentences.append("Of long curves every second, fourth, ... point was kept.")
        return tuple(dict.fromkeys(sentences))

    def _replace(self, run: str, row: TrackerRow) -> None:
        """Count what a number voids: one at its step, and in another file of the run all that are later."""
        if (curve := self.runs.get(run, {}).get(row.name)) is None:
            return
        if curve.is_resumed:
            curve.is_resumed = False
            self._void(run, curve, row.step)
        elif curve.has(row.step):
            self.skip(run, REPLACED)

    def _void(self, run: str, curve: Curve, step: int) -> None:
        if dropped := curve.void(step):
            self._kept -= dropped
            self.skip(run, REPLACED, dropped)

    def _remark(self, run: str, row: TrackerRow) -> None:
        if row.remark == RESTART:
            curves = self.runs.get(run, {})
            for curve in curves.values() if not row.name else filter(None, [curves.get(row.name)]):
                self._void(run, curve, row.step)
        elif row.remark == SETTING:
            settings = self.settings.setdefault(run, {})
            if len(settings) < MOST_SETTINGS:
                settings[row.name] = row.text[:MOST_WORDS]
            else:
                self.skip(run, f"settings beyond {MOST_SETTINGS}")
        elif row.remark == EPOCH:
            self.steps_per_epoch[run] = int(row.value)
        elif row.remark == NOTE:
            self.note(run, row.text)
        elif row.remark != LATER:
            self.skip(run, row.name or "values without a kind", row.step)
        else:
            self.skip(run, "numbers that nothing calls scalars")

    def put(self, run: str, name: str, step: int, time: float, value: float) -> None:
        """Add one number."""
        curve = self._curve(run, name)
        if curve is None:
            self.skip(run if run in self.runs else "", BEYOND)
            return
        self._kept += curve.add(step, time, value)
        if self._kept > MOST_NUMBERS:
            self._thin()

    def _curve(self, run: str, name: str) -> Curve | None:
        if run not in self.runs and len(self.runs) >= MOST_RUNS:
            return None
        curves = self.runs.setdefault(run, {})
        if name not in curves and sum(map(len, self.runs.values())) >= MOST_NAMES:
            return None
        return curves.setdefault(name, Curve())

    def _thin(self) -> None:
        every = [curve for curves in self.runs.values() for curve in curves.values()]
        longest = max(len(curve.points) for curve in every)
        for curve in every:
            if 2 * len(curve.points) > longest:
                curve.thin()
        self._kept = sum(len(curve.points) for curve in every)

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
