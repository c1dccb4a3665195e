"""Branches: a run that continues from another's checkpoint, with its curves up to there."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.metrics import metric
from trainer.store.files import write_atomically
from trainer.store.journal import Entry, Journal, read_journal
from trainer.store.rows import CheckpointRow, RunRow, StoreError
from trainer.untrusted import confined

if TYPE_CHECKING:
    from trainer.store.workspace import Workspace


def branch(workspace: Workspace, run: int, step: int, name: str) -> int:
    """Create a run stopped at `step` with this parent, which is unchanged; return its id.

    Raises:
        StoreError: No checkpoint of that step is kept, or it went while it was copied.
        LookOnly: The workspace belongs to somebody else.
    """
    workspace.check_mine()
    parent = workspace.runs.get(run)
    checkpoints = {row.step: row for row in workspace.results.checkpoints(run) if row.folder.is_dir()}
    if step not in checkpoints:
        steps = ", ".join(map(str, sorted(checkpoints))) or "none"
        raise StoreError(f"{parent.name} keeps no checkpoint of step {step}. Kept are those of steps: {steps}.")
    config = dataclasses.replace(workspace.runs.config_of(run), name=name)
    # What a kill leaves half made must not pass for a run that was stopped: it would begin anew under this name.
    made = workspace.runs.create(config, status="failed", parent=run, preset=parent.preset)
    workspace.runs.change(made, reason=f"Branching from step {step} of {parent.name} was cut short. Delete this run.")
    try:
        entries = _copy_curves(workspace, parent, made, step)
        copied = [row for row in checkpoints.values() if row.step == step or (row.best and row.step < step)]
        _copy_files(workspace, parent, made, copied)
        _copy_snapshots(workspace, parent, made, step)
    except (OSError, StoreError) as error:
        workspace.purge(made)
        why = str(error).rstrip(".")
        raise StoreError(f"The checkpoint of step {step} cannot be copied: {why}. Nothing was made.") from error
    _introduce(workspace, parent, made, step, entries)
    return made


def _copy_curves(workspace: Workspace, parent: RunRow, made: int, step: int) -> list[Entry]:
    entries = [entry for entry in read_journal(parent.folder / "metrics.jsonl") if entry.step <= step]
    journal = Journal(workspace.runs.get(made).folder / "metrics.jsonl")
    for entry in entries:
        journal.append(entry)
    journal.sync()
    journal.close()
    workspace.catch_up(made)
    for row in workspace.results.answers(parent.id):
        if row.step <= step:
            questions = {row.question.task: row.question} if row.question else None
            workspace.results.add_evaluation(made, row.step, row.dataset, row.split, row.metrics, questions)
    return entries


def _copy_files(workspace: Workspace, parent: RunRow, made: int, checkpoints: list[CheckpointRow]) -> None:
    folder = workspace.runs.get(made).folder
    # The tokenizer, and what else a session needs of the first one; `run.json` is the branch's own.
    for file in parent.folder.glob("*.json"):
        if file.name != "run.json" and confined.is_inside(parent.folder, file.name):
            write_atomically(folder / file.name, lambda draft, file=file: confined.copy(file, draft.parent, draft.name))
    for row in checkpoints:
        _copy_folder(row.folder, folder / "checkpoints" / row.folder.name)
        workspace.results.add_checkpoint(made, row.step, folder / "checkpoints" / row.folder.name, best=row.best)


def _copy_snapshots(workspace: Workspace, parent: RunRow, made: int, step: int) -> None:
    folder = workspace.runs.get(made).folder
    for row in workspace.results.snapshots(parent.id):
        if row.step <= step and row.folder.is_dir():
            target = folder / "snapshots" / row.folder.name
            _copy_folder(row.folder, target)
            workspace.results.add_snapshot(made, row.step, row.dataset, row.split, target, n=row.n, d=row.d)


def _copy_folder(source: Path, target: Path) -> None:
    confined.make_in_run(target.parents[1], target.parent.name)
    confined.inside(source.parents[2], confined.relative(source.parents[2], source))
    write_atomically(target, lambda draft: _link_files(source, draft))


def _link_files(source: Path, draft: Path) -> None:
    """Link the regular files of a folder, which are never modified, or copy them where the disk has no links."""
    draft.mkdir(mode=0o700)
    for entry in os.scandir(source):
        if not entry.is_file(follow_symlinks=False):
            continue
        try:
            os.link(entry.path, draft / entry.name, follow_symlinks=False)
        except OSError:
            confined.copy(Path(entry.path), draft, entry.name)


def _introduce(workspace: Workspace, parent: RunRow, made: int, step: int, entries: list[Entry]) -> None:
    values = [entry.values[parent.metric] for entry in entries if parent.metric in entry.values]
    best = min if metric(parent.metric).better == "down" else max
    workspace.runs.change(
        made,
        status="stopped",
        step=step,
        total_steps=parent.total_steps,
        started_at=parent.started_at,
        trained_s=entries[-1].elapsed_s if entries else 0.0,
        last=values[-1] if values else None,
        best=best(values) if values else None,
        reason=f"Branched from step {step} of {parent.name}.",
    )
    workspace.runs.add_facts(made, {**parent.facts, "branched_from": parent.id, "branched_at": step})
