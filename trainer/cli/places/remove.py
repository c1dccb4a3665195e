"""`trainer places remove`: forgets a place."""

from __future__ import annotations

import argparse
import json

from trainer.untrusted.terminal import say, say_json

HELP = "remove a place; runs that train there continue"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name."""
    parser.add_argument("name", metavar="NAME", help="of the place")


def run(args: argparse.Namespace) -> int:
    """Remove the place."""
    from trainer.places.bindings import remove

    remove(args.name)
    say_json(json.dumps({"removed": args.name})) if args.json else say(f"{args.name} is not a place any more.")
    return 0
