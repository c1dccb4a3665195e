"""`trainer independent`: embeds pairs with independent attributes for runs on Scenes."""

from __future__ import annotations

import argparse

from trainer.cli._progress import report
from trainer.untrusted.terminal import say, say_json

GROUP = "Look"
HELP = "embed Scenes with independent attributes, to compare runs trained with and without co-occurrence"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs and their step."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="number, name or folder")
    parser.add_argument("--step", type=int, metavar="N", help="step of the checkpoints (last)")


def run(args: argparse.Namespace) -> int:
    """Write the snapshots and print their folders."""
    from trainer.evaluation.independent import embed_independent
    from trainer.inference.model_cache import ModelCache
    from trainer.render_mpl.files import json_text

    rows = embed_independent(ModelCache(args.workspace), args.runs, [args.step] * len(args.runs), report)
    if args.json:
        say_json(json_text([{"run": row.run, "step": row.step, "n": row.n, "folder": str(row.folder)} for row in rows]))
        return 0
    for row in rows:
        say(f"{args.workspace.runs.get(row.run).name}, step {row.step:,}: {row.n:,} pairs in {row.folder}")
    say("Probe them with: trainer export attribute-probes --independent --runs ... --out probes.pdf")
    return 0
