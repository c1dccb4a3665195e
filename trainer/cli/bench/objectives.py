"""`trainer bench objectives`: what every objective learns from the same number of pairs of Scenes."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from dataclasses import asdict

HELP = "train every objective on Scenes for the same number of pairs, over seeds, and print what each learned"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which objectives, how often and how long."""
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], metavar="N", help="default: 0 1 2")
    parser.add_argument("--objectives", nargs="+", metavar="KIND", help="clip, cloob, simclr, ... (default: all)")
    parser.add_argument("--epochs", type=int, default=2, help="how often each pair is seen (default: 2)")
    parser.add_argument("--table", action="store_true", help="train nothing: only print what is there")


def run(args: argparse.Namespace) -> int:
    """Trains what is missing, so a second call goes on where the first ended; prints the table as Markdown."""
    from trainer.bench.objectives import kinds, markdown, planned, results, train

    objectives = args.objectives or kinds()
    for kind in objectives:
        planned(kind, 0)
    if not args.table:
        # What the trainings say goes to standard error, so that standard output is the numbers and nothing else.
        with contextlib.redirect_stdout(sys.stderr):
            for row in train(args.workspace, objectives, args.seeds, epochs=args.epochs):
                print(f"{row.name}: {row.status}, {row.metric} {row.last}", flush=True)
    rows = results(args.workspace, objectives, args.seeds, epochs=args.epochs)
    print(json.dumps([asdict(row) for row in rows], indent=2) if args.json else markdown(rows, epochs=args.epochs))
    return 0
