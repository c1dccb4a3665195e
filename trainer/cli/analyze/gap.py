"""`trainer analyze gap`: the gap between images and texts, and what closing it does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainer.charts import SAME
from trainer.cli.analyze import add_arguments_of_runs, print_values
from trainer.cli.export import SnapshotChoice, step_of_b, tell, view_of

if TYPE_CHECKING:
    from trainer.store import Workspace

HELP = "the gap between images and texts, and what closing it does"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, and which of their embeddings."""
    add_arguments_of_runs(parser)
    parser.add_argument("--way", choices=("shift", "project"), default="shift", help="how the gap is closed (shift)")
    parser.add_argument("--shares", nargs="+", type=float, default=[0.0, 0.5, 1.0], help="how much is closed (0 0.5 1)")


def run(args: argparse.Namespace) -> int:
    """Prints one column a run."""
    print_values(
        args, values(args.workspace, args.runs, view=view_of(args), way=args.way, shares=args.shares, **step_of_b(args))
    )
    return 0


def values(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    view: SnapshotChoice,
    way: str = "shift",
    shares: Sequence[float] = (0.0, 0.5, 1.0),
    step_b: int | None = SAME,
) -> list[dict[str, Any]]:
    """Facts, the gap over the steps, and loss and recall at every share closed."""
    from trainer.charts.gap import gap

    chart = gap(workspace, runs, **vars(view), way=way, shares=shares, step_b=step_b, progress=tell)
    facts = ("run", "name", "objective", "step", "dataset", "split", "n", "pairs", "objective_words")
    found = []
    for run in chart.runs:
        row = {name: getattr(run, name) for name in facts}
        row |= {f"gap at step {step}": size for step, size in zip(run.steps, run.sizes)}
        for point in run.points:
            measured = {name: getattr(point, name) for name in ("gap", "loss", "image_to_text", "text_to_image")}
            row |= {f"{name} at {point.share:g}": value for name, value in measured.items()}
        found.append(row)
    names = list(dict.fromkeys(name for row in found for name in row))
    return [{name: row.get(name, float("nan")) for name in names} for row in found]
