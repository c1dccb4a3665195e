"""What the view shows, read from the store: pure functions for the background threads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from explorer.widgets.working import Ticket
from trainer.charts.hubness import Hubness, hubness
from trainer.charts.search import Hits, Target, search
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace


@dataclass(frozen=True)
class Where:
    """The snapshot that is searched, and how."""

    run: int
    step: int | None
    dataset: str | None
    split: str | None
    target: Target
    csls: bool
    k: int


@dataclass(frozen=True)
class Embedder:
    """Which checkpoint embeds the question for a snapshot.

    Attributes:
        step: Of the checkpoint to ask for; None is the last one.
        note: What to say where it is not the snapshot's own step; empty if it is.
    """

    step: int | None
    note: str


def embedder(workspace: Workspace, where: Where) -> Embedder:
    """The snapshot's own checkpoint if it is kept, else the last one, with a word about it.

    Raises:
        ChartError: There is no such snapshot.
    """
    row = workspace.run(where.run)
    chosen = choose_snapshot(workspace, row, step=where.step, dataset=where.dataset, split=where.split)
    kept = [checkpoint.step for checkpoint in workspace.checkpoints(where.run)]
    if chosen.step in kept or not kept:
        return Embedder(chosen.step if kept else None, "")
    return Embedder(
        None,
        f"No checkpoint of step {chosen.step:,} is kept: the question is embedded by step {max(kept):,}, "
        "so hits of earlier snapshots mean little.",
    )


def find(workspace: Workspace, where: Where, array: str, ticket: Ticket) -> Hits:
    """The hits of a question whose embedding is in the file `array`.

    Raises:
        Cancelled: The person ended it.
        ChartError: There is no such snapshot, or it lacks what is searched.
    """
    query = np.load(Path(array), allow_pickle=False)[0]
    return search(
        workspace,
        where.run,
        query,
        step=where.step,
        dataset=where.dataset,
        split=where.split,
        target=where.target,
        k=where.k,
        csls=where.csls,
        progress=ticket,
    )


def read_hubs(
    workspace: Workspace, run: int, step: int | None, dataset: str | None, split: str | None, ticket: Ticket
) -> Hubness:
    """How often each image is found.

    Raises:
        Cancelled: The person ended it.
        ChartError: The run has one modality only.
    """
    return hubness(workspace, run, step=step, dataset=dataset, split=split, progress=ticket)
