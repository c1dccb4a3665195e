"""`trainer export gap`: the gap between images and texts, and what closing it does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.charts import SAME
from trainer.cli.export import (
    SnapshotChoice,
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

HELP = "the gap between images and texts, and what closing it does"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, which of their embeddings, how the gap is closed."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    parser.add_argument(
        "--way", choices=("shift", "project"), default="shift", help="move by the gap, or project it out (shift)"
    )
    add_step_b(parser)
    parser.add_argument("--most", type=int, default=8_000, help="pairs measured; more are sampled (8000)")
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    write(args.workspace, args.runs, args.out, view=view_of(args), way=args.way, most=args.most, **step_of_b(args))
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    view: SnapshotChoice,
    way: str = "shift",
    most: int = 8_000,
    step_b: int | None = SAME,
) -> str:
    """Writes the gap; returns the command that does the same."""
    from trainer.charts.gap import gap as collect
    from trainer.render_mpl import gap as figure
    from trainer.render_mpl.files import write_figure

    chart = collect(workspace, runs, **vars(view), way=way, most=most, step_b=step_b, progress=tell)
    line = command_line("gap", runs, files, {**vars(view), **words_of_b(step_b), "way": way, "most": most})
    title = "Modality gap"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line
