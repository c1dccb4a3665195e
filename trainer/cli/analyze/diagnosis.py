"""`trainer analyze diagnosis`: the tables of `trainer export diagnosis`, as numbers."""

from __future__ import annotations

import argparse

from trainer.cli.analyze import add_arguments_of_runs
from trainer.cli.export import tell
from trainer.cli.export.diagnosis import add_panel_arguments, asked_of

HELP = "spectra, saturation, and what linear probes read off the embeddings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, the panel and its settings."""
    add_arguments_of_runs(parser)
    add_panel_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Prints every table of the panel, a line a number; with `--json` one object a column."""
    from trainer.charts.diagnosis import diagnosis
    from trainer.charts.spec import numbers_of as numbers
    from trainer.render_mpl.files import json_text

    board = diagnosis(args.workspace, args.runs, asked_of(args), args.panel, progress=tell)
    found = numbers(board)
    if args.json:
        print(json_text({"analysis": args.kind, "panel": args.panel, "notes": board.notes, "columns": found}))
        return 0
    for column in found:
        print(f"\n{column['table']} · {column['column']}")
        for words, value in list(column.items())[2:]:
            print(f"  {words:<44}{value:.4f}" if isinstance(value, float) else f"  {words:<44}{value}")
    return 0
