"""`trainer stop`: asks trainers to stop and waits until they have."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.store.process_lock import Identity

GROUP = "Train"
HELP = "stop runs after the current step or epoch, with a checkpoint"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs and the timeout."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="number, name or folder")
    parser.add_argument("--after", choices=("step", "epoch"), default="step", help="when to stop (default: step)")
    parser.add_argument("--kill", action="store_true", help="end immediately; work since the last checkpoint is lost")
    text = "seconds to wait (default: 60, or 10 with --force, which takes at most 15 more for each run)"
    parser.add_argument("--timeout", type=float, metavar="S", help=text)
    parser.add_argument("--force", action="store_true", help="end a trainer that does not stop in time")


def run(args: argparse.Namespace) -> int:
    """Ask all to stop, then wait for each; return 1 if one is still running."""
    import time

    from trainer.scheduling import launch
    from trainer.store import StoreError

    workspace = args.workspace
    try:
        workspace.reconcile()
        rows = [workspace.runs.get(ref) for ref in args.runs]
    except StoreError as error:
        if not (trainers := launch.trainers_by_folder(workspace, args.runs)):
            raise
        say(f"{error} What is trained is told by its lock.", error=True)
        return _stop_by_lock(trainers, args)
    for row in rows:
        if row.active:
            launch.stop(workspace, row.id, after=args.after)
        if args.kill and launch.trainer_of(workspace, row.id) is not None:
            launch.kill(workspace, row.id)
    timeout_s = args.timeout if args.timeout is not None else 10.0 if args.force else 60.0
    deadline = time.monotonic() + timeout_s
    answers = []
    for row in rows:
        stopped = launch.wait_until_ended(workspace, row.id, timeout_s=max(deadline - time.monotonic(), 0.0))
        if not stopped and args.force:
            stopped = launch.end(workspace, row.id)
        now = workspace.runs.get(row.id)
        answers.append({"id": now.id, "name": now.name, "status": now.status, "step": now.step, "ended": stopped})
        if not args.json:
            text = f"Run {now.id} ({now.name}): {now.status} at step {now.step}."
            hint = "" if stopped else " It has not stopped yet; wait longer (--timeout) or end it (--force)."
            say(text + hint, error=not stopped)
    if args.json:
        say_json(json.dumps(answers, indent=1))
    return 0 if all(answer["ended"] for answer in answers) else 1


def _stop_by_lock(trainers: dict[Path, Identity], args: argparse.Namespace) -> int:
    """Stop trainers whose rows cannot be read: each saves a checkpoint, as on every signal to end."""
    from trainer.scheduling import launch

    timeout_s = args.timeout if args.timeout is not None else 10.0 if args.force else 60.0
    ended = launch.stop_by_lock(trainers, timeout_s=timeout_s, kill=args.kill, force=args.force)
    answers = [{"folder": str(folder), "pid": trainers[folder].pid, "ended": end} for folder, end in ended.items()]
    if args.json:
        say_json(json.dumps(answers, indent=1))
    else:
        for outcome in answers:
            text = (
                "has ended" if outcome["ended"] else "has not stopped yet; wait longer (--timeout) or end it (--force)"
            )
            say(f"{outcome['folder']}: its trainer (process {outcome['pid']}) {text}.", error=not outcome["ended"])
    return 0 if all(ended.values()) else 1
