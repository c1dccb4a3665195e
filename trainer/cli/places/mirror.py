"""`trainer places mirror`: a workspace of another computer, to be looked at here."""

from __future__ import annotations

import argparse
import json
from typing import Any

from trainer.untrusted.terminal import say, say_json

HELP = "mirror a workspace of another computer, look only; explorer --workspace ssh://host/path does, too"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the address, and how long it is kept up to date."""
    parser.add_argument("address", metavar="ADDRESS", help="ssh://host/path of the workspace there")
    parser.add_argument("--once", action="store_true", help="bring what is there, and end")
    parser.add_argument(
        "--all",
        action="store_true",
        help="embeddings and checkpoints of all runs; without, of those asked for",
    )
    parser.add_argument("--while-pid", type=int, default=0, metavar="PID", help="end with the process of this number")


def run(args: argparse.Namespace) -> int:
    """Mirror until all that was asked for is here, or until somebody ends it."""
    from trainer.places.workspace_mirror import WorkspaceMirror, keep
    from trainer.store.process_lock import identity

    mirror = WorkspaceMirror(args.address, lambda sentence: say(sentence, error=True))
    if not args.once:
        keep(mirror, lambda: bool(args.while_pid) and identity(args.while_pid) is None)
        return 0
    is_complete = mirror.step()
    for row in mirror.workspace.runs.all() if args.all else ():
        mirror.ask(row.id)
        is_complete = False
    while not is_complete and not mirror.trouble:
        is_complete = mirror.step()
    rows = mirror.workspace.runs.all()
    answer: dict[str, Any] = {"folder": str(mirror.workspace.folder), "runs": len(rows), "trouble": mirror.trouble}
    mirror.close()
    trouble = f" It is {mirror.trouble}." if mirror.trouble else ""
    text = f"{len(rows)} runs in {answer['folder']}, look only.{trouble}"
    say_json(json.dumps(answer)) if args.json else say(text)
    return 0
