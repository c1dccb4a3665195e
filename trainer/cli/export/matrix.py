"""`trainer export matrix`: draws the cosines of all images with all texts in a chosen order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.cli._progress import report
from trainer.cli.export import (
    SnapshotChoice,
    WrittenFigure,
    add_figure_arguments,
    add_file_arguments,
    add_run_arguments,
    add_snapshot_arguments,
    check_arguments,
    command_line,
    figure_choices,
    print_files,
    view_of,
)

if TYPE_CHECKING:
    from trainer.charts.figure_choices import FigureChoices
    from trainer.store import Workspace

HELP = "cosines of all images with all texts, ordered"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs, their embeddings, the order and the part of the matrix."""
    add_run_arguments(parser)
    add_snapshot_arguments(parser)
    parser.add_argument(
        "--by", default="label", metavar="COLUMN", help="order: a column of the items, clusters or stored (label)"
    )
    parser.add_argument(
        "--window", nargs=4, type=int, metavar=("TOP", "BOTTOM", "LEFT", "RIGHT"), help="places of the order (all)"
    )
    parser.add_argument("--blocks", type=int, default=240, help="most rows and columns of the picture (240)")
    add_figure_arguments(parser)
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Write the files and print their names."""
    check_arguments(args)
    chosen = {"by": args.by, "window": args.window, "blocks": args.blocks}
    written = write(args.workspace, args.runs, args.out, view=view_of(args), figure=figure_choices(args), **chosen)
    print_files(args, written)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    view: SnapshotChoice,
    by: str = "label",
    window: Sequence[int] | None = None,
    blocks: int = 240,
    figure: FigureChoices | None = None,
) -> WrittenFigure:
    """Write the heat maps."""
    from trainer.charts.figure_choices import FigureChoices, parts_of
    from trainer.charts.matrix import MatrixWindow, matrix, panel, records
    from trainer.charts.settings import options as setting_options
    from trainer.render_mpl.files import NumberRows, write_figure
    from trainer.render_mpl.panel import draw

    part = MatrixWindow(*window) if window else None
    chosen = {**vars(view), "by": by}
    chart = matrix(workspace, runs, **chosen, window=part, blocks=blocks, progress=report)
    options = {
        **view.options,
        "by": by,
        "window": list(window) if window else None,
        "blocks": blocks,
    }
    choices = figure or FigureChoices()
    line = command_line("matrix", runs, files, options, setting_options(choices))
    drawn, labels = panel(chart), [workspace.runs.get(run).short_name for run in runs]
    size = write_figure(
        files,
        figure=lambda: draw(drawn, choices, labels),
        rows=lambda: NumberRows(*records(chart)),
        command=line,
        title="Similarity matrix",
    )
    return WrittenFigure(line, size, parts_of(drawn))
