"""`trainer remote`: answers for the runs that another computer has sent here."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.store import Workspace

GROUP = "Inside"
HELP = "answer the computer that has sent runs here: JSON lines in, JSON lines and bytes out"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a single question in place of standard input."""
    parser.add_argument("--once", metavar="QUESTION", help="answer this question alone, given as base64 of JSON")


def run(args: argparse.Namespace) -> int:
    """Answer until standard input closes."""
    from trainer.places.channel import serve, unpacked
    from trainer.places.remote_end import RemoteEnd

    end = RemoteEnd(args.workspace)
    if args.once:
        question = unpacked(args.once)
        if question.get("what") == "fit":
            return _fit(args.workspace, Path(str(question["config"])), str(question["job"]))
        head, content = end.answer(question)
        print(head, content.decode("utf-8", "replace")[:1_000])
        return 0
    sink = sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else may be written there
    try:
        serve(end.answer, sys.stdin.buffer, sink)
    except BrokenPipeError:
        return 0
    return 0


def _fit(workspace: Workspace, wanted: Path, job: str) -> int:
    """Train the only run of a workspace, made of a configuration at the first time, and report its row next to it."""
    from trainer import config
    from trainer.cli.fit import train
    from trainer.places.shared_folder import StatePublisher

    if workspace.look_only:
        workspace.adopt()  # another node of the cluster made it, for the same user
    run = next((row.id for row in workspace.runs.all()), None) or workspace.runs.create(config.read(wanted))
    with StatePublisher(workspace, run, job):
        train(workspace, run)
    return 0
