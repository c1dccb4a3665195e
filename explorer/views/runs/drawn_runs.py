"""Which runs have their curves drawn: those whose eye is open."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from explorer.models.runs import matching
from explorer.run_control.jobs import working
from trainer.store import RunRow

DRAWN_AT_MOST: Final = 24
"""More lines in a plot cannot be told apart."""


class DrawnRuns(Struct, frozen=True):
    """The runs in the charts."""

    runs: tuple[RunRow, ...]  # A and B first.
    opened: int = 0  # How many eyes are open.

    @property
    def note(self) -> str:
        """Why not all of them are drawn; empty if they are."""
        left = self.opened > len(self.runs)
        return f"{len(self.runs)} of {self.opened:,} runs drawn, the first in the list." if left else ""


def choose_drawn(
    rows: Sequence[RunRow],
    in_order: Sequence[int],
    *,
    sides: Sequence[int],
    chosen: Collection[int],
    eyes: Mapping[int, bool],
) -> DrawnRuns:
    """Return the runs to draw.

    Without a choice by hand these eyes are open: those of `opened_by_sides`, and of the selected runs; with none of
    these, that of the newest run.

    Args:
        rows: All runs, oldest first.
        in_order: Ids as the list shows them: of too many the first are drawn, before them what trains, newest first.
        sides: Ids of A and B.
        chosen: Ids whose eyes are open without a choice by hand.
        eyes: Run -> whether its eye was opened or closed by hand.
    """
    opened = [run for run in rows if eyes.get(run.id, run.id in chosen)]
    if not opened and not any(run.id in eyes for run in rows):
        opened = list(rows[-1:])
    training = [run.id for run in reversed(rows) if working(run)]
    rank = {run_id: position for position, run_id in enumerate(dict.fromkeys([*sides, *training, *in_order]))}
    # What has not begun has no curve that could be left out.
    opened.sort(key=lambda run: (run.status == "queued" and run.id not in sides, rank.get(run.id, len(rank))))
    return DrawnRuns(tuple(sides_first(opened[:DRAWN_AT_MOST], sides)), len(opened))


def opened_by_sides(rows: Sequence[RunRow], sides: Sequence[int], before: Collection[int]) -> set[int]:
    """Return the runs whose eyes A and B opened: the first two with their experiments, later ones alone.

    What another program trained has other metrics, or none over steps: its eye is open while it is A or B.
    """
    before = {*before} - {run.id for run in rows if run.is_elsewhere}
    compared = matching(rows, sides)
    experiments = set() if before else {run.experiment for run in compared} - {""}
    return {*before} | {run.id for run in compared} | {run.id for run in rows if run.experiment in experiments}


def sides_first(runs: Iterable[RunRow], sides: Sequence[int]) -> list[RunRow]:
    """Return the runs, A and B (of these ids) first, then the oldest."""
    return sorted(runs, key=lambda run: (sides.index(run.id) if run.id in sides else len(sides), run.id))
