"""`trainer places add`: names a place."""

from __future__ import annotations

import argparse
import json

from trainer.untrusted.terminal import say, say_json

HELP = "name a place, or change one: ssh://user@host[:port][/python], slurm://user@host, ray://host:8265?storage=DIR"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name and the address."""
    parser.add_argument("name", metavar="NAME", help="as runs, forms and commands call it")
    parser.add_argument(
        "address",
        metavar="ADDRESS",
        help="with the path of the Python that has torch; ?workspace=~/runs is the folder there, "
        "?partition=gpu&gpus=1&time=8:00:00 are words for SLURM, ?storage=/shared a folder that Ray's nodes see, "
        "too (or s3://bucket/folder, gs://bucket/folder)",
    )
    parser.add_argument(
        "--prologue",
        action="append",
        default=[],
        metavar="LINE",
        help="of bash, before every command there: 'module load cuda', 'conda activate clip'; repeatable",
    )
    parser.add_argument("--container", default="", metavar="IMAGE", help="of apptainer, in which jobs of SLURM train")


def run(args: argparse.Namespace) -> int:
    """Add the place; nothing is connected."""
    from trainer.places import bindings
    from trainer.places.remote_host import parse

    host = parse(args.name, args.address)
    lines = {"prologue": "\n".join(args.prologue), "container": args.container}
    if any(lines.values()):
        host = host.changed(**{name: value for name, value in lines.items() if value})
    bindings.add(host)
    text = f"{host.name} is {host.address}. Try it: trainer places test {host.name}"
    say_json(json.dumps({"name": host.name, "address": host.address})) if args.json else say(text)
    return 0
