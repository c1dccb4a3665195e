"""`trainer export hubness`: how often every image is found, with and without CSLS."""

from __future__ import annotations

import argparse

from trainer.cli.export import (
    add_file_arguments,
    add_run_arguments,
    add_step_b,
    add_view_arguments,
    check_arguments,
    command_line,
    print_files,
    tell,
    view_of,
    words_of_b,
)

HELP = "how often every image is found by the texts, and what CSLS changes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, their snapshot, and how many hits."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    add_step_b(parser)
    parser.add_argument("--k", type=int, default=10, help="hits of each text (10)")
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    from trainer.charts.hubness import hubness
    from trainer.charts.snapshots import sides
    from trainer.render_mpl import hubness as figure
    from trainer.render_mpl.files import write_figure

    check_arguments(args)
    view = vars(view_of(args))
    shown = sides(args.runs, args.step, args.step_b)
    charts = [hubness(args.workspace, run, **view | {"step": at}, k=args.k, progress=tell) for run, at in shown]
    tell(1.0, "")
    write_figure(
        args.out,
        figure=lambda: figure.draw(charts),
        rows=lambda: figure.rows(charts),
        command=command_line("hubness", args.runs, args.out, {**view, **words_of_b(args.step_b), "k": args.k}),
        title="Hubs",
    )
    print_files(args)
    return 0
