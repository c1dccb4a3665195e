"""`trainer export groups`: groups of runs over seeds, means and deviations, and whether they differ."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.cli.compare import add_family_argument, write_table_file
from trainer.cli.export import add_file_arguments, check_arguments, command_line, print_files
from trainer.cli.export.evaluation import TABLES
from trainer.untrusted import shell

if TYPE_CHECKING:
    from trainer.charts.groups import Family
    from trainer.store import Workspace

HELP = "groups of runs over seeds: means, deviations and tests"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The groups and the files."""
    parser.add_argument(
        "--group", action="append", default=[], metavar="PATTERN", help="runs by name, 'clip-*'; once a group"
    )
    add_family_argument(parser)
    add_file_arguments(parser, ", or .md or .tex for the table")


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args, beside=TABLES)
    write(args.workspace, args.group, args.out, args.holm)
    print_files(args)
    return 0


def write(workspace: Workspace, groups: Sequence[str], files: Sequence[Path], family: Family = "table") -> str:
    """Writes the figure, its numbers or the table; returns the command that does the same."""
    from trainer.charts.groups import group_table
    from trainer.render_mpl import groups as figure
    from trainer.render_mpl.files import write_figure

    table = group_table(workspace, groups, family)
    line = command_line("groups", (), files, {} if family == "table" else {"holm": family}).replace(
        " groups ", f" groups {group_words(groups)} ", 1
    )
    for file in (one for one in files if one.suffix.lower() in TABLES):
        write_table_file(file, table, figure.as_rows, figure.as_markdown, figure.as_latex)
    write_figure(
        [file for file in files if file.suffix.lower() not in TABLES],
        figure=lambda: figure.draw(table),
        rows=lambda: figure.as_rows(table),
        command=line,
        title=f"Groups over seeds: {', '.join(groups)}",
    )
    return line


def group_words(groups: Sequence[str]) -> str:
    """The groups as arguments, for a shell."""
    return shell.join(word for group in groups for word in ("--group", group))
