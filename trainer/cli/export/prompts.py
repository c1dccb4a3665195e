"""`trainer export prompts`: accuracy of every class with every prompt template, and of ensembles of them."""

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
from trainer.cli.export.calibration import add_word_arguments, embedded_classes

if TYPE_CHECKING:
    from trainer.store import Workspace

HELP = "accuracy of every class with every prompt template, and of ensembles"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, which of their embeddings, the words, and their weights."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    add_word_arguments(parser)
    add_step_b(parser)
    parser.add_argument(
        "--weights", nargs="+", type=float, default=[], metavar="W", help="of each template in the ensemble (all 1)"
    )
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    write(
        args.workspace,
        args.runs,
        args.out,
        view=view_of(args),
        suite=args.suite,
        labels=args.labels,
        templates=args.templates,
        weights=args.weights,
        **step_of_b(args),
    )
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    view: SnapshotChoice,
    suite: str | None = None,
    labels: Sequence[str] | None = None,
    templates: Sequence[str] | None = None,
    weights: Sequence[float] = (),
    step_b: int | None = SAME,
) -> str:
    """Writes the matrices; returns the command that does the same."""
    from trainer.charts.prompts import prompts as collect
    from trainer.render_mpl import prompts as figure
    from trainer.render_mpl.files import write_figure

    texts = embedded_classes(workspace, runs, view=view, suite=suite, labels=labels, templates=templates, step_b=step_b)
    chart = collect(workspace, texts, weights=weights, dataset=view.dataset, split=view.split, progress=tell)
    options = {**vars(view), **words_of_b(step_b), "suite": suite, "labels": list(labels or ()) or None}
    options |= {"templates": list(templates or ()) or None, "weights": [f"{weight:g}" for weight in weights] or None}
    line = command_line("prompts", runs, files, options)
    title = "Prompt templates and classes"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line
