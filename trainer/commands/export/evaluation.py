"""`trainer export evaluation`: what `trainer evaluate` found out on a data set, as curves or as a confusion."""

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

HELP = "reliability, robustness and few-shot curves, or confusions, of stored evaluations"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, the data set, and which panel."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    parser.add_argument("--panel", choices=("curves", "confusion"), default="curves", help="what the figure shows")
    parser.add_argument("--task", choices=("zero_shot", "linear_probe", "knn"), default="zero_shot", help="confused")
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    write(args.workspace, args.runs, args.out, view=view_of(args), panel=args.panel, task=args.task)
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    view: View,
    panel: str = "curves",
    task: str = "zero_shot",
) -> str:
    """Writes the figure or its numbers; returns the command that does the same."""
    from trainer.charts.evaluation import evaluation
    from trainer.figures import evaluation as figure
    from trainer.figures.files import write_figure

    chart = evaluation(workspace, runs, **vars(view))
    line = command_line("evaluation", runs, files, {**vars(view), "panel": panel, "task": task})
    title = f"Evaluation on {chart.dataset} {chart.split}"
    write_figure(
        files,
        figure=lambda: figure.draw(chart, panel, task),
        rows=lambda: figure.rows(chart),
        command=line,
        title=title,
    )
    return line
