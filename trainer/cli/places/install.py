"""`trainer places install`: brings what training needs to a place."""

from __future__ import annotations

import argparse
import json

from trainer.untrusted.terminal import say, say_json

HELP = "install training at a place by ssh or SLURM: by uv, into a folder there, with the card's build of torch"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the place, the build of torch and the folder."""
    from trainer.places.remote_host import INSTALL_FOLDER

    parser.add_argument("name", metavar="NAME", help="of the place")
    parser.add_argument("--build", default="auto", help="of torch: auto, cpu, cu128, rocm6.4, ... or index (auto)")
    parser.add_argument("--folder", default=INSTALL_FOLDER, metavar="DIR", help=f"there ({INSTALL_FOLDER})")


def run(args: argparse.Namespace) -> int:
    """Install, with progress on standard error; the place uses that Python from now on."""
    from trainer.cli._progress import report
    from trainer.places.bindings import host_of
    from trainer.places.packages import install

    host = install(host_of(args.name), report, folder=args.folder, build=args.build)
    text = f"{host.name} can train with {host.python}. See it: trainer places test {host.name}"
    say_json(json.dumps({"name": host.name, "address": host.address})) if args.json else say(text)
    return 0
