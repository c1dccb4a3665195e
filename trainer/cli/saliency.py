"""`trainer saliency`: computes the image regions that each run associates with a caption."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.analysis.number_text import signed
from trainer.cli.export import add_out_argument, add_step_argument, step_words
from trainer.untrusted import shell
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.charts.saliency import SaliencyChart
    from trainer.messages import Saliency
    from trainer.store import Workspace

GROUP = "Look"
HELP = "compute which regions of an image support a caption in each run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add runs, image, caption, the options of the question, and output."""
    from trainer.charts.settings import add_options
    from trainer.messages import Saliency

    parser.add_argument("runs", nargs="+", metavar="RUN", help="numbers, names or folders; A first")
    parser.add_argument("--image", required=True, type=Path, metavar="FILE", help="image file")
    parser.add_argument("--caption", required=True, metavar="TEXT", help="the caption to locate")
    add_options(parser, Saliency)
    add_step_argument(parser, "checkpoints")
    add_out_argument(parser, ".svg, .pdf, .png or .csv")


def run(args: argparse.Namespace) -> int:
    """Print the cosines and the agreement of the runs; write files if requested."""
    from trainer.charts.saliency import panel, request_words
    from trainer.charts.settings import from_options
    from trainer.charts.snapshot_label import document_with_full_names
    from trainer.charts.spec import targets_of
    from trainer.messages import Saliency
    from trainer.render_mpl.files import check_suffixes, json_text
    from trainer.render_mpl.panel import write_panel

    check_suffixes(args.out)
    targets = targets_of(args.runs, args.step)
    rows = [args.workspace.runs.get(target.run) for target in targets]
    question = from_options(
        Saliency,
        args,
        runs=tuple(row.id for row in rows),
        image=str(args.image.absolute()),
        caption=args.caption,
        steps=tuple(target.step for target in targets),
    )
    chart = dataclasses.replace(collect(args.workspace, question), path=str(args.image))
    if args.out:
        options = request_words(dataclasses.replace(question, image=str(args.image)))
        arguments = ["trainer", "saliency", *map(str, args.runs), *options, *step_words(args.step)]
        arguments += ["--out", *(file.name for file in args.out)]
        write_panel(args.out, panel(chart), "saliency", shell.join(arguments))
    values = document_with_full_names(args.workspace, document(chart))
    say_json(json_text(values, indent=1)) if args.json else say(as_text(chart))
    return 0


def collect(workspace: Workspace, question: Saliency) -> SaliencyChart:
    """Return the map of each run.

    Raises:
        UserError: An unknown run, no checkpoint, an image that cannot be read, or a run without texts.
    """
    from trainer.charts.saliency import SaliencyChart, SaliencyRun
    from trainer.cli._progress import report
    from trainer.inference.model_cache import ModelCache
    from trainer.inference.saliency import saliency_of

    computed = saliency_of(ModelCache(workspace, keep=1), question, report)
    maps = [
        SaliencyRun(
            index=index,
            run=row.id,
            name=row.short_name,
            objective=row.objective,
            step=computed.steps[index],
            cells=computed.maps[index],
            cosine=computed.cosines[index],
        )
        for index, row in enumerate(map(workspace.runs.get, question.runs))
    ]
    return SaliencyChart(question.image, computed.image, question.caption, question.method, tuple(maps))


def document(chart: SaliencyChart) -> dict[str, Any]:
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
            f"{run.cells.shape[0]} ({signed(run.cells.flat[cell], 4)})"
        )
    if chart.agreement is not None:
        lines.append(f"correlation of the maps {chart.agreement:.3f}")
    return "\n".join(lines)
