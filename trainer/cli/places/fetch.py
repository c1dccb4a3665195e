"""`trainer places fetch`: brings a checkpoint of a run that trains elsewhere, or what a mirror has of a run."""

from __future__ import annotations

import argparse
import json

from trainer.untrusted.terminal import say, say_json

HELP = "bring a checkpoint of a run that trains at a place, or embeddings and checkpoint of a run of a mirror"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add run and step."""
    parser.add_argument("run", metavar="RUN", help="number, name or folder of the run here")
    parser.add_argument(
        "--step",
        type=int,
        metavar="N",
        help="of the checkpoint (in a mirror: the best one and, after its end, the last)",
    )


def run(args: argparse.Namespace) -> int:
    """Bring the checkpoint."""
    from trainer.places.follower import fetch_checkpoint
    from trainer.places.remote_host import PlaceError
    from trainer.store import on_demand

    row = args.workspace.runs.get(args.run)
    if on_demand.ask(row.folder, "snapshots"):
        _fetch_to_mirror(on_demand.source(args.workspace.folder)[0], row.id, args.step)
    elif args.step is None:
        raise PlaceError("Name the checkpoint by --step: the best one comes by itself.")
    else:
        fetch_checkpoint(args.workspace, row.id, args.step, say=_tell)
    steps = {
        "snapshots": [snapshot.step for snapshot in args.workspace.results.snapshots(row.id)],
        "checkpoints": [
            checkpoint.step for checkpoint in args.workspace.results.checkpoints(row.id) if checkpoint.folder.is_dir()
        ],
    }
    text = "; ".join(f"{kind} of {len(numbers)} steps" for kind, numbers in steps.items())
    say_json(json.dumps({"id": row.id, **steps})) if args.json else say(f"Of run {row.id} there are here: {text}.")
    return 0


def _fetch_to_mirror(address: str, run: int, step: int | None) -> None:
    from trainer.places.remote_host import OutOfReach
    from trainer.places.workspace_mirror import WorkspaceMirror

    mirror = WorkspaceMirror(address, _tell)
    try:
        mirror.ask(run)
        while not mirror.step():
            if mirror.trouble:
                raise OutOfReach(f"Nothing can be fetched: {mirror.trouble}.")
        if step is not None:
            mirror.fetch_checkpoint(run, step)
    finally:
        mirror.close()


def _tell(sentence: str) -> None:
    say(sentence, error=True)
