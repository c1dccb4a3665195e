"""Which runs have their curves drawn: those whose eye is open, as far as they were measured on the same data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from explorer.models.runs import matching
from trainer.metrics import measured_on
from trainer.store import RunRow

DRAWN_AT_MOST: Final = 24
"""More lines in a plot cannot be told apart."""


@dataclass(frozen=True)
class DrawnRuns:
    """The runs in the charts, and those that are left out.

    Attributes:
        runs: A and B first; of one data, split and n.
        others: Eyes are open, but another split or n: their values do not belong on the same axis.
        opened: Runs whose eyes are open.
    """

    runs: tuple[RunRow, ...]
    others: tuple[RunRow, ...] = ()
    opened: int = 0

    @property
    def note(self) -> str:
        """Why not all of them are drawn; empty if they are."""
        parts = []
        if self.others:
            names = ", ".join(f"{run.short_name}{_size_text(run)}" for run in self.others[:3])
            rest = f" and {len(self.others) - 3:,} more" if len(self.others) > 3 else ""
            parts.append(f"Measured on other data, so not on these axes: {names}{rest}.")
        if self.opened > len(self.runs) + len(self.others):
            parts.append(f"{len(self.runs)} of {self.opened:,} runs drawn, the first in the list.")
        return " ".join(parts)


def choose_drawn(
    rows: Sequence[RunRow],
    in_order: Sequence[int],
    *,
    sides: Sequence[int],
    chosen: Collection[int],
    eyes: Mapping[int, bool],
) -> DrawnRuns:
    """Return the runs to draw.

    Without a choice by hand the eyes of A and B, of the runs of their experiments, and of the selected runs are open;
    with none of these, that of the newest run.

    Args:
        rows: All runs, oldest first.
        in_order: Ids as the list shows them: of too many the first are drawn.
        sides: Ids of A and B.
        chosen: Ids of the selected runs.
        eyes: Run -> whether its eye was opened or closed by hand.
    """
    compared = matching(rows, sides)
    experiments = {run.experiment for run in compared} - {""}
    automatic = {*sides, *chosen} | {run.id for run in rows if run.experiment in experiments}
    opened = [run for run in rows if eyes.get(run.id, run.id in automatic)]
    if not opened and not eyes:
        opened = list(rows[-1:])
    rank = {run_id: position for position, run_id in enumerate(dict.fromkeys([*sides, *in_order]))}
    # What has not begun has no curve that could be left out.
    opened.sort(key=lambda run: (run.status == "queued" and run.id not in sides, rank.get(run.id, len(rank))))
    measured = {run.id: _measured(run) for run in opened}
    shared = next(filter(None, measured.values()), None)
    alike = [run for run in opened if measured[run.id] in (None, shared)]
    others = tuple(run for run in opened if measured[run.id] not in (None, shared))
    return DrawnRuns(tuple(sides_first(alike[:DRAWN_AT_MOST], sides)), others, len(opened))


def sides_first(runs: Iterable[RunRow], sides: Sequence[int]) -> list[RunRow]:
    """Return the runs, A and B (of these ids) first, then the oldest."""
    return sorted(runs, key=lambda run: (sides.index(run.id) if run.id in sides else len(sides), run.id))


def _measured(run: RunRow) -> tuple[str, str, int] | None:
    """Return data, split and n of the values of a run; None as long as it has noted none, or has no values."""
    split, n = measured_on(run.metric, run.facts)
    return None if n is None else (run.data, split, n)


def _size_text(run: RunRow) -> str:
    n = measured_on(run.metric, run.facts)[1]
    return "" if n is None else f" (n = {n:,})"
