"""`trainer export similarity`: cosines of matched and unmatched pairs."""

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

HELP = "cosines of matched and unmatched pairs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, which of their embeddings, and how many unmatched pairs."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    add_step_b(parser)
    parser.add_argument("--k", type=int, default=10, help="unmatched texts an image keeps (10)")
    parser.add_argument("--bins", type=int, default=60, help="bars of the histogram (60)")
    add_comparison_arguments(parser)
    add_file_arguments(parser)


def add_comparison_arguments(parser: argparse.ArgumentParser) -> None:
    """Which unmatched pairs, and which images."""
    parser.add_argument(
        "--compared",
        choices=("hardest", "sampled", "all"),
        default="hardest",
        help="unmatched pairs: the k most similar of each image, a random sample, or every one (hardest)",
    )
    parser.add_argument("--facet", metavar="COLUMN", help="tell the values of this column apart, label for example")
    parser.add_argument("--only", metavar="VALUE", help="only the images of this value of the facet")


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    chosen = {"compared": args.compared, "facet": args.facet, "only": args.only, **step_of_b(args)}
    write(args.workspace, args.runs, args.out, view=view_of(args), k=args.k, bins=args.bins, **chosen)
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    view: SnapshotChoice,
    k: int = 10,
    bins: int = 60,
    compared: str = "hardest",
    facet: str | None = None,
    only: str | None = None,
    step_b: int | None = SAME,
) -> str:
    """Writes the histograms; returns the command that does the same."""
    from trainer.charts.similarity import similarity as collect
    from trainer.render_mpl import similarity as figure
    from trainer.render_mpl.files import write_figure

    chosen = {"compared": compared, "facet": facet, "only": only}
    chart = collect(workspace, runs, **vars(view), k=k, bins=bins, **chosen, step_b=step_b, progress=tell)
    line = command_line("similarity", runs, files, {**vars(view), **words_of_b(step_b), "k": k, "bins": bins, **chosen})
    title = "Cosines of matched and unmatched pairs"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line
