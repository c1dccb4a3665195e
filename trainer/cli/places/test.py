"""`trainer places test`: what a place has."""

from __future__ import annotations

import argparse
import json

from trainer.untrusted.terminal import say, say_json

HELP = "connect to a place, bring this version there and print its doctor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name."""
    parser.add_argument("name", metavar="NAME", help="of the place")


def run(args: argparse.Namespace) -> int:
    """Print the findings; return 1 if something there is broken."""
    from trainer.places.doctor import findings
    from trainer.untrusted.files import spelled

    rows = findings(args.name, args.workspace.folder)
    if args.json:
        say_json(json.dumps(rows, indent=1))
    else:
        for row in rows:
            sign = "!" if row.get("state") == "broken" else " "
            say(
                spelled(
                    f"{sign} {row.get('group')}: {row.get('name')}: {row.get('value')} {row.get('next', '')}"
                ).rstrip()
            )
    return 1 if any(row.get("state") == "broken" for row in rows) else 0
