"""`trainer search`: the images or texts nearest to a sentence or a picture, by each run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.cli.export import add_run_arguments, add_step_b, add_view_arguments, view_of
from trainer.errors import UserError

if TYPE_CHECKING:
    from trainer.charts.search import Hits
    from trainer.store import Workspace

GROUP = "Look"
HELP = "search a snapshot with a sentence or a picture: the nearest images or texts of each run"


class SearchProblem(UserError):
    """There is nothing to ask, or the question cannot be read."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The question, the runs and what is searched."""
    add_question_arguments(parser)


def add_question_arguments(parser: argparse.ArgumentParser) -> None:
    """What both `trainer search` and `trainer export search` take."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", metavar="TEXT", help="a sentence")
    what.add_argument("--image", type=Path, metavar="FILE", help="an image file")
    add_run_arguments(parser)
    add_view_arguments(parser)
    add_step_b(parser)
    parser.add_argument("--target", choices=("image", "text"), default="image", help="what is searched (image)")
    parser.add_argument("--k", type=int, default=50, help="hits of each run (50)")
    parser.add_argument("--csls", action="store_true", help="take hubs down: order by CSLS instead of the cosine")


def run(args: argparse.Namespace) -> int:
    """Prints the hits of each run, best first."""
    from trainer.render_mpl.files import json_text
    from trainer.render_mpl.search import rows

    question, charts = collect(args.workspace, args)
    table = rows(charts, question)
    lines = [dict(zip(table.header, line)) for line in table.rows]
    if args.json:
        print(json_text({"question": question, "hits": lines}))
        return 0
    for chart in charts:
        print(f"{chart.name}, step {chart.step:,}: first {len(chart.rows)} of {chart.n:,} {chart.target}s")
        for line in lines:
            if line["run"] == chart.run:
                print(
                    f"{line['place']:>4}  {line['cosine']:>7.4f}  {line['row']:>8}  {line['caption'] or line['path']}"
                )
    return 0


def collect(workspace: Workspace, args: argparse.Namespace) -> tuple[str, list[Hits]]:
    """The question in words, and the hits of every run; embeds the question with each run's own model.

    Raises:
        SearchProblem: No run is named, or the picture cannot be read.
    """
    from trainer.charts.search import search
    from trainer.charts.snapshots import choose_snapshot, embedder_of, sides
    from trainer.inference.embed import embed_files, embed_sentences
    from trainer.inference.model_cache import OpenModels

    if not args.runs:
        raise SearchProblem("Name the runs to search: --runs 1 2. trainer runs shows them.")
    models, charts = OpenModels(workspace), []
    for ref, step in sides(args.runs, args.step, args.step_b):
        row, view = workspace.runs.get(ref), vars(view_of(args)) | {"step": step}
        by = embedder_of(workspace, choose_snapshot(workspace, row, **view))
        if by.note:
            print(f"{row.name}: {by.note}", file=sys.stderr)
        opened = models.get(row.id, by.step).opened
        if args.text:
            vector = embed_sentences(opened, [args.text])[0]
        else:
            embedded = embed_files(opened, [str(args.image)])
            if not len(embedded.vectors):
                raise SearchProblem(f"{args.image}: {next(iter(embedded.unreadable.values()))}")
            vector = embedded.vectors[0]
        options = {**view, "target": args.target, "k": args.k, "csls": args.csls}
        charts.append(search(workspace, row.id, vector, **options))
    return args.text or args.image.name, charts
