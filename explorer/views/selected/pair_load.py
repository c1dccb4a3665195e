"""Read one pair for the inspector, and write what was decided about it: functions for background threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from trainer.charts.one_pair import OnePair, OpenSnapshots, one_pair, open_snapshots
from trainer.charts.spec import Request
from trainer.store import Workspace
from trainer.store.reviews import Review
from trainer.store.selections import NamedSelection

MOST_AT_ONCE: Final = 50_000
"""Pairs up to which ranks come with the picture and the caption; among more they are asked for afterwards."""


@dataclass(frozen=True)
class StoredFacts:
    """What people have said about the pairs of one data set: its kept selections, and the state of each pair."""

    dataset: str
    tags: tuple[NamedSelection, ...] = ()
    states: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedPair:
    """A pair as the runs see it, with its state and tags; the snapshots it was read from are kept for the next."""

    pair: OnePair
    opened: OpenSnapshots
    facts: StoredFacts

    @property
    def state(self) -> str:
        """`flagged`, `ignored`, `reviewed`, or empty."""
        return self.facts.states.get(self.pair.key, "")

    @property
    def tags(self) -> tuple[str, ...]:
        """Names of the kept selections that hold the pair."""
        return tuple(tag.name for tag in self.facts.tags if self.pair.id in tag.items)


def load_pair(
    workspace: Workspace,
    request: Request,
    row: int,
    opened: OpenSnapshots | None,
    facts: StoredFacts | None,
    ranked: bool = True,
) -> LoadedPair:
    """Return the pair in this row of A's snapshot.

    Args:
        row: From 0.
        opened: Of the pair before; what is the same is not read again.
        facts: Of the pair before; None: they are read from the store.
        ranked: Whether ranks and neighbors are wanted among more than `MOST_AT_ONCE` pairs, too.
    """
    opened = open_snapshots(workspace, request, opened)
    most = max(side.snapshot.n for _, side in opened.found)
    pair = one_pair(workspace, opened, row, ranked=ranked or most <= MOST_AT_ONCE)
    dataset = f"{pair.dataset}-{pair.split}"
    if facts is None or facts.dataset != dataset:
        states = {review.pair: review.state for review in workspace.reviews.all(pair.dataset)}
        facts = StoredFacts(dataset, tuple(workspace.selections.all(dataset)), states)
    return LoadedPair(pair, opened, facts)


def write_state(workspace: Workspace, pair: OnePair, state: str) -> None:
    """Store the state of a pair, or take its review back where it is empty."""
    if state:
        workspace.reviews.put([Review(pair.dataset, pair.key, state, path=pair.path, caption=pair.caption)])
    else:
        workspace.reviews.take_back(pair.dataset, [pair.key])


def write_tag(workspace: Workspace, pair: OnePair, name: str, on: bool) -> None:
    """Add the pair to the kept selection of this name, which is made if there is none, or take it out.

    A selection of which nothing is left is deleted.
    """
    dataset = f"{pair.dataset}-{pair.split}"
    name = " ".join(name.split())
    earlier = next((selection for selection in workspace.selections.all(dataset) if selection.name == name), None)
    others = [item for item in (earlier.items if earlier else ()) if item != pair.id]
    if on:
        workspace.selections.keep(name, dataset, [*others, pair.id])
    elif others:
        workspace.selections.keep(name, dataset, others)
    elif earlier is not None:
        workspace.selections.drop(earlier)
