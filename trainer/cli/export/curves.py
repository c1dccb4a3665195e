"""`trainer export curves`: logged values over the step or the time."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.cli.export import add_file_arguments, add_run_arguments, check_arguments, command_line, print_files

if TYPE_CHECKING:
    from trainer.store import Workspace

HELP = "logged values over the step or the time"

DEFAULT_METRICS = ("val/image_to_text_R@1", "val/text_to_image_R@1", "val/knn_acc1", "train/loss")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, the values, the axis."""
    add_run_arguments(parser)
    parser.add_argument("--metrics", nargs="+", metavar="NAME", default=list(DEFAULT_METRICS), help="logged names")
    parser.add_argument("--axis", choices=("step", "time"), default="step", help="what runs to the right")
    parser.add_argument("--smoothing", type=float, default=0.0, metavar="W", help="0 (none) up to 0.999")
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    write(args.workspace, args.runs, args.metrics, args.out, axis=args.axis, smoothing=args.smoothing)
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    metrics: Sequence[str],
    files: Sequence[Path],
    *,
    axis: str = "step",
    smoothing: float = 0.0,
) -> str:
    """Writes the curves; returns the command that does the same."""
    from trainer.charts.curves import curves as collect
    from trainer.render_mpl import curves as figure
    from trainer.render_mpl.files import write_figure

    chart = collect(workspace, runs, metrics, axis=axis, smoothing=smoothing)
    line = command_line("curves", runs, files, {"metrics": list(metrics), "axis": axis, "smoothing": smoothing})
    title = "Training curves"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line
