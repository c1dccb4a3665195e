"""`trainer export diagnosis`: spectra, saturation, one batch in detail, and what each run encodes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.cli.export import (
    add_file_arguments,
    add_run_arguments,
    add_step_b,
    add_view_arguments,
    check_arguments,
    command_line,
    print_files,
    tell,
    words_of_b,
)

if TYPE_CHECKING:
    from trainer.charts.diagnosis import Asked
    from trainer.store import Workspace

HELP = "explaining away and saturation: spectrum, saturation, batch or attributes of runs"

PANELS = ("spectrum", "saturation", "batch", "attributes")
"""A test compares them with `trainer.charts.diagnosis`, which loads numpy."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, the panel, and which batch."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    add_step_b(parser)
    add_panel_arguments(parser)
    add_file_arguments(parser)


def add_panel_arguments(parser: argparse.ArgumentParser) -> None:
    """The panel, and which batch."""
    parser.add_argument("--panel", choices=PANELS, default="spectrum", help="panel of the diagnosis (spectrum)")
    parser.add_argument("--size", type=int, default=32, help="batch: number of pairs (32)")
    parser.add_argument("--number", type=int, default=0, help="batch: which one (0)")
    parser.add_argument("--anchor", type=int, default=0, help="batch: place of the anchor (0)")
    parser.add_argument(
        "--held-out", action="store_true", help="batch, saturation: batches of held-out pairs, not the training batch"
    )
    parser.add_argument(
        "--without-ablation", action="store_true", help="attributes: only the runs named, not those of the ablation"
    )
    parser.add_argument(
        "--independent", action="store_true", help="attributes: probe the snapshots of `trainer independent`"
    )


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    write(args.workspace, args.runs, args.out, asked_of(args), args.panel)
    print_files(args)
    return 0


def write(
    workspace: Workspace, runs: Sequence[int | str], files: Sequence[Path], asked: Asked, panel: str = "spectrum"
) -> str:
    """Writes the panel; returns the command that does the same."""
    from trainer.charts.diagnosis import diagnosis
    from trainer.charts.panel_rows import HEADER, panel_rows
    from trainer.render_mpl import panel as figure
    from trainer.render_mpl.files import NumberRows, write_figure

    board = diagnosis(workspace, runs, asked, panel, progress=tell)
    line = command_line("diagnosis", runs, files, {**_view(asked), "panel": panel, **_batch(asked, panel)})
    write_figure(
        files,
        figure=lambda: figure.draw(board),
        rows=lambda: NumberRows(HEADER, panel_rows(board, panel)),
        command=line,
        title=board.title,
    )
    return line


def asked_of(args: argparse.Namespace) -> Asked:
    """What the arguments ask."""
    from trainer.charts.diagnosis import Asked

    batch = {"size": args.size, "number": args.number, "anchor": args.anchor}
    which = {"ablation": not args.without_ablation, "independent": args.independent, "heldout": args.held_out}
    return Asked(step=args.step, step_b=args.step_b, dataset=args.dataset, split=args.split, **which, **batch)


def _view(asked: Asked) -> dict[str, object]:
    return {"step": asked.step, **words_of_b(asked.step_b), "dataset": asked.dataset, "split": asked.split}


def _batch(asked: Asked, panel: str) -> dict[str, object]:
    if panel == "attributes":
        # An empty list is an option without a value.
        flags = {"without-ablation": not asked.ablation, "independent": asked.independent}
        return {name: [] for name, on in flags.items() if on}
    heldout: dict[str, object] = {"held-out": []} if asked.heldout and panel in ("batch", "saturation") else {}
    return heldout | ({"size": asked.size, "number": asked.number, "anchor": asked.anchor} if panel == "batch" else {})
