"""`trainer export search`: what a sentence or a picture finds in each run."""

from __future__ import annotations

import argparse

from trainer.cli.export import (
    add_file_arguments,
    check_arguments,
    command_line,
    print_files,
    view_of,
    words_of_b,
)

HELP = "what a sentence or a picture finds in each run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The question, the runs, where to."""
    from trainer.cli.search import add_question_arguments

    add_question_arguments(parser)
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    from trainer.cli.search import collect
    from trainer.render_mpl import search as figure
    from trainer.render_mpl.files import write_figure

    check_arguments(args)
    question, charts = collect(args.workspace, args)
    asked = {"text": args.text} if args.text else {"image": str(args.image)}
    options = {**asked, **vars(view_of(args)), **words_of_b(args.step_b), "target": args.target, "k": args.k}
    line = command_line("search", args.runs, args.out, options) + (" --csls" if args.csls else "")
    write_figure(
        args.out,
        figure=lambda: figure.draw(charts, question),
        rows=lambda: figure.rows(charts, question),
        command=line,
        title=f"Search: {question}",
    )
    print_files(args)
    return 0
