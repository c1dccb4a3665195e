"""Read what the view shows, and write what was decided: functions for background threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from trainer.charts.retrained import retrained, retrained_lines
from trainer.charts.snapshots import choose_snapshot
from trainer.errors import UserError
from trainer.store import RunRow, SplitKey, Workspace
from trainer.store.quality_reports import QualityReport, read_quality
from trainer.store.reviews import Review


class LoadedQuality(Struct, frozen=True):
    """What is known about the data of run A."""

    # The newest of the chosen runs, else one that run A had a part in; None if the data were not checked.
    report: QualityReport | None
    states: dict[str, str] = field(default_factory=dict)  # Key of a pair -> what was decided about it.
    split: str = ""  # Split whose pairs are selected in the window.
    helped: tuple[str, ...] = ()  # Sentences on a run and its retrained copy; empty without one.
    older: str = ""  # Which of the runs has been measured since at a later step; empty where none has.
    no_model: str = ""  # Why the runs cannot check the data, and which one can; empty where each has a model.


def load_quality(
    workspace: Workspace, runs: Sequence[tuple[int, int | None]], dataset: SplitKey | None
) -> LoadedQuality:
    """Return the report of these runs at these steps, else one of the first with any; and the reviews."""
    rows = [workspace.runs.get(run) for run, _ in runs]
    report = read_quality(rows[0].folder, [*runs]) or read_quality(rows[0].folder, [*runs[:1]])
    if report is None:
        alike = [row.folder for row in rows if row.data == rows[0].data]
        report = next(filter(None, (read_quality(folder, [*runs[:1]], others=True) for folder in alike)), None)
    states = {review.pair: review.state for review in workspace.reviews.all(report.dataset)} if report else {}
    split, helped = _split(workspace, runs[0][0], dataset), _helped(workspace, [run for run, _ in runs])
    older = _older(workspace, report, dict(runs)) if report else ""
    return LoadedQuality(report, states, split, helped, older, _no_model(rows))


def _no_model(rows: Sequence[RunRow]) -> str:
    """Return which of the runs has only embeddings, and which one can check the data; empty where each has a model."""
    reason = next(filter(None, (row.no_model for row in rows)), "")
    able = next((row.short_name for row in rows if not row.no_model), "")
    return f"{reason} {able} has one: choose it alone." if reason and able else reason


def _older(workspace: Workspace, report: QualityReport, steps: Mapping[int, int | None]) -> str:
    """Return which runs the report read at an earlier step than the last one, where that is chosen."""
    parts = []
    for checked in report.runs:
        last = max((snapshot.step for snapshot in workspace.results.snapshots(checked.run)), default=0)
        if steps.get(checked.run) is None and last > checked.step:
            parts.append(f"{checked.name} at step {checked.step:,} of {last:,}")
    return f"This is the check of {' and '.join(parts)}: check the data again." if parts else ""


def write_states(workspace: Workspace, dataset: str, states: Sequence[tuple[Review, str]]) -> None:
    """Store the state of each pair, or take its review back where it is empty."""
    workspace.reviews.put(
        Review(dataset, old.pair, state, path=old.path, caption=old.caption) for old, state in states if state
    )
    workspace.reviews.take_back(dataset, [review.pair for review, state in states if not state])


def _split(workspace: Workspace, run: int, dataset: SplitKey | None) -> str:
    if dataset is not None:
        return dataset.split
    try:
        return choose_snapshot(workspace, workspace.runs.get(run)).split
    except UserError:
        return ""


def _helped(workspace: Workspace, runs: Sequence[int]) -> tuple[str, ...]:
    for run in runs:
        row = workspace.runs.get(run)
        if row.parent is None or row.facts.get("branched_from") is not None:
            continue
        try:
            return tuple(retrained_lines(retrained(workspace, row.parent, run)))
        except UserError as problem:
            return (str(problem),)
    return ()
