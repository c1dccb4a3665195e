"""`trainer export efficiency`: what groups of runs score over the pairs they have seen."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.cli.export import add_file_arguments, check_arguments, command_line, print_files
from trainer.untrusted import shell

if TYPE_CHECKING:
    from trainer.store import Workspace

HELP = "accuracy of groups of runs over the pairs seen, seeds as a band"


def add_group_arguments(parser: argparse.ArgumentParser) -> None:
    """The groups, the measure and the data."""
    parser.add_argument(
        "--group", action="append", default=[], metavar="PATTERN", help="runs by name, 'clip-*'; once a group"
    )
    parser.add_argument("--metric", default="zero_shot_acc1", metavar="NAME", help="of an evaluation (zero_shot_acc1)")
    parser.add_argument("--dataset", help="name of the data, scenes for example")
    parser.add_argument("--split", help="renderings, for example")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The groups, the measure, the data, the files."""
    add_group_arguments(parser)
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    where = {"dataset": args.dataset, "split": args.split}
    write(args.workspace, args.group, args.out, metric=args.metric, **where)
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    groups: Sequence[str],
    files: Sequence[Path],
    *,
    metric: str = "zero_shot_acc1",
    dataset: str | None = None,
    split: str | None = None,
) -> str:
    """Writes the figure or its numbers; returns the command that does the same."""
    from trainer.charts.efficiency import efficiency
    from trainer.render_mpl import efficiency as figure
    from trainer.render_mpl.files import write_figure

    chart = efficiency(workspace, groups, measure=metric, dataset=dataset, split=split)
    line = command_line("efficiency", (), files, {"metric": metric, "dataset": dataset, "split": split})
    line = line.replace(" efficiency ", f" efficiency {group_words(groups)} ", 1)
    title = f"Data efficiency on {chart.dataset} {chart.split}"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line


def group_words(groups: Sequence[str]) -> str:
    """The groups as arguments, for a shell."""
    return shell.join(word for group in groups for word in ("--group", group))
