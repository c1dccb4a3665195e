"""`trainer export lab`: a panel of the Loss lab."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from trainer.cli.export import add_file_arguments, check_arguments, command_line, print_files

HELP = "a panel of the Loss lab; needs no run"

PANELS = ("toy", "saturation", "margins", "retrieval")
"""A test compares them with `trainer.charts.lab`, which loads numpy."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The panel and its settings."""
    parser.add_argument("--panel", choices=PANELS, default="toy", help="panel of the Loss lab (toy)")
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the panel, tau=0.07 for example"
    )
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    write(args.panel, args.set, args.out)
    print_files(args)
    return 0


def write(panel: str, settings: Sequence[str], files: Sequence[Path]) -> str:
    """Writes a panel of the Loss lab; returns the command that does the same."""
    from trainer.charts.lab import lab as collect
    from trainer.charts.settings import words
    from trainer.render_mpl import lab as figure
    from trainer.render_mpl.files import write_figure

    chart = collect(panel, settings)
    line = command_line("lab", [], files, {"panel": panel, "set": words(chart.settings)})
    title = f"Loss lab: {chart.title}"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line
