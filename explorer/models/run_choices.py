"""Runs as the entries of a list, under the headings of their experiments: short names are alike in two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from explorer.widgets.finder import Choice

if TYPE_CHECKING:  # the bar imports this, and its first paint waits for no store
    from trainer.store import RunRow

ALONE: Final = "No experiment"
ARCHIVED: Final = "Archived"


def run_choices(runs: Sequence[RunRow]) -> tuple[Choice, ...]:
    """Return the runs by experiment, the newest first, in the order given; those of none, and archived ones, last.

    Where no run belongs to an experiment there are no headings.
    """
    newest: dict[str, int] = {}
    for run in runs:
        newest[run.experiment] = max(run.id, newest.get(run.experiment, 0))

    def place(run: RunRow) -> tuple[bool, bool, int]:
        return run.archived_at is not None, not run.experiment, -newest[run.experiment]

    has_groups = any(newest)
    return tuple(run_choice(run, headed=has_groups) for run in sorted(runs, key=place))


def run_choice(run: RunRow, *, headed: bool = True) -> Choice:
    """Return one run, with what else is known of it in its tool tip."""
    state = run.status if run.archived_at is None else f"{run.status}, archived"
    group = "" if not headed else ARCHIVED if run.archived_at is not None else run.experiment or ALONE
    about = f"{run.name}, #{run.id}, {run.objective.upper()}, {run.data}, {state}"
    return Choice(run.id, run.short_name, about, group=group)
