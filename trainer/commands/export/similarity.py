"""`trainer export similarity`: cosines of matched and unmatched pairs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.commands.export import (
    View,
    add_file_arguments,
    add_run_arguments,
    add_view_arguments,
    check_arguments,
    command_line,
    print_files,
    view_of,
)

if TYPE_CHECKING:
    from trainer.store import Workspace

HELP = "cosines of matched and unmatched pairs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, which of their embeddings, and how many unmatched pairs."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    parser.add_argument("--k", type=int, default=10, help="unmatched texts an image keeps (10)")
    parser.add_argument("--bins", type=int, default=60, help="bars of the histogram (60)")
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    write(args.workspace, args.runs, args.out, view=view_of(args), k=args.k, bins=args.bins)
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    view: View,
    k: int = 10,
    bins: int = 60,
) -> str:
    """Writes the histograms; returns the command that does the same."""
    from trainer.charts.similarity import similarity as collect
    from trainer.figures import similarity as figure
    from trainer.figures.files import write_figure

    chart = collect(workspace, runs, step=view.step, dataset=view.dataset, split=view.split, k=k, bins=bins)
    line = command_line("similarity", runs, files, {**vars(view), "k": k, "bins": bins})
    title = "Cosines of matched and unmatched pairs"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line
