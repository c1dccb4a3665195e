"""`trainer compare`: the held-out numbers of several runs side by side."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.problem import Problem

if TYPE_CHECKING:
    from trainer.charts.comparison import Comparison

GROUP = "Look"
HELP = "put the held-out numbers of runs side by side"


class CompareError(Problem):
    """The table cannot be written as asked."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, and files to write besides printing."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="numbers, names or folders; A first")
    parser.add_argument("--out", nargs="+", action="extend", default=[], type=Path, metavar="FILE", help=".md or .csv")


def run(args: argparse.Namespace) -> int:
    """Prints the table, and writes it to the files asked for."""
    from trainer.charts.comparison import comparison
    from trainer.figures import comparison as figure
    from trainer.figures.files import json_text

    for file in args.out:
        if file.suffix.lower() not in (".md", ".csv"):
            raise CompareError(f"{file.name}: choose a name that ends in .md or .csv.")
    table = comparison(args.workspace, args.runs)
    for file in args.out:
        write_table(file, table)
    print(json_text(figure.as_values(table)) if args.json else figure.as_text(table))
    return 0


def write_table(file: Path, table: Comparison) -> None:
    """Writes the table as Markdown or CSV, as the file's ending says.

    Raises:
        CompareError: The place cannot be written.
    """
    from trainer.figures import comparison as figure
    from trainer.figures.files import write_csv
    from trainer.store import write_atomically

    def write(draft: Path) -> None:
        if file.suffix.lower() == ".csv":
            write_csv(draft, figure.as_rows(table))
        else:
            draft.write_text(figure.as_markdown(table), encoding="utf-8")

    try:
        file.absolute().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file.absolute(), write)
    except OSError as error:
        raise CompareError(f"{file} cannot be written: {error.strerror or error}. Choose another place.") from error
