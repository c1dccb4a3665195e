"""`trainer export axes`: pairs along axes that texts define."""

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
    view_of,
    words_of_b,
)

if TYPE_CHECKING:
    from trainer.store import Workspace

HELP = "pairs along axes that texts define"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, which of their embeddings, and the words of both axes."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    add_step_b(parser)
    for name in ("x", "y"):
        parser.add_argument(
            f"--{name}",
            required=True,
            metavar="TEXT",
            help=f"{name} axis: 'a red ring - a blue ring'; several texts apart by ;",
        )
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    write(args.workspace, args.runs, args.out, view=view_of(args), x=args.x, y=args.y, **step_of_b(args))
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    view: SnapshotChoice,
    x: str,
    y: str,
    step_b: int | None = SAME,
) -> str:
    """Writes the scatter plots; returns the command that does the same."""
    from trainer.charts.words import AxisText
    from trainer.charts.words import axes as collect
    from trainer.cli.export.words import embedder
    from trainer.render_mpl import words as figure
    from trainer.render_mpl.files import write_figure

    lines = {"x": AxisText.parse(x), "y": AxisText.parse(y)}
    chart = collect(workspace, runs, embedder(workspace), **vars(view), **lines, step_b=step_b)
    line = command_line("axes", runs, files, {**vars(view), **words_of_b(step_b), "x": x, "y": y})
    title = "Axes of texts"
    write_figure(
        files, figure=lambda: figure.draw_axes(chart), rows=lambda: figure.axes_rows(chart), command=line, title=title
    )
    return line
