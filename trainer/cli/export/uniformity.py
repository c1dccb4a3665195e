"""`trainer export uniformity`: how evenly embeddings cover the sphere."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.charts import SAME
from trainer.cli.export import (
    View,
    add_file_arguments,
    add_run_arguments,
    add_step_b,
    add_view_arguments,
    check_arguments,
    command_line,
    print_files,
    step_of_b,
    tell,
    view_of,
    words_of_b,
)

if TYPE_CHECKING:
    from trainer.store import Workspace

HELP = "how evenly embeddings cover the sphere"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, which of their embeddings, and how many rows."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    add_step_b(parser)
    parser.add_argument(
        "--most", type=int, default=4_000, help="rows whose pairs are all compared; more are sampled (4000)"
    )
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    write(args.workspace, args.runs, args.out, view=view_of(args), most=args.most, **step_of_b(args))
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    view: View,
    most: int = 4_000,
    step_b: int | None = SAME,
) -> str:
    """Writes angles and course; returns the command that does the same."""
    from trainer.charts.uniformity import spread_chart as collect
    from trainer.render_mpl import uniformity as figure
    from trainer.render_mpl.files import write_figure

    chart = collect(workspace, runs, **vars(view), most=most, step_b=step_b, progress=tell)
    line = command_line("uniformity", runs, files, {**vars(view), **words_of_b(step_b), "most": most})
    title = "Uniformity"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line
