"""`trainer places follow`: mirrors a run that trains elsewhere."""

from __future__ import annotations

import argparse
import json

from trainer.untrusted.terminal import say, say_json

HELP = "mirror a run that trains at a place, until it has ended; a window does so by itself"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run."""
    parser.add_argument("run", metavar="RUN", help="number, name or folder of the run here")


def run(args: argparse.Namespace) -> int:
    """Follow the run."""
    from trainer.places.follower import train_there

    args.workspace.check_there()
    row = args.workspace.runs.get(args.run)
    train_there(args.workspace, row.id, start=False, say=lambda line: say(line, error=True))
    row = args.workspace.runs.get(row.id)
    answer = {"id": row.id, "name": row.name, "status": row.status, "step": row.step}
    text = f"Run {row.id} ({row.name}): {row.status} at step {row.step} of {row.total_steps}."
    say_json(json.dumps(answer)) if args.json else say(text)
    return 0
