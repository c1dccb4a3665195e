"""`trainer export`: any chart of the window as a figure for print, and its numbers as CSV. One module a kind.

Each kind has `HELP`, `add_arguments` and `run` like a command, and `write`, which writes the files and returns the
command that does the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer.charts import SAME
from trainer.errors import UserError
from trainer.untrusted import shell

GROUP = "Share"
HELP = "draw any chart of the window as SVG, PDF or PNG, and its numbers as CSV"
EVERY_S: Final = 3.0

_told = [time.monotonic()]


class ExportError(UserError):
    """The command lacks what the figure needs."""


@dataclass(frozen=True, kw_only=True)
class SnapshotChoice:
    """Which embeddings a figure shows; what is None is chosen: last step, preferred split."""

    step: int | None = None
    dataset: str | None = None
    split: str | None = None


def add_file_arguments(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Where to write; `more` says what else than figures and numbers."""
    parser.add_argument(
        "--out",
        nargs="+",
        action="extend",
        required=True,
        type=Path,
        metavar="FILE",
        help=f"files to write; .svg, .pdf, .png or .csv{more}",
    )


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs to draw."""
    parser.add_argument("--runs", nargs="+", default=[], metavar="RUN", help="numbers, names or folders; A first")


def add_view_arguments(parser: argparse.ArgumentParser) -> None:
    """Which snapshot: step, dataset, split."""
    view = parser.add_argument_group("which embeddings")
    view.add_argument("--step", type=step_or_last, default=None, metavar="N|last", help="step of the snapshot (last)")
    view.add_argument("--dataset", help="name of the data, scenes for example")
    view.add_argument("--split", help="renderings, combinations or heldout, for example")


def add_step_b(parser: argparse.ArgumentParser) -> None:
    """The step of the second run, where it is not the first one's."""
    parser.add_argument(
        "--step-b", type=step_or_last, default=SAME, metavar="N|last", help="step of B, if another than A's"
    )


def step_of_b(args: argparse.Namespace) -> dict[str, int | None]:
    """`step_b` where the person named one, to be given on as an argument."""
    return {} if args.step_b == SAME else {"step_b": args.step_b}


def words_of_b(step_b: int | None) -> dict[str, int | str]:
    """The same as an option of a command line."""
    return {} if step_b == SAME else {"step-b": "last" if step_b is None else step_b}


def step_or_last(text: str) -> int | None:
    """The step a person named; None for the last."""
    return None if text == "last" else int(text)


def view_of(args: argparse.Namespace) -> SnapshotChoice:
    """The snapshot the arguments name."""
    return SnapshotChoice(step=args.step, dataset=args.dataset, split=args.split)


def check_arguments(args: argparse.Namespace, *, beside: Sequence[str] = ()) -> None:
    """Before anything is computed: the files have suffixes that can be written, and there are runs if they are needed.

    Args:
        args: As parsed.
        beside: Suffixes that this kind writes beside those of all.

    Raises:
        Problem: They have not, or there are none.
    """
    from trainer.render_mpl.files import check_suffixes

    check_suffixes(file for file in args.out if file.suffix.lower() not in beside)
    if "runs" in args and not args.runs:
        raise ExportError(f"Name the runs to draw: --runs 1 2. trainer runs list shows them; {args.kind} needs one.")


def print_files(args: argparse.Namespace) -> None:
    """Prints the names of the files that were written."""
    from trainer.render_mpl.files import json_text

    names = [str(file) for file in args.out]
    print(json_text({"files": names}) if args.json else "\n".join(names))


def command_line(kind: str, runs: Sequence[int | str], files: Sequence[Path], options: dict[str, Any]) -> str:
    """The command that writes these files, to be pasted into a shell; options that are None are left out."""
    # No map() here: the module `map` of this package has taken its name.
    words = ["trainer", "export", kind, *(["--runs", *(str(run) for run in runs)] if runs else [])]
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", *([str(part) for part in value] if isinstance(value, list) else [f"{value}"])]
    return shell.join([*words, "--out", *(file.name for file in files)])


def tell(share: float, note: str) -> None:
    """Shows progress: on a terminal in one line, else as lines on standard error, one every few seconds at most."""
    if sys.stderr.isatty():
        print(f"\r{share:4.0%} {note:<40}", end="" if share < 1 else "\n", file=sys.stderr, flush=True)
    elif note and time.monotonic() - _told[-1] >= EVERY_S:
        _told[:] = [time.monotonic()]
        print(f"{share:4.0%} {note}", file=sys.stderr, flush=True)
