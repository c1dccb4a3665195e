"""`trainer resume`: resumes a run that ended early, in the background."""

from __future__ import annotations

import argparse
import json

from trainer.untrusted.terminal import say, say_json

GROUP = "Train"
HELP = "continue a stopped, failed or interrupted run, or branch from a kept checkpoint of any run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run and where to train it."""
    parser.add_argument("run", metavar="RUN", help="number, name or folder")
    parser.add_argument("--step", type=int, metavar="N", help="branch: a new run continues from this kept checkpoint")
    parser.add_argument("--as", dest="name", metavar="NAME", help="name of the branch")
    parser.add_argument("--ranks", type=int, metavar="N", help="continue with N processes that share every batch")
    parser.add_argument(
        "--log", nargs="+", default=[], metavar="TRACKER", help="log to tensorboard, wandb or mlflow too"
    )
    parser.add_argument("--foreground", action="store_true", help="train in the foreground")
    parser.add_argument("--max-restarts", type=int, default=0, metavar="N", help="with --foreground: as of trainer fit")


def run(args: argparse.Namespace) -> int:
    """Resume the run."""
    from trainer.cli._progress import say_started
    from trainer.scheduling import launch

    workspace = args.workspace
    if args.max_restarts < 0 or (args.max_restarts and not args.foreground):
        raise launch.LaunchError(
            "--max-restarts N, 0 or more, is for a training that this command waits for: add --foreground."
        )
    if args.log:
        from trainer.trackers.live import want

        want(args.log)
    workspace.check_there()
    workspace.reconcile()
    row = workspace.runs.get(args.run)
    if args.step is not None:
        from trainer.store.branch import branch

        row = workspace.runs.get(branch(workspace, row.id, args.step, args.name or f"{row.name} from step {args.step}"))
    elif args.name is not None:
        raise launch.LaunchError("--as names a branch: say from which checkpoint with --step N.")
    if row.deleted_at is not None:
        raise launch.LaunchError(f"Run {row.id} ({row.name}) was deleted: trainer runs restore {row.id} first.")
    if row.status == "finished":
        raise launch.LaunchError(
            f"Run {row.id} ({row.name}) is finished; branch off an earlier checkpoint (--step N), or duplicate it."
        )
    if workspace.is_alive(row.id):
        raise launch.LaunchError(f"Run {row.id} ({row.name}) is being trained already (pid {row.pid}).")
    launch.check_trainable(workspace, row)
    if args.ranks is not None:
        workspace.runs.set_ranks(row.id, args.ranks)
    if not args.foreground:
        return say_started(args, row.id, launch.start_detached(workspace, row.id), "continues as")
    from trainer.cli.fit import train

    train(workspace, row.id, quiet=args.json, max_restarts=args.max_restarts)
    now = workspace.runs.get(row.id)
    answer = {"id": row.id, "name": row.name, "status": now.status, "step": now.step}
    text = f"Run {row.id} ({row.name}): {now.status} at step {now.step}."
    say_json(json.dumps(answer)) if args.json else say(text)
    return 0
