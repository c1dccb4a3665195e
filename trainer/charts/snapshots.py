"""Choose the snapshot of a run for a chart."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from trainer import config
from trainer.charts import ChartError
from trainer.errors import NotYetError
from trainer.metrics import data_label, split_label
from trainer.store import RunRow, SnapshotRow, Workspace, on_demand

PREFERRED_SPLITS: Final = ("renderings", "heldout")
"""Splits that are the first choice where none is named: held out, and drawn like the training pairs."""


BATCH: Final = "batch"
"""The split that is one training batch; `trainer.data.pairs` names it so, which a test compares."""


class NoSnapshotYetError(ChartError, NotYetError):
    """A run has not been evaluated yet, or its embeddings are being copied."""

    title = "No snapshot yet"


class CurvesOnlyError(NoSnapshotYetError):
    """Another program trains the run, and its curves are all that is here."""

    title = "Curves only"


class NoSnapshotOfSplitError(ChartError, NotYetError):
    """A run has snapshots, but none of the chosen data: other data or other runs show it, no second try."""

    title = "No snapshot of this split"


def choose_snapshot(
    workspace: Workspace, run: RunRow, *, step: int | None = None, dataset: str | None = None, split: str | None = None
) -> SnapshotRow:
    """Return the run's snapshot of the data and step; None selects the preferred split and the last step.

    Raises:
        ChartError: There is none; names those there are.
    """
    rows = workspace.results.snapshots(run.id)
    if not rows:
        if on_demand.ask(run.folder, "snapshots"):
            raise NoSnapshotYetError(
                f"The embeddings of {run.short_name}, if it has any, are on their way from its computer."
            )
        if run.curves_only:
            raise CurvesOnlyError(run.curves_only)
        opens = isinstance(workspace.runs.config_of(run.id).data, config.Vectors)
        what_next = "its vectors are being read" if opens else "wait for its first evaluation"
        if not run.active:
            what_next = "resume it" if opens else "train it further"
        if run.status == "queued":
            what_next = "it waits in the queue"
        raise NoSnapshotYetError(f"Run {run.short_name} has no snapshot yet: {what_next}.")
    fitting = [row for row in rows if dataset in (None, row.dataset) and split in (None, row.split)]
    if not fitting:
        choices = sorted({data_label(row) for row in rows})
        raise NoSnapshotOfSplitError(
            f"Run {run.short_name} has no snapshot of {dataset or 'any data'}, "
            f"{split_label(split) if split else 'any split'}; it has: {'; '.join(choices)}."
        )
    first = min(fitting, key=_preference)
    fitting = [row for row in fitting if (row.dataset, row.split) == (first.dataset, first.split)]
    if step is None:
        return max(fitting, key=lambda row: row.step)
    at_step = [row for row in fitting if row.step == step]
    if not at_step:
        choices = ", ".join(str(row.step) for row in sorted(fitting, key=lambda row: row.step))
        raise ChartError(f"Run {run.short_name} has no snapshot at step {step}; choose one of {choices}, or last.")
    return at_step[-1]


def course_of(workspace: Workspace, chosen: SnapshotRow) -> list[SnapshotRow]:
    """Return the run's snapshots of the data of this one by step, each step once."""
    rows = {row.step: row for row in workspace.results.snapshots(chosen.run) if row.key == chosen.key}
    return [rows[step] for step in sorted(rows)]


def step_that_embeds(
    workspace: Workspace,
    ref: int | str,
    *,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
) -> int:
    """Return the step of the chosen snapshot, whose own checkpoint must embed new texts.

    Raises:
        ChartError: There is no such snapshot, or the run has checkpoints, but not that one; names the steps of both.
    """
    run = workspace.runs.get(ref)
    chosen = choose_snapshot(workspace, run, step=step, dataset=dataset, split=split)
    checkpoints = {checkpoint.step for checkpoint in workspace.results.checkpoints(run.id)}
    if chosen.step in checkpoints or not checkpoints:  # whoever opens the model says that there is none
        return chosen.step
    both = sorted({row.step for row in course_of(workspace, chosen)} & checkpoints)
    choose = f"Choose step {' or '.join(map(str, both))}." if both else "Choose another run."
    # By another one, words would not stand where this snapshot's pairs do.
    raise ChartError(f"Run {run.short_name} keeps no checkpoint of step {chosen.step} to embed words with. {choose}")


class Embedder(Struct, frozen=True):
    """The checkpoint that embeds a query for a snapshot."""

    step: int | None  # Of the checkpoint to ask for; None is the last one.
    note: str  # What to say where it is not the snapshot's own step; empty if it is.


def embedder_of(workspace: Workspace, chosen: SnapshotRow) -> Embedder:
    """Return the snapshot's own checkpoint if it is kept, else the last one with a note."""
    checkpoints = [checkpoint.step for checkpoint in workspace.results.checkpoints(chosen.run)]
    if chosen.step in checkpoints or not checkpoints:
        return Embedder(chosen.step if checkpoints else None, "")
    return Embedder(
        None,
        f"No checkpoint of step {chosen.step:,} is kept: the question is embedded by step {max(checkpoints):,}, "
        "so hits of earlier snapshots mean little.",
    )


def _preference(row: SnapshotRow) -> tuple[int, str, str]:
    rank = PREFERRED_SPLITS.index(row.split) if row.split in PREFERRED_SPLITS else len(PREFERRED_SPLITS)
    # A training batch is looked at on purpose only: it says nothing about new pairs.
    rank += row.split == BATCH
    return rank, row.dataset, row.split
