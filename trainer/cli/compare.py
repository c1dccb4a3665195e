"""`trainer compare`: the held-out numbers of several runs side by side, or of groups of runs over seeds."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainer.errors import UserError

if TYPE_CHECKING:
    from trainer.charts.comparison import Comparison
    from trainer.render_mpl.files import NumberRows

GROUP = "Look"
HELP = "put the held-out numbers of runs, or of groups of runs over seeds, side by side"
SUFFIXES: Final = (".md", ".csv", ".tex")


class CompareError(UserError):
    """The table cannot be written as asked."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs or groups, and files to write besides printing."""
    parser.add_argument("runs", nargs="*", metavar="RUN", help="numbers, names or folders; A first")
    parser.add_argument(
        "--group", action="append", default=[], metavar="PATTERN", help="runs by name, 'clip-*'; twice or more"
    )
    add_family_argument(parser)
    parser.add_argument(
        "--out", nargs="+", action="extend", default=[], type=Path, metavar="FILE", help=".md, .csv or .tex"
    )


def add_family_argument(parser: argparse.ArgumentParser) -> None:
    """What Holm adjusts together."""
    parser.add_argument(
        "--holm",
        choices=("table", "line"),
        default="table",
        help="groups: adjust p for every line of the table (table), or for the groups of a line alone",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the table, and writes it to the files asked for."""
    from trainer.render_mpl.files import json_text

    for file in args.out:
        if file.suffix.lower() not in SUFFIXES:
            raise CompareError(f"{file.name}: choose a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.")
    if bool(args.runs) == bool(args.group) or len(args.group) == 1:
        raise CompareError("Name runs to compare, or at least two groups: --group 'clip-*' --group 'cloob-*'.")
    if args.group:
        from trainer.charts.groups import group_table
        from trainer.render_mpl import groups as figure

        table: Any = group_table(args.workspace, args.group, args.holm)
        forms = (figure.as_rows, figure.as_markdown, figure.as_latex)
    else:
        from trainer.charts.comparison import comparison
        from trainer.render_mpl import comparison as figure

        table = comparison(args.workspace, args.runs)
        forms = (figure.as_rows, figure.as_markdown, figure.as_latex)
    for file in args.out:
        write_table_file(file, table, *forms)
    print(json_text(figure.as_values(table)) if args.json else figure.as_text(table))
    return 0


def write_table(file: Path, table: Comparison) -> None:
    """Writes the table as Markdown, LaTeX or CSV, as the file's ending says.

    Raises:
        CompareError: The place cannot be written.
    """
    from trainer.render_mpl import comparison as figure

    write_table_file(file, table, figure.as_rows, figure.as_markdown, figure.as_latex)


def write_table_file(
    file: Path,
    table: Any,
    as_rows: Callable[[Any], NumberRows],
    as_markdown: Callable[[Any], str],
    as_latex: Callable[[Any], str],
) -> None:
    """Writes any table in the form that the file's ending asks for.

    Raises:
        CompareError: The place cannot be written.
    """
    from trainer.render_mpl.files import write_csv
    from trainer.store import write_atomically

    def write(draft: Path) -> None:
        if file.suffix.lower() == ".csv":
            write_csv(draft, as_rows(table))
        else:
            text = as_latex(table) if file.suffix.lower() == ".tex" else as_markdown(table)
            draft.write_text(text, encoding="utf-8")

    try:
        file.absolute().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file.absolute(), write)
    except OSError as error:
        raise CompareError(f"{file} cannot be written: {error.strerror or error}. Choose another place.") from error
