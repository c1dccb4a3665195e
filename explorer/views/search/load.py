"""Read what the view shows from the store: pure functions for background threads."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from explorer.widgets.progress_row import Ticket
from trainer.charts.opened_snapshot import OpenedSnapshot, open_target
from trainer.charts.search import Hits, Target, search
from trainer.charts.snapshots import Embedder, embedder_of
from trainer.charts.spec import Request
from trainer.charts.spec import Target as RunAtStep
from trainer.store import Workspace
from trainer.untrusted.bounded.arrays import load_npy


class SearchRequest(Struct, frozen=True):
    """The snapshot to search, and the method."""

    run: int
    step: int | None
    dataset: str | None
    split: str | None
    target: Target
    csls: bool
    k: int


def opened_of(workspace: Workspace, where: SearchRequest) -> OpenedSnapshot:
    """Open the snapshot that is searched.

    Raises:
        ChartError: There is none such.
    """
    return open_target(workspace, RunAtStep(where.run, where.step), Request((), where.dataset, where.split))


def embedder(workspace: Workspace, where: SearchRequest) -> Embedder:
    """Return the checkpoint that embeds the query.

    Raises:
        ChartError: There is no such snapshot.
    """
    return embedder_of(workspace, opened_of(workspace, where).row)


def find(workspace: Workspace, where: SearchRequest, array: str, ticket: Ticket) -> Hits:
    """Return the hits of a query whose embedding is in the file `array`.

    Raises:
        Cancelled: The person ended it.
        ChartError: There is no such snapshot, or it lacks what is searched.
    """
    query, opened = load_npy(Path(array))[0], opened_of(workspace, where)
    return search(opened, query, target=where.target, k=where.k, csls=where.csls, progress=ticket)
