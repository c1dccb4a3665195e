"""A label that identifies the snapshot and run of a chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from trainer.analysis.units import Units
from trainer.experiments.seed_truth import different_data
from trainer.metrics import data_label
from trainer.store import RunRow, SnapshotRow, SplitKey, Workspace
from trainer.store.snapshot_files import Snapshot


@dataclass(frozen=True, kw_only=True)
class SnapshotLabel:
    """The run and the snapshot that a chart, or part of one, shows."""

    run: int  # Id of the run.
    name: str  # Its short name, unique in its workspace.
    objective: str  # What it minimizes, `clip` or `cloob` for example.
    step: int
    dataset: str
    split: str
    # How many pictures and captions its rows are, and how that is known, where any repeats; else empty.
    counted: str = ""


def shown(run: RunRow, snapshot: SnapshotRow | Snapshot, units: Units | None = None) -> dict[str, Any]:
    """Return the fields of `SnapshotLabel` for a snapshot of a run, with what its rows are by `units`."""
    return {
        "run": run.id,
        "name": run.short_name,
        "objective": run.objective,
        "step": snapshot.step,
        "dataset": snapshot.dataset,
        "split": snapshot.split,
        "counted": units.counted if units is not None else "",
    }


def with_full_names(workspace: Workspace | None, values: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is printed of runs with the full name of each as `name`, and its short one as `label`."""
    return [_with_full_name(workspace, facts) if workspace is not None else facts for facts in values]


def document_with_full_names(workspace: Workspace, document: dict[str, Any]) -> dict[str, Any]:
    """Return a document for JSON whose `runs` are `with_full_names`."""
    return document | {"runs": with_full_names(workspace, document["runs"])}


def _with_full_name(workspace: Workspace, facts: dict[str, Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for key, value in facts.items():
        named[key] = value
        # Of two runs in one dictionary the keys are `run_a`, `name_a` and so on.
        side = key.removeprefix("name")
        if key in ("name", "name_a", "name_b") and isinstance(run := facts.get(f"run{side}"), int):
            named |= {key: workspace.runs.get(run).name, f"label{side}": value}
    return named


def counted_notes(data: object) -> tuple[str, ...]:
    """Return a sentence for what the snapshots of a chart's data hold, where pictures or captions repeat."""
    names_by_text: dict[str, list[str]] = {}
    values = asdict(data) if isinstance(data, Struct) else getattr(data, "__dict__", {})
    for value in values.values():
        for label in value if isinstance(value, tuple | list) else (value,):
            run = label if hasattr(label, "counted") else getattr(label, "run", None)
            counted = getattr(run, "counted", "")
            # Groups of an experiment have runs that are counted: no words about pictures.
            if counted and isinstance(counted, str):
                names_by_text.setdefault(counted, []).append(run.name)  # type: ignore[union-attr]
    names_of_text = {counted: ", ".join(dict.fromkeys(names)) for counted, names in names_by_text.items()}
    several = len(names_of_text) > 1
    return tuple(
        f"{f'{names}: ' if several else ''}{counted}. Equal ones count once."
        for counted, names in names_of_text.items()
    )


def different_steps(results: Sequence[object]) -> tuple[tuple[str, int], ...]:
    """Return name and step of the runs that were measured, where each is at one step and these differ; else nothing."""
    runs = _labels_of(results)
    steps = {run.name: run.step for run in runs}
    return tuple(steps.items()) if len({*steps.values()}) > 1 and {*labels(runs)} == {*steps} else ()


def steps_note(results: Sequence[object]) -> str:
    """Return a sentence that names the `different_steps`; empty where they are the same."""
    listed = ", ".join(f"{name} {step:,}" for name, step in different_steps(results))
    return f"The snapshots are of different steps: {listed}." if listed else ""


def data_of(result: object) -> tuple[str, SplitKey] | None:
    """Return the name of the run and the data that it was measured on; None where the result is of none."""
    run: Any = result if hasattr(result, "split") else getattr(result, "run", None)
    return (run.name, SplitKey(run.dataset, run.split)) if hasattr(run, "split") else None


def data_notes(results: Sequence[object]) -> tuple[str, ...]:
    """Return what names the data of each run where they are measured on different data; else nothing."""
    measured = [each for each in map(data_of, results) if each is not None]
    if not different_data([key] for _, key in measured):
        return ()
    listed = "; ".join(f"{name} on {data_label(key)}" for name, key in dict.fromkeys(measured))
    return (f"Different data: {listed}.",)


def _labels_of(results: Sequence[object]) -> list[SnapshotLabel]:
    candidates = (result if isinstance(result, SnapshotLabel) else getattr(result, "run", None) for result in results)
    return [run for run in candidates if isinstance(run, SnapshotLabel)]


def told_apart(names: Sequence[str], steps: Sequence[int]) -> list[str]:
    """Return labels for runs shown together: their names, with the step where one run is shown at two steps."""
    steps_by_name: dict[str, set[int]] = {}
    for name, step in zip(names, steps, strict=True):
        steps_by_name.setdefault(name, set()).add(step)
    return [
        f"{name}, step {step:,}" if len(steps_by_name[name]) > 1 else name
        for name, step in zip(names, steps, strict=True)
    ]


def labels(results: Sequence[object]) -> list[str]:
    """Return `told_apart` of the runs that were measured."""
    runs = _labels_of(results)
    return told_apart([run.name for run in runs], [run.step for run in runs])
