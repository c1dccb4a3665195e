"""A label that identifies the snapshot and run of a chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainer.store import RunRow, SnapshotRow
from trainer.store.snapshot_files import Snapshot


@dataclass(frozen=True, kw_only=True)
class SnapshotLabel:
    """The run and the snapshot that a chart, or part of one, shows.

    Attributes:
        run: Id of the run.
        name: Its name.
        objective: What it minimizes, `clip` or `cloob` for example.
        step: Of the snapshot.
        dataset: Of the snapshot.
        split: Of the snapshot.
    """

    run: int
    name: str
    objective: str
    step: int
    dataset: str
    split: str


def shown(run: RunRow, snapshot: SnapshotRow | Snapshot) -> dict[str, Any]:
    """Return the fields of `SnapshotLabel` for a snapshot of a run."""
    return {
        "run": run.id,
        "name": run.name,
        "objective": run.objective,
        "step": snapshot.step,
        "dataset": snapshot.dataset,
        "split": snapshot.split,
    }


def told_apart(names: Sequence[str], steps: Sequence[int]) -> list[str]:
    """Return labels for runs shown together: their names, with steps if those differ."""
    if len({*steps}) < 2:
        return [*names]
    return [f"{name}, step {step:,}" for name, step in zip(names, steps, strict=True)]


def labels(runs: Sequence[SnapshotLabel]) -> list[str]:
    """Return `told_apart` of charted runs."""
    return told_apart([run.name for run in runs], [run.step for run in runs])
