"""`trainer saliency`: computes the image regions that each run associates with a caption."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.cli.export import add_step_argument, step_words
from trainer.untrusted import shell
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.charts.saliency import SaliencyChart
    from trainer.store import Workspace

GROUP = "Look"
HELP = "compute which regions of an image support a caption in each run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add runs, image, caption, method and output."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="numbers, names or folders; A first")
    parser.add_argument("--image", required=True, type=Path, metavar="FILE", help="image file")
    parser.add_argument("--caption", required=True, metavar="TEXT", help="the caption to locate")
    parser.add_argument("--method", choices=("occlusion", "gradient"), default="occlusion", help="how (occlusion)")
    parser.add_argument("--grid", type=int, default=12, metavar="N", help="cells a side (12)")
    add_step_argument(parser, "checkpoints")
    parser.add_argument(
        "--out", nargs="+", action="extend", type=Path, default=[], metavar="FILE", help=".svg, .pdf, .png or .csv"
    )


def run(args: argparse.Namespace) -> int:
    """Print the cosines and the agreement of the runs; write files if requested."""
    from trainer.charts.spec import targets_of
    from trainer.render_mpl import saliency as figure
    from trainer.render_mpl.files import check_suffixes, json_text, write_figure

    check_suffixes(args.out)
    targets = targets_of(args.runs, args.step)
    runs, steps = [target.run for target in targets], [target.step for target in targets]
    chart = collect(args.workspace, runs, args.image, args.caption, method=args.method, grid=args.grid, steps=steps)
    if args.out:
        arguments = ["trainer", "saliency", *map(str, args.runs), "--image", str(args.image), "--caption", args.caption]
        arguments += [*step_words(args.step), "--method", args.method, "--grid", str(args.grid)]
        arguments += ["--out", *(file.name for file in args.out)]
        write_figure(
            args.out,
            figure=lambda: figure.draw(chart),
            rows=lambda: figure.rows(chart),
            command=shell.join(arguments),
            title="Saliency",
        )
    say_json(json_text(document(chart), indent=1)) if args.json else say(as_text(chart))
    return 0


def collect(
    workspace: Workspace,
    runs: Sequence[int | str],
    image: Path,
    caption: str,
    *,
    method: str = "occlusion",
    grid: int = 12,
    steps: Sequence[int | None] = (),
) -> SaliencyChart:
    """Return the maps of `runs`, each at its own of the `steps` (default: its last).

    Raises:
        UserError: An unknown run, no checkpoint, an image that cannot be read, or a run without texts.
    """
    from trainer.charts.saliency import SaliencyChart, SaliencyRun
    from trainer.cli.export import report
    from trainer.inference.model_cache import ModelCache
    from trainer.inference.saliency import saliency_of

    rows = [workspace.runs.get(run) for run in runs]
    computed = saliency_of(
        ModelCache(workspace, keep=1),
        runs=[row.id for row in rows],
        image=str(image.absolute()),
        caption=caption,
        method=method,
        grid=grid,
        steps=steps,
        progress=report,
    )
    maps = [
        SaliencyRun(
            index=index,
            run=row.id,
            name=row.name,
            objective=row.objective,
            step=computed.steps[index],
            cells=computed.maps[index],
            cosine=computed.cosines[index],
        )
        for index, row in enumerate(rows)
    ]
    return SaliencyChart(str(image), computed.image, caption, method, tuple(maps))


def document(chart: SaliencyChart) -> dict[str, object]:
    """Return the output of `--json`."""
    runs = [
        {"run": run.run, "name": run.name, "step": run.step, "cosine": run.cosine, "cells": run.cells.tolist()}
        for run in chart.runs
    ]
    about = {"image": chart.path, "caption": chart.caption, "method": chart.method}
    return {**about, "runs": runs, "agreement": chart.agreement}


def as_text(chart: SaliencyChart) -> str:
    """Format cosine and most important cell of each run, for a terminal."""
    lines = []
    for run in chart.runs:
        cell = int(run.cells.argmax())
        row, column = divmod(cell, run.cells.shape[1])
        lines.append(
            f"{run.name}: cosine {run.cosine:.4f}; most of it in row {row + 1}, column {column + 1} of "
            f"{run.cells.shape[0]} ({run.cells.flat[cell]:+.4f})"
        )
    if chart.agreement is not None:
        lines.append(f"correlation of the maps {chart.agreement:.3f}")
    return "\n".join(lines)
