"""`trainer export`: writes any chart as a figure for print, and its numbers as CSV. One module per kind.

Each kind has `HELP`, `add_arguments` and `run` like a command, and `write`, which writes the files and returns the
command that does the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.errors import UserError
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.charts.figure_choices import FigureChoices, FigurePart
    from trainer.charts.spec import Request
    from trainer.render_mpl.files import FigureSize

GROUP = "Share"
HELP = "draw any chart of the window as SVG, PDF or PNG, and its numbers as CSV"


def add_file_arguments(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add the output files; `more` names formats besides figures and numbers."""
    add_out_argument(parser, f"files to write; .svg, .pdf, .png or .csv{more}", required=True)


def add_out_argument(parser: argparse.ArgumentParser, text: str, *, required: bool = False) -> None:
    """Add the output files, of which there may be several; `text` says what they can be."""
    options: dict[str, Any] = {"required": True} if required else {"default": []}
    parser.add_argument("--out", nargs="+", action="extend", type=Path, metavar="FILE", help=text, **options)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs to draw."""
    parser.add_argument("--runs", nargs="+", default=[], metavar="RUN", help="numbers, names or folders; A first")


def add_snapshot_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the snapshots: one step for all or one per run, data set, split."""
    which = parser.add_argument_group("which embeddings")
    add_step_argument(which, "snapshots")
    add_split_arguments(which)


def add_split_arguments(parser: argparse._ActionsContainer) -> None:
    """Add data set and split."""
    parser.add_argument("--dataset", help="name of the data, scenes for example")
    parser.add_argument("--split", help="renderings, combinations or heldout, for example")


def add_step_argument(parser: argparse._ActionsContainer, what: str) -> None:
    """Add the steps of the snapshots or checkpoints: one for all runs or one for each."""
    description = f"step of the {what}, one for all or one for each run (last)"
    parser.add_argument("--step", nargs="+", type=step_or_last, default=[], metavar="N|last", help=description)


def step_words(steps: Sequence[int | None]) -> list[str]:
    """Return the steps as command-line arguments; none if no step was given."""
    return ["--step", *("last" if step is None else str(step) for step in steps)] if steps else []


def step_or_last(text: str) -> int | None:
    """Return the given step; None for the last."""
    return None if text == "last" else int(text)


def request_of(args: argparse.Namespace) -> Request:
    """Return the snapshots in the arguments."""
    from trainer.charts.spec import Request, targets_of

    return Request(targets_of(args.runs, args.step), args.dataset, args.split)


def check_arguments(args: argparse.Namespace, *, beside: Sequence[str] = ()) -> None:
    """Check before any computation that the files have supported suffixes and that required runs are given.

    Raises:
        UserError: They have not, or there are none.
    """
    from trainer.render_mpl.files import check_suffixes

    check_suffixes(file for file in args.out if file.suffix.lower() not in beside)
    if "runs" in args and not args.runs:
        raise UserError(f"Name the runs to draw: --runs 1 2. trainer runs list shows them; {args.kind} needs one.")


def add_figure_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is chosen of the figure: its parts, width and texts."""
    from trainer.charts.figure_choices import FigureChoices
    from trainer.charts.settings import add_options

    add_options(parser.add_argument_group("the figure"), FigureChoices)


def figure_choices(args: argparse.Namespace) -> FigureChoices:
    """Return what is chosen of the figure in the arguments."""
    from trainer.charts.figure_choices import FigureChoices
    from trainer.charts.settings import from_options

    return from_options(FigureChoices, args)


@dataclass(frozen=True)
class WrittenFigure:
    """What a command has written."""

    command: str  # What writes it again.
    size: FigureSize | None = None  # Of the figure; None where the files hold numbers alone.
    parts: tuple[FigurePart, ...] = ()  # What it can hold; empty where it has no parts.


def print_files(args: argparse.Namespace, written: WrittenFigure | None = None) -> None:
    """Print the names of the files written; as JSON also the size of the figure, and the parts it can hold."""
    from trainer.render_mpl.files import json_text

    names = [str(file) for file in args.out]
    facts: dict[str, Any] = {"files": names}
    if written is not None and written.size is not None:
        facts["figure"] = {**vars(written.size), "parts": [vars(part) for part in written.parts]}
    say_json(json_text(facts)) if args.json else say("\n".join(names))
