"""What the Modality gap view reads and computes: pure functions for the background threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.widgets.working import Ticket
from trainer.analysis.gap import Way
from trainer.charts.gap import LIVE, MOST_PAIRS, GapPoint, GapRun, GapSample, Objective, objective_of, read_gap
from trainer.problem import Problem
from trainer.store import Workspace


@dataclass(frozen=True)
class Side:
    """One run: its gap over the steps, a sample in memory to move, and what its loss is."""

    run: GapRun
    sample: GapSample
    objective: Objective


@dataclass(frozen=True)
class Reading:
    """Both runs by place (0 is A), and why one is missing."""

    sides: dict[int, Side]
    problems: dict[int, str]


def read(
    workspace: Workspace, runs: Sequence[int | None], step: int | None, data: str | None, most: int = LIVE
) -> Reading:
    """Reads both runs, at most `most` pairs of each."""
    dataset, split = data.rpartition("-")[::2] if data else (None, None)
    sides, problems = {}, {}
    for index, run in enumerate(runs):
        if run is None:
            continue
        try:
            gap, sample = read_gap(workspace, run, index, step=step, dataset=dataset, split=split, most=most)
        except Problem as error:
            problems[index] = str(error)
            continue
        sides[index] = Side(gap, sample, objective_of(workspace, workspace.run(run), gap.step))
    return Reading(sides, problems)


def measure(sides: dict[int, Side], share: float, way: Way, ticket: Ticket | None = None) -> dict[int, GapPoint]:
    """Loss and recall of both runs with `share` of the gap closed."""
    found = {}
    for place, (index, side) in enumerate(sides.items()):
        if ticket is not None:
            ticket(place / len(sides), "measuring all pairs")
        found[index] = side.sample.measure(side.objective, share, way)
    return found


def curve(sides: dict[int, Side], shares: Sequence[float], way: Way) -> dict[int, tuple[GapPoint, ...]]:
    """The same for many shares, for the plot of recall."""
    return {i: tuple(side.sample.measure(side.objective, share, way) for share in shares) for i, side in sides.items()}


def read_exactly(
    workspace: Workspace,
    runs: Sequence[int | None],
    step: int | None,
    data: str | None,
    share: float,
    way: Way,
    ticket: Ticket,
) -> tuple[dict[int, GapPoint], dict[int, GapPoint]]:
    """As trained and with `share` closed, from all pairs (20,000 at most)."""
    sides = read(workspace, runs, step, data, MOST_PAIRS).sides
    ticket(0.1, "measuring all pairs")
    return measure(sides, 0.0, way, ticket), measure(sides, share, way, ticket)
