"""`trainer analyse`: the numbers behind the similarity and geometry of runs."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainer.commands.export import View, add_view_arguments, view_of

if TYPE_CHECKING:
    from trainer.store import Workspace

GROUP = "Look"
HELP = "print how well matched pairs stand out (similarity) or where embeddings lie (geometry)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The analysis, the runs, and which of their embeddings."""
    parser.add_argument("analysis", choices=("similarity", "geometry"), help="what to measure")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="numbers, names or folders; A first")
    parser.add_argument("--k", type=int, default=10, help="similarity: unmatched texts an image keeps (10)")
    add_view_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints one column a run."""
    from trainer.figures.files import json_text

    if args.analysis == "similarity":
        values = similarity_values(args.workspace, args.runs, view=view_of(args), k=args.k)
    else:
        values = geometry_values(args.workspace, args.runs, view=view_of(args))
    if args.json:
        print(json_text({"analysis": args.analysis, "runs": values}))
        return 0
    print(_table(values))
    return 0


def similarity_values(
    workspace: Workspace, runs: Sequence[int | str], *, view: View, k: int = 10
) -> list[dict[str, Any]]:
    """Facts and separation of each run."""
    from trainer.charts.similarity import similarity
    from trainer.figures.similarity import numbers

    chart = similarity(workspace, runs, step=view.step, dataset=view.dataset, split=view.split, k=k)
    facts = ("run", "name", "objective", "step", "dataset", "split", "n", "pairs")
    return [{name: getattr(run, name) for name in facts} | {"k": chart.k} | numbers(run) for run in chart.runs]


def geometry_values(workspace: Workspace, runs: Sequence[int | str], *, view: View) -> list[dict[str, Any]]:
    """Facts and geometry of each run; measures of one modality are named after it."""
    from trainer.charts.geometry import geometry

    measured = geometry(workspace, runs, step=view.step, dataset=view.dataset, split=view.split)
    return [_flat(dataclasses.asdict(run)) for run in measured]


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= {f"{name}_image": value[0], f"{name}_text": value[1]} if isinstance(value, tuple) else {name: value}
    return flat


def _table(values: Sequence[dict[str, Any]]) -> str:
    rows = [[name.replace("_", " "), *(_cell(run[name]) for run in values)] for name in values[0]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        row[0].ljust(widths[0]) + "".join("  " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))
        for row in rows
    )


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else f"{value}"
