"""`trainer analyse similarity`: how well matched pairs stand out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainer.commands.analyse import add_arguments_of_runs, print_values
from trainer.commands.export import View, view_of

if TYPE_CHECKING:
    from trainer.store import Workspace

HELP = "how well matched pairs stand out"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, which of their embeddings, and how many unmatched pairs."""
    add_arguments_of_runs(parser)
    parser.add_argument("--k", type=int, default=10, help="unmatched texts an image keeps (10)")


def run(args: argparse.Namespace) -> int:
    """Prints one column a run."""
    print_values(args, values(args.workspace, args.runs, view=view_of(args), k=args.k))
    return 0


def values(workspace: Workspace, runs: Sequence[int | str], *, view: View, k: int = 10) -> list[dict[str, Any]]:
    """Facts and separation of each run."""
    from trainer.charts.similarity import similarity
    from trainer.figures.similarity import numbers

    chart = similarity(workspace, runs, step=view.step, dataset=view.dataset, split=view.split, k=k)
    facts = ("run", "name", "objective", "step", "dataset", "split", "n", "pairs")
    return [{name: getattr(run, name) for name in facts} | {"k": chart.k} | numbers(run) for run in chart.runs]
