"""`trainer export words`: what each word of a caption is worth to the runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
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
    view_of,
    words_of_b,
)

if TYPE_CHECKING:
    import numpy as np

    from trainer.inference.open_model import OpenModel
    from trainer.store import Workspace

HELP = "what each word of a caption is worth to the runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, which of their embeddings, the pair and perhaps other words for it."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    add_step_b(parser)
    parser.add_argument("--pair", type=int, default=0, help="row of the pair in the snapshot (0)")
    parser.add_argument("--caption", help="words to try in place of the pair's own")
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    chosen = {"pair": args.pair, "caption": args.caption, **step_of_b(args)}
    write(args.workspace, args.runs, args.out, view=view_of(args), **chosen)
    print_files(args)
    return 0


def write(
    workspace: Workspace,
    runs: Sequence[int | str],
    files: Sequence[Path],
    *,
    view: SnapshotChoice,
    pair: int = 0,
    caption: str | None = None,
    step_b: int | None = SAME,
) -> str:
    """Writes the drops; returns the command that does the same."""
    from trainer.charts.words import words as collect
    from trainer.render_mpl import words as figure
    from trainer.render_mpl.files import write_figure

    chosen = {**vars(view), "pair": pair, "caption": caption}
    chart = collect(workspace, runs, embedder(workspace), **chosen, step_b=step_b)
    line = command_line("words", runs, files, {**chosen, **words_of_b(step_b)})
    title = "What each word is worth"
    write_figure(files, figure=lambda: figure.draw(chart), rows=lambda: figure.rows(chart), command=line, title=title)
    return line


def embedder(workspace: Workspace) -> Callable[[int, int, Sequence[str]], np.ndarray]:
    """Embeds sentences with a run's model at a step, opened once each."""
    from trainer.inference.embed import embed_sentences
    from trainer.inference.open_model import open_run

    opened: dict[tuple[int, int], OpenModel] = {}

    def embed(run: int, step: int, texts: Sequence[str]) -> np.ndarray:
        if (run, step) not in opened:
            opened[run, step] = open_run(workspace, run, step)
        return embed_sentences(opened[run, step], tuple(texts))

    return embed
