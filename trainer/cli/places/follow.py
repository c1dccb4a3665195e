"""`trainer places follow`: mirrors a run that trains elsewhere."""

from __future__ import annotations

import argparse
import json
import sys

HELP = "mirror a run that trains at a place, until it has ended; a window does so by itself"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run."""
    parser.add_argument("run", metavar="RUN", help="number, name or folder of the run here")


def run(args: argparse.Namespace) -> int:
    """Follow the run."""
    from trainer.places.follow import train_there

    args.workspace.check_there()
    row = args.workspace.runs.get(args.run)
    train_there(args.workspace, row.id, start=False, say=lambda words: print(words, file=sys.stderr, flush=True))
    row = args.workspace.runs.get(row.id)
    answer = {"id": row.id, "name": row.name, "status": row.status, "step": row.step}
    text = f"Run {row.id} ({row.name}): {row.status} at step {row.step} of {row.total_steps}."
    print(json.dumps(answer) if args.json else text)
    return 0
