"""`trainer export changes`: what changed between two runs, or between two steps of one, pair by pair."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.cli.export import (
    ExportError,
    add_file_arguments,
    add_run_arguments,
    check_arguments,
    command_line,
    print_files,
    step_or_last,
    tell,
)

if TYPE_CHECKING:
    from trainer.charts.changes import Changes
    from trainer.charts.class_task import ClassTexts
    from trainer.charts.mispairs import Mispairs
    from trainer.store import Workspace

HELP = "what changed between two runs or two steps of one: ranks, neighbors, mispairs; every pair in the CSV"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One run or two, their steps, the data."""
    add_run_arguments(parser)
    add_pair_arguments(parser)
    add_file_arguments(parser)


def add_pair_arguments(parser: argparse.ArgumentParser) -> None:
    """Steps, data, and how they are compared."""
    parser.add_argument("--step-a", type=step_or_last, default=None, metavar="N|last", help="step of A (last)")
    parser.add_argument("--step-b", type=step_or_last, default=None, metavar="N|last", help="step of B (last)")
    parser.add_argument("--dataset", help="name of the data, scenes for example")
    parser.add_argument("--split", help="renderings, combinations or heldout, for example")
    parser.add_argument("--k", type=int, default=10, help="neighbors of each pair (10)")
    parser.add_argument(
        "--suite", help="verdicts by this prompt suite, scenes for example (means of each class's captions)"
    )
    parser.add_argument("--worst", type=float, default=0.1, metavar="SHARE", help="badly ranked share of a run (0.1)")


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    write(args.workspace, args.runs, args.out, **options_of(args))
    print_files(args)
    return 0


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """What `collect` is asked."""
    names = ("step_a", "step_b", "dataset", "split", "k", "suite", "worst")
    return {name: getattr(args, name) for name in names}


def collect(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    step_a: int | None = None,
    step_b: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    k: int = 10,
    suite: str | None = None,
    worst: float = 0.1,
) -> tuple[Changes, Mispairs | None]:
    """The chart and its mispairs; None where a run lacks images or texts.

    Raises:
        ExportError: More than two runs.
    """
    from trainer.charts.changes import changes
    from trainer.charts.mispairs import mispairs

    if len(runs) > 2:
        raise ExportError("Two runs are compared, or two steps of one: --runs A B, or --runs A --step-a 96.")
    refs = (runs[0], step_a), (runs[-1], step_b)
    texts = _embedded(workspace, refs, dataset, split, suite) if suite else None
    found = changes(workspace, *refs, dataset=dataset, split=split, k=k, texts=texts, progress=tell)
    tell(1.0, "")
    return found, mispairs(found, share=worst) if "text_rank_a" in found.values else None


def _embedded(
    workspace: Workspace,
    refs: Sequence[tuple[int | str, int | None]],
    dataset: str | None,
    split: str | None,
    suite: str,
) -> tuple[ClassTexts, ClassTexts]:
    """The suite's classes as A's model and B's embed them."""
    from trainer.cli.export import SnapshotChoice
    from trainer.cli.export.calibration import embedded_classes

    views = [SnapshotChoice(step=step, dataset=dataset, split=split) for _, step in refs]
    found = [
        embedded_classes(workspace, [run], view=view, suite=suite, labels=None, templates=None)[0]
        for (run, _), view in zip(refs, views)
    ]
    return found[0], found[1]


def write(workspace: Workspace, runs: Sequence[int | str], files: Sequence[Path], **options: Any) -> str:
    """Writes the figure; returns the command that does the same."""
    from trainer.render_mpl import changes as figure
    from trainer.render_mpl.files import write_figure

    chart, found = collect(workspace, runs, **options)
    line = command_line("changes", runs, files, {name.replace("_", "-"): value for name, value in options.items()})
    write_figure(
        files,
        figure=lambda: figure.draw(chart, found),
        rows=lambda: figure.rows(chart, found),
        command=line,
        title="What changed",
    )
    return line
