"""`trainer analyze`: prints the numbers behind the charts, one column per run. One module per analysis."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from trainer.cli.export import add_snapshot_arguments
from trainer.untrusted.terminal import say, say_json

GROUP = "Look"
HELP = "print the numbers behind a chart: similarity, geometry and others"


def add_arguments_of_runs(parser: argparse.ArgumentParser) -> None:
    """Add the runs and their embeddings; one run at two steps is compared with itself."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="numbers, names or folders; A first")
    add_snapshot_arguments(parser)


def print_values(args: argparse.Namespace, values: Sequence[dict[str, Any]], notes: Sequence[str] = ()) -> None:
    """Print one column per run, or with `--json` one object per run; the notes say why there are no values."""
    from trainer.charts.snapshot_label import with_full_names
    from trainer.render_mpl.files import json_text

    answer = {"analysis": args.kind, "runs": with_full_names(args.workspace, values)} | (
        {"notes": notes} if notes else {}
    )
    say_json(json_text(answer)) if args.json else say("\n".join([table(values), *notes]).strip("\n"))


def table(values: Sequence[dict[str, Any]]) -> str:
    """Format the values as text with one column per run, in separate blocks if their names differ.

    A list has a line for each of its numbers.
    """
    alike = [list(group) for _, group in groupby(map(_flat, values), key=list)]
    return "\n\n".join(_table(group) for group in alike)


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= {f"{name} {n}": part for n, part in enumerate(value, 1)} if isinstance(value, list) else {name: value}
    return flat


def _table(values: Sequence[dict[str, Any]]) -> str:
    rows = [[_spoken(name), *(_cell(run[name]) for run in values)] for name in values[0]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        row[0].ljust(widths[0]) + "".join("  " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))
        for row in rows
    )


def _spoken(name: str) -> str:
    # In `cos(U_x, U_y)` it is an index.
    return name.replace("_", " ") if name.isidentifier() else name


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else f"{value}"
