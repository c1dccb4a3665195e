"""What Home says of runs that train while none has finished: which curves there are, and what comes at which step."""

from collections.abc import Sequence

from msgspec import Struct

from trainer.metrics import HEADLINE
from trainer.store import RunRow, Workspace

MOST_CURVES = 2
"""Metrics that are drawn: more leave each too little room."""


class TrainingNews(Struct, frozen=True):
    """The curves of some runs, and what comes next."""

    runs: tuple[int, ...]  # Those with any curve.
    metrics: tuple[str, ...]  # Logged names, the value on held-out pairs first; empty before the first value.
    next: str  # What comes at which step, in sentences.


def training_news(workspace: Workspace, runs: Sequence[int]) -> TrainingNews:
    """Return what is known of runs that train or wait, those that train first. For a thread."""
    rows = [workspace.runs.get(run) for run in runs]
    logged = {row.id: workspace.results.scalar_names(row.id) for row in rows}
    names = dict.fromkeys(name for each in logged.values() for name in each)
    wanted_first = (*(row.metric for row in rows), HEADLINE, "train/loss")
    metrics = tuple(dict.fromkeys([*(name for name in wanted_first if name in names), *names]))[:MOST_CURVES]
    drawn = tuple(row.id for row in rows if {*metrics} & {*logged[row.id]})
    first = next((row for row in rows if row.status != "queued"), rows[0])
    return TrainingNews(drawn, metrics, _what_comes(workspace, first))


def _what_comes(workspace: Workspace, row: RunRow) -> str:
    if row.is_elsewhere:
        return "The curves grow as the other program writes them."
    result = "The result stands here once a run has finished."
    measured = [snapshot.step for snapshot in workspace.results.snapshots(row.id)]
    if not row.total_steps or not measured:
        return f"The first values on held-out pairs, and Map, Search and Compare, come before step 1. {result}"
    watching = workspace.runs.config_of(row.id).watching
    every = {*range(0, row.total_steps, watching.evaluate_every), row.total_steps}
    every |= watching.snapshot_steps(row.total_steps)
    step = min((each for each in every if each > row.step), default=row.total_steps)
    seen = f"Map, Search and Compare show step {max(measured):,}."
    return f"The next values on held-out pairs come at step {step:,} of {row.total_steps:,}. {seen} {result}"
