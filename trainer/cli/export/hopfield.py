"""`trainer export hopfield`: what a Hopfield retrieval among a run's embeddings averages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    import numpy as np

    from trainer.charts.hopfield import Asked
    from trainer.store import Workspace

HELP = "the Hopfield lab: retrieval, pair, phase, batch or spectrum of runs"

PANELS = ("retrieval", "pair", "phase", "batch", "spectrum")
"""A test compares them with `trainer.charts.hopfield`, which loads numpy."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, the panel, what is stored and what asks."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    add_step_b(parser)
    add_lab_arguments(parser)
    add_file_arguments(parser)


def add_lab_arguments(parser: argparse.ArgumentParser) -> None:
    """The panel, what is stored, what asks, and beta."""
    parser.add_argument("--panel", choices=PANELS, default="retrieval", help="panel of the lab (retrieval)")
    parser.add_argument("--stored", choices=("images", "texts"), default="images", help="the patterns (images)")
    parser.add_argument("--only", default="", metavar="CLASS", help="store the pairs of this class only")
    parser.add_argument("--pairs", nargs="+", type=int, default=[], metavar="N", help="store these pairs only")
    parser.add_argument("--query", type=int, default=0, metavar="N", help="the pair that asks (0)")
    parser.add_argument("--asks", choices=("image", "text"), default="image", help="its image or its text (image)")
    parser.add_argument("--query-image", metavar="FILE", help="retrieval: ask with this picture instead")
    parser.add_argument("--query-text", metavar="WORDS", help="retrieval: ask with these words instead")
    plane = "retrieval: draw the path on the PCA of the patterns, or on the Map's (stored)"
    parser.add_argument("--plane", choices=("stored", "map"), default="stored", help=plane)
    parser.add_argument("--beta", type=float, default=8.0, help="inverse temperature of the retrieval, .1 to 100 (8)")


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    write(args.workspace, args.runs, args.out, asked_of(args), args.panel, vectors=vectors_of(args))
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    asked: Asked,
    panel: str = "retrieval",
    *,
    vectors: dict[int, np.ndarray] | None = None,
) -> str:
    """Writes the panel; returns the command that does the same."""
    from trainer.charts.hopfield import hopfield
    from trainer.charts.panel_rows import HEADER, panel_rows
    from trainer.render_mpl import panel as figure
    from trainer.render_mpl.files import Rows, write_figure

    board = hopfield(workspace, runs, asked, panel, vectors=vectors, progress=tell)
    line = command_line("hopfield", runs, files, options(asked, panel))
    write_figure(
        files,
        figure=lambda: figure.draw(board),
        rows=lambda: Rows(HEADER, panel_rows(board, panel)),
        command=line,
        title=board.title,
    )
    return line


def options(asked: Asked, panel: str) -> dict[str, Any]:
    """The arguments that ask the same."""
    return {
        "step": asked.step,
        **words_of_b(asked.step_b),
        "dataset": asked.dataset,
        "split": asked.split,
        "panel": panel,
        "stored": asked.stored,
        "only": asked.only or None,
        "pairs": list(asked.pairs) or None,
        "query": asked.query,
        "asks": asked.asks,
        "plane": asked.plane if panel == "retrieval" else None,
        "beta": f"{asked.beta:g}",
    }


def asked_of(args: argparse.Namespace) -> Asked:
    """What the arguments ask."""
    from trainer.charts.hopfield import Asked

    return Asked(
        step=args.step,
        step_b=args.step_b,
        dataset=args.dataset,
        split=args.split,
        stored=args.stored,
        only=args.only,
        pairs=tuple(args.pairs),
        query=args.query,
        asks=args.asks,
        beta=args.beta,
        plane=args.plane,
        words=args.query_text or (Path(args.query_image).name if args.query_image else ""),
    )


def vectors_of(args: argparse.Namespace) -> dict[int, np.ndarray]:
    """The embeddings of the picture or the words that ask, by the place of each run; empty where a pair asks."""
    if not (args.query_image or args.query_text):
        return {}
    from trainer.charts.snapshots import sides
    from trainer.errors import Problem
    from trainer.inference.embed import embed_files, embed_sentences
    from trainer.inference.model_cache import OpenModels

    models, found = OpenModels(args.workspace), {}
    for place, (ref, step) in enumerate(sides(args.runs, args.step, args.step_b)):
        opened = models.get(args.workspace.runs.get(ref).id, step).opened
        if args.query_text:
            found[place] = embed_sentences(opened, [args.query_text], tell)[0]
            continue
        embedded = embed_files(opened, [args.query_image], tell)
        if not embedded.images:
            raise Problem(f"{args.query_image} cannot be read: {next(iter(embedded.unreadable.values()))}")
        found[place] = embedded.vectors[0]
    return found
