"""`trainer analyze similarity`: how well matched pairs are separated from unmatched ones."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainer.charts import SAME
from trainer.cli.analyze import add_arguments_of_runs, print_values
from trainer.cli.export import SnapshotChoice, step_of_b, tell, view_of
from trainer.cli.export.similarity import add_comparison_arguments

if TYPE_CHECKING:
    from trainer.store import Workspace

HELP = "how well matched pairs are separated from unmatched ones"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, which of their embeddings, and how many unmatched pairs."""
    add_arguments_of_runs(parser)
    parser.add_argument("--k", type=int, default=10, help="unmatched texts an image keeps (10)")
    add_comparison_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints one column a run."""
    chosen = {"compared": args.compared, "facet": args.facet, "only": args.only, **step_of_b(args)}
    print_values(args, values(args.workspace, args.runs, view=view_of(args), k=args.k, **chosen))
    return 0


def values(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    view: SnapshotChoice,
    k: int = 10,
    compared: str = "hardest",
    facet: str | None = None,
    only: str | None = None,
    step_b: int | None = SAME,
) -> list[dict[str, Any]]:
    """Facts and separation of each run; with a facet also the AUC of each of its values."""
    from trainer.charts.similarity import similarity
    from trainer.render_mpl.similarity import numbers

    chosen = {"compared": compared, "facet": facet, "only": only}
    chart = similarity(workspace, runs, **vars(view), k=k, **chosen, step_b=step_b, progress=tell)
    facts = ("run", "name", "objective", "step", "dataset", "split", "n", "pairs")
    found = []
    for run in chart.runs:
        row = {name: getattr(run, name) for name in facts} | {"n_unmatched": run.n_unmatched, "k": chart.k}
        found.append(
            row | numbers(run, chart.against) | {f"auc_hard{k} {facet} = {part.value}": part.auc for part in run.facets}
        )
    names = list(dict.fromkeys(name for row in found for name in row))
    return [{name: row.get(name, float("nan")) for name in names} for row in found]
