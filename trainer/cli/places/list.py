"""`trainer places list`: the places of this user."""

from __future__ import annotations

import argparse
import json

from trainer.untrusted.terminal import say, say_json

HELP = "list the places"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing."""


def run(args: argparse.Namespace) -> int:
    """Print name and address of each."""
    from trainer.places.bindings import hosts

    listed = hosts()
    if args.json:
        say_json(json.dumps([{"name": host.name, "address": host.address} for host in listed], indent=1))
        return 0
    for host in listed:
        say(f"{host.name:<16} {host.address}")
    if not listed:
        say("There is no place yet. Add one: trainer places add NAME ssh://user@host")
    return 0
