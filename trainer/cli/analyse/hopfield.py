"""`trainer analyse hopfield`: the tables of `trainer export hopfield`, as numbers."""

from __future__ import annotations

import argparse

from trainer.cli.analyse import add_arguments_of_runs
from trainer.cli.export import tell
from trainer.cli.export.hopfield import add_lab_arguments, asked_of, vectors_of

HELP = "what a Hopfield retrieval among the embeddings averages"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, the panel and its settings."""
    add_arguments_of_runs(parser)
    add_lab_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints every table of the panel, a line a number; with `--json` one object a column."""
    from trainer.charts.hopfield import hopfield
    from trainer.charts.spec import numbers_of as numbers
    from trainer.render_mpl.files import json_text

    board = hopfield(args.workspace, args.runs, asked_of(args), args.panel, vectors=vectors_of(args), progress=tell)
    found = numbers(board)
    if args.json:
        print(json_text({"analysis": args.kind, "panel": args.panel, "notes": board.notes, "columns": found}))
        return 0
    for column in found:
        print(f"\n{column['table']} · {column['column']}")
        for words, value in list(column.items())[2:]:
            print(f"  {words:<44}{value:.4f}" if isinstance(value, float) else f"  {words:<44}{value}")
    return 0
