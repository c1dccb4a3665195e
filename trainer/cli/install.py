"""`trainer install`: brings torch and what else training needs, with the build that fits this computer."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.distribution import training_install

GROUP = "Maintain"
HELP = "install torch and what else training needs, with the build that fits this computer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the build, a folder of wheels, and the question what would be done."""
    from trainer.distribution.training_install import BACKENDS

    choices = "; ".join(f"{name}: {text}" for name, text in BACKENDS.items())
    parser.add_argument("--backend", choices=tuple(BACKENDS), default="auto", help=choices)
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="take everything from this folder, offline")
    parser.add_argument("--plan", action="store_true", help="only print what would be installed, where, and its size")


def run(args: argparse.Namespace) -> int:
    """Install, with progress on standard error, or print the plan."""
    from trainer.distribution import training_install, training_part

    if args.plan:
        plan = training_install.plan(args.backend)
        say_json(json.dumps(dataclasses.asdict(plan))) if args.json else say(_words(plan))
        return 0
    if training_part.is_there():
        say_json(json.dumps({"installed": True})) if args.json else say("Torch is installed; nothing was changed.")
        return 0
    plan = training_install.install(_report, backend=args.backend, wheels=args.wheels)
    answer = {"installed": True, "folder": plan.folder, "backend": plan.backend}
    say_json(json.dumps(answer)) if args.json else say(f"Torch is installed in {plan.folder}. See it: trainer doctor")
    return 0


def _words(plan: training_install.Plan) -> str:
    return (
        f"{plan.why} About {plan.download_gb:.1f} GB are downloaded, and {plan.disk_gb:.1f} GB of disk are used "
        f"in {plan.folder}, where {plan.free_gb:.1f} GB are free.\nPackages: {', '.join(plan.packages)}"
    )


def _report(share: float, note: str) -> None:
    """Print one line per step to stderr, for the person and the window."""
    say(f"{100 * share:3.0f} % {note}", error=True)
