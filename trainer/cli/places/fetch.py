"""`trainer places fetch`: brings a checkpoint of a run that trains elsewhere."""

from __future__ import annotations

import argparse
import json

from trainer.untrusted.terminal import say, say_json

HELP = "bring a checkpoint of a run that trains at a place; the best one comes by itself"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add run and step."""
    parser.add_argument("run", metavar="RUN", help="number, name or folder of the run here")
    parser.add_argument("--step", type=int, required=True, metavar="N", help="of the checkpoint")


def run(args: argparse.Namespace) -> int:
    """Bring the checkpoint."""
    from trainer.places.follower import fetch_checkpoint

    row = args.workspace.runs.get(args.run)
    fetch_checkpoint(args.workspace, row.id, args.step, say=lambda text: say(text, error=True))
    answer = {"id": row.id, "step": args.step}
    say_json(json.dumps(answer)) if args.json else say(f"The checkpoint of step {args.step} of run {row.id} is here.")
    return 0
