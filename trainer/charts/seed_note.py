"""What the window's line says of A and B, for a figure of them: what is known over seeds, and how the runs ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal

from trainer.charts.evaluation import EvaluationChart
from trainer.charts.marks import Panel
from trainer.charts.spec import Request
from trainer.experiments.counted import flaw_of
from trainer.experiments.over_seeds import over_seeds
from trainer.experiments.seed_truth import SeedTruth, seed_truth
from trainer.store import SplitKey, Workspace

COMPARES: Final[dict[str, Literal["scores", "pictures"]]] = {
    **dict.fromkeys(
        ("similarity", "changes", "gap", "geometry", "explaining", "prompts", "evaluate", "fine_tuning"), "scores"
    ),
    **dict.fromkeys(("map", "timeline", "search", "hopfield", "probes", "classify", "inspect", "decode"), "pictures"),
}
"""View -> what of its runs it sets against each other; other views compare nothing."""


def seed_note(workspace: Workspace, view: str, runs: Iterable[int | str], evaluated: SplitKey | None = None) -> str:
    """Return what a figure of this view must say of its runs; empty where it compares nothing.

    Args:
        workspace: Of the runs.
        view: Whose figure it is.
        runs: Numbers, names or folders of the runs that it shows, A first.
        evaluated: As in `seed_truth`.
    """
    if view not in COMPARES:
        return ""
    rows = [*{row.id: row for row in map(workspace.runs.get, runs)}.values()]
    decides = COMPARES[view] == "scores"
    if len(rows) > 2:
        flaws = (f"{row.short_name} {flaw}" for row in rows if (flaw := flaw_of(row)))
        return over_seeds(workspace, rows) if decides else SeedTruth.SEPARATOR.join(flaws)
    truth = seed_truth(workspace, rows[0].id, rows[-1].id, evaluated=evaluated) if rows else SeedTruth()
    return (truth if decides else truth.of_runs).text


def with_seed_note(panel: Panel, workspace: Workspace, view: str, request: Request, data: object = None) -> Panel:
    """Return the panel with the `seed_note` of the request's runs as its last line, unless the `data` say it."""
    evaluated = SplitKey(data.dataset, data.split) if isinstance(data, EvaluationChart) else None
    runs = [] if hasattr(data, "over_seeds") else [target.run for target in request.targets]
    note = seed_note(workspace, view, runs, evaluated)
    return replace(panel, notes=(*panel.notes, note)) if note else panel
