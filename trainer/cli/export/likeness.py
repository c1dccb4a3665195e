"""`trainer export likeness`: CKA, RSA and shared neighbors of every two snapshots of runs."""

from __future__ import annotations

import argparse

from trainer.cli.export import (
    add_file_arguments,
    add_run_arguments,
    check_arguments,
    command_line,
    print_files,
    tell,
)

MEASURES = ("cka", "rsa", "neighbors")
"""A test compares them with `trainer.charts.likeness`, which loads numpy."""

HELP = "how alike snapshots are: linear CKA, RSA, shared neighbors over runs, steps and modalities"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, how many steps of each, and which matrices."""
    add_run_arguments(parser)
    add_matrix_arguments(parser)
    parser.add_argument("--measures", nargs="+", choices=MEASURES, default=list(MEASURES), help="drawn (all)")
    add_file_arguments(parser)


def add_matrix_arguments(parser: argparse.ArgumentParser) -> None:
    """Data, steps and neighbors."""
    parser.add_argument("--dataset", help="name of the data, scenes for example")
    parser.add_argument("--split", help="renderings, combinations or heldout, for example")
    parser.add_argument("--steps", type=int, default=6, help="snapshots of each run at most, evenly spread (6)")
    parser.add_argument("--k", type=int, default=10, help="neighbors of each pair (10)")


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    from trainer.charts.likeness import likeness
    from trainer.render_mpl import likeness as figure
    from trainer.render_mpl.files import write_figure

    check_arguments(args)
    options = {name: getattr(args, name) for name in ("dataset", "split", "steps", "k")}
    chart = likeness(args.workspace, args.runs, **options, progress=tell)
    tell(1.0, "")
    write_figure(
        args.out,
        figure=lambda: figure.draw(chart, args.measures),
        rows=lambda: figure.rows(chart),
        command=command_line("likeness", args.runs, args.out, {**options, "measures": args.measures}),
        title="How alike snapshots are",
    )
    print_files(args)
    return 0
