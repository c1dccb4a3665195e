"""What the Modality gap view reads and computes: pure functions for the background threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.analysis.gap import Way
from trainer.analysis.progress import Progress
from trainer.analysis.tiles import part_of
from trainer.charts.gap import LIVE, MOST_PAIRS, GapPoint, GapRun, GapSample, Objective, objective_of, read_gap
from trainer.errors import UserError
from trainer.store import SplitKey, Workspace, of_split


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


@dataclass(frozen=True)
class Exact:
    """Both runs' pairs up to `most`, and what was measured of them: as trained, and now."""

    sides: dict[int, Side]
    opened: dict[int, GapPoint]
    now: dict[int, GapPoint]
    most: int = MOST_PAIRS


def read(
    workspace: Workspace,
    runs: Sequence[int | None],
    steps: Sequence[int | None],
    data: SplitKey | None,
    most: int = LIVE,
    ticket: Progress | None = None,
) -> Reading:
    """Reads both runs, each at its own step, at most `most` pairs of each."""
    sides, problems = {}, {}
    for index, run in enumerate(runs):
        if run is None:
            continue
        chosen = {"step": steps[index], **of_split(data), "most": most}
        try:
            gap, sample = read_gap(workspace, run, index, **chosen, progress=part_of(ticket, index, len(runs)))
        except UserError as error:
            problems[index] = str(error)
            continue
        sides[index] = Side(gap, sample, objective_of(workspace, workspace.runs.get(run), gap.step))
    return Reading(sides, problems)


def measure(sides: dict[int, Side], share: float, way: Way, ticket: Progress | None = None) -> dict[int, GapPoint]:
    """Loss and recall of both runs with `share` of the gap closed."""
    return {
        index: side.sample.measure(side.objective, share, way, part_of(ticket, place, len(sides)))
        for place, (index, side) in enumerate(sides.items())
    }


def curve(sides: dict[int, Side], shares: Sequence[float], way: Way) -> dict[int, tuple[GapPoint, ...]]:
    """The same for many shares, for the plot of recall."""
    return {i: tuple(side.sample.measure(side.objective, share, way) for share in shares) for i, side in sides.items()}


def read_exactly(
    workspace: Workspace,
    runs: Sequence[int | None],
    steps: Sequence[int | None],
    data: SplitKey | None,
    share: float,
    way: Way,
    most: int,
    kept: Exact | None,
    ticket: Progress,
) -> Exact:
    """As trained and with `share` closed, from at most `most` pairs; `kept` saves what does not change."""
    begun = 0.0
    if kept is None or kept.most != most:
        sides = read(workspace, runs, steps, data, most, part_of(ticket, 0, 50)).sides
        begun = 1.0 if share == 0 else 0.5
        opened = measure(sides, 0.0, way, lambda done, note: ticket(0.02 + (begun - 0.02) * done, note))
        kept = Exact(sides, opened, opened, most)
    if share == 0:
        return Exact(kept.sides, kept.opened, kept.opened, most)
    now = measure(kept.sides, share, way, lambda done, note: ticket(begun + (1 - begun) * done, note))
    return Exact(kept.sides, kept.opened, now, most)
