"""`trainer search`: finds the images or texts nearest to a sentence or an image in each run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.cli.export import add_run_arguments, add_snapshot_arguments, request_of
from trainer.errors import UserError
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.charts.search import Hits
    from trainer.store import Workspace

GROUP = "Look"
HELP = "search a snapshot with a sentence or an image: the nearest images or texts of each run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the query, the runs and what is searched."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", metavar="TEXT", help="a sentence")
    what.add_argument("--image", type=Path, metavar="FILE", help="an image file")
    add_run_arguments(parser)
    add_snapshot_arguments(parser)
    parser.add_argument("--target", choices=("image", "text"), default="image", help="what is searched (image)")
    parser.add_argument("--k", type=int, default=50, help="hits of each run (50)")
    parser.add_argument("--csls", action="store_true", help="reduce hubness: order by CSLS instead of the cosine")


def run(args: argparse.Namespace) -> int:
    """Print the hits of each run, best first."""
    from trainer.charts.search import HEADER, hit_rows
    from trainer.render_mpl.files import json_text

    question, charts = collect(args.workspace, args)
    lines = [dict(zip(HEADER, line)) for chart in charts for line in hit_rows(chart, question)]
    if args.json:
        say_json(json_text({"question": question, "hits": lines}))
        return 0
    for chart in charts:
        say(f"{chart.name}, step {chart.step:,}: first {len(chart.rows)} of {chart.n:,} {chart.target}s")
        for line in lines:
            if line["run"] == chart.run:
                say(f"{line['place']:>4}  {line['cosine']:>7.4f}  {line['row']:>8}  {line['caption'] or line['path']}")
    return 0


def collect(workspace: Workspace, args: argparse.Namespace) -> tuple[str, list[Hits]]:
    """Return the query as text, and every run's hits, embedding the query with each run's own model.

    Raises:
        UserError: No run is named, or the picture cannot be read.
    """
    from trainer.charts.opened_snapshot import open_target
    from trainer.charts.search import search
    from trainer.charts.snapshots import embedder_of
    from trainer.inference.embed import embed_files, embed_sentences
    from trainer.inference.model_cache import ModelCache

    if not args.runs:
        raise UserError("Name the runs to search: --runs 1 2. trainer runs shows them.")
    models, charts = ModelCache(workspace), []
    request = request_of(args)
    for target in request.targets:
        searched = open_target(workspace, target, request)
        row, by = searched.run, embedder_of(workspace, searched.row)
        if by.note:
            say(f"{row.short_name}: {by.note}", error=True)
        opened = models.get(row.id, by.step).opened
        if args.text:
            vector = embed_sentences(opened, [args.text])[0]
        else:
            embedded = embed_files(opened, [str(args.image)])
            if not len(embedded.vectors):
                raise UserError(f"{args.image}: {next(iter(embedded.unreadable.values()))}")
            vector = embedded.vectors[0]
        charts.append(search(searched, vector, target=args.target, k=args.k, csls=args.csls))
    return args.text or args.image.name, charts
