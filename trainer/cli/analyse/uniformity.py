"""`trainer analyse uniformity`: how evenly embeddings cover the sphere."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainer.charts import SAME
from trainer.cli.analyse import add_arguments_of_runs, print_values
from trainer.cli.export import View, step_of_b, tell, view_of

if TYPE_CHECKING:
    from trainer.store import Workspace

HELP = "how evenly embeddings cover the sphere"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, and which of their embeddings."""
    add_arguments_of_runs(parser)
    parser.add_argument("--most", type=int, default=4_000, help="rows whose pairs are all compared (4000)")


def run(args: argparse.Namespace) -> int:
    """Prints one column a run."""
    print_values(args, values(args.workspace, args.runs, view=view_of(args), most=args.most, **step_of_b(args)))
    return 0


def values(
    workspace: Workspace, runs: Sequence[int | str], *, view: View, most: int = 4_000, step_b: int | None = SAME
) -> list[dict[str, Any]]:
    """Facts, and the tests of each modality."""
    from trainer.charts.uniformity import spread_chart
    from trainer.render_mpl.uniformity import numbers

    chart = spread_chart(workspace, runs, **vars(view), most=most, step_b=step_b, progress=tell)
    facts = ("run", "name", "objective", "step", "dataset", "split", "pairs", "alignment")
    found = []
    for run in chart.runs:
        row = {name: getattr(run, name) for name in facts}
        for modality, spread in run.spreads.items():
            row |= {f"{name}_{modality}": value for name, value in numbers(spread).items()}
        found.append(row)
    names = list(dict.fromkeys(name for row in found for name in row))
    return [{name: row.get(name, float("nan")) for name in names} for row in found]
