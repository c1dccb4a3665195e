"""`trainer export evaluation`: what `trainer evaluate` found out on a data set, as scores or as a confusion."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

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

HELP = "scores with intervals, confusions or the table of stored evaluations"
TABLES: Final = (".md", ".tex")
"""Endings of files that hold the table, whatever the panel."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, the data set, and which panel."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    add_step_b(parser)
    parser.add_argument("--panel", choices=("scores", "confusion"), default="scores", help="what the figure shows")
    parser.add_argument("--task", choices=("zero_shot", "linear_probe", "knn"), default="zero_shot", help="confused")
    add_file_arguments(parser, ", or .md or .tex for the table")


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args, beside=TABLES)
    chosen = {"panel": args.panel, "task": args.task, **step_of_b(args)}
    write(args.workspace, args.runs, args.out, view=view_of(args), **chosen)
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    view: SnapshotChoice,
    panel: str = "scores",
    task: str = "zero_shot",
    step_b: int | None = SAME,
) -> str:
    """Writes the figure, its numbers or the table; returns the command that does the same."""
    from trainer.charts.evaluation import evaluation
    from trainer.cli.compare import write_table_file
    from trainer.render_mpl import evaluation as figure
    from trainer.render_mpl import evaluation_table
    from trainer.render_mpl.files import write_figure

    chart = evaluation(workspace, runs, **vars(view), step_b=step_b)
    line = command_line("evaluation", runs, files, {**vars(view), **words_of_b(step_b), "panel": panel, "task": task})
    title = f"Evaluation on {chart.dataset} {chart.split}"
    for file in (one for one in files if one.suffix.lower() in TABLES):
        write_table_file(file, chart, figure.rows, evaluation_table.as_markdown, evaluation_table.as_latex)
    write_figure(
        [file for file in files if file.suffix.lower() not in TABLES],
        figure=lambda: figure.draw(chart, panel, task),
        rows=lambda: figure.rows(chart),
        command=line,
        title=title,
    )
    return line
