"""Read what the view shows from the store: pure functions for background threads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from explorer.widgets.progress_row import Ticket
from trainer.charts.search import Hits, Target, search
from trainer.charts.snapshots import Embedder, choose_snapshot, embedder_of
from trainer.store import Workspace
from trainer.untrusted.bounded.arrays import load_npy


@dataclass(frozen=True)
class SearchRequest:
    """The snapshot to search, and the method."""

    run: int
    step: int | None
    dataset: str | None
    split: str | None
    target: Target
    csls: bool
    k: int


def embedder(workspace: Workspace, where: SearchRequest) -> Embedder:
    """Return the checkpoint that embeds the query.

    Raises:
        ChartError: There is no such snapshot.
    """
    row = workspace.runs.get(where.run)
    return embedder_of(
        workspace, choose_snapshot(workspace, row, step=where.step, dataset=where.dataset, split=where.split)
    )


def find(workspace: Workspace, where: SearchRequest, array: str, ticket: Ticket) -> Hits:
    """Return the hits of a query whose embedding is in the file `array`.

    Raises:
        Cancelled: The person ended it.
        ChartError: There is no such snapshot, or it lacks what is searched.
    """
    query = load_npy(Path(array))[0]
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
