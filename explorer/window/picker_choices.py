"""Read the choices of the bar from the store, off the GUI thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from trainer.store import RunRow, SplitKey, Workspace


class PickerChoices(Struct, frozen=True):
    """Steps and data of the selected runs' snapshots, and which of these runs can answer queries."""

    steps: tuple[int, ...] = ()  # Ascending; of all looked-at runs together.
    datasets: tuple[SplitKey, ...] = ()  # In the order they first came.
    askable: tuple[int, ...] = ()


def facts_of(workspace: Workspace, runs: Sequence[int]) -> PickerChoices:
    """Return the choices for these runs, whose snapshots a mirror then brings; a deleted run has none."""
    from trainer.store import StoreError, on_demand

    steps: set[int] = set()
    datasets: dict[SplitKey, None] = {}
    askable = []
    for run in runs:
        try:
            on_demand.ask(workspace.runs.get(run).folder, "snapshots")
            snapshots, checkpoints = workspace.results.snapshots(run), workspace.results.checkpoints(run)
        except StoreError:
            continue
        steps.update(snapshot.step for snapshot in snapshots)
        datasets.update(dict.fromkeys(snapshot.key for snapshot in snapshots))
        if checkpoints:
            askable.append(run)
    return PickerChoices(tuple(sorted(steps)), tuple(datasets), tuple(askable))


def first_choice(runs: Sequence[RunRow], run_a: int | None, run_b: int | None) -> tuple[int | None, int | None]:
    """Return A and B with empty places filled: first CLIP run in A, first CLOOB run in B, else the first free one.

    Runs that are no more leave their place empty before it is filled; archived ones and mere curves fill none, nor do
    runs on other data beside vectors or a training of another program.
    """
    by_id = {run.id: run for run in runs}
    a = run_a if run_a in by_id else None
    b = run_b if run_b in by_id else None
    if a is not None and by_id[a].is_elsewhere:
        runs = [run for run in runs if run.data == by_id[a].data]
    if a is None:
        # While B is empty, too, a CLOOB run is left for it: a lone one is B, not A.
        a = _first(runs, "clip", taken=b, spare="cloob" if b is None else "")
    if b is None:
        b = _first(runs, "cloob", taken=a)
    if a is None:
        a = _first(runs, "clip", taken=b)
    return a, b


def partner(runs: Sequence[RunRow], run_a: int | None, run_b: int | None) -> int | None:
    """Return B for a newly chosen A: where it was trained on other data, the run of another arm with A's seed.

    Without such a run, B stays.
    """
    from trainer.store.run_label import parts_of

    def seed(run: RunRow) -> int:
        return parts_of(run.short_name)[1]

    by_id = {run.id: run for run in runs}
    if run_a not in by_id or run_b not in by_id or by_id[run_a].data == by_id[run_b].data:
        return run_b
    a = by_id[run_a]
    alike = [
        run.id
        for run in runs
        if (run.data, run.experiment, seed(run)) == (a.data, a.experiment, seed(a))
        and (run.arm, run.objective) != (a.arm, a.objective)
        and run.archived_at is None
    ]
    return next(iter(alike), run_b)


def _first(runs: Sequence[RunRow], objective: str, *, taken: int | None, spare: str = "") -> int | None:
    """Return the first free run with this objective, else the first with any but `spare`; None if all are taken."""
    free = [run for run in runs if run.id != taken and run.archived_at is None and not run.curves_only]
    matching = [run.id for run in free if run.objective.casefold() == objective]
    others = [run.id for run in free if run.objective.casefold() != spare]
    return next(iter([*matching, *others]), None)
