"""`trainer remote`: answers for the runs that another computer has sent here."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.untrusted.terminal import say, say_json

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
            return _fit(args.workspace, question)
        if question.get("what") == "follow":
            return _follow(args.workspace.folder, question)
        if question.get("what") == "embed":
            return _embed(args.workspace.folder, question)
        head, content = end.answer(question)
        say(f"{head} {content.decode('utf-8', 'replace')[:1_000]}")
        return 0
    sink = sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else may be written there
    try:
        serve(end.answer, sys.stdin.buffer, sink)
    except BrokenPipeError:
        return 0
    return 0


def _fit(workspace: Workspace, question: dict[str, Any]) -> int:
    """Train the only run of a workspace, made of a configuration at the first time, and report its row next to it."""
    from trainer import config
    from trainer.cli.fit import train
    from trainer.places.ray_jobs import WANTED
    from trainer.places.shared_folder import StatePublisher
    from trainer.places.source import MOST_DOCUMENT
    from trainer.places.storage import Storage
    from trainer.places.stored_run import StoredPublisher, restore

    storage = Storage(str(question["storage"])) if "storage" in question else None
    if storage is None:
        run_config = config.read(Path(str(question["config"])))
    else:
        run_config = config.from_toml(storage.read(WANTED, MOST_DOCUMENT).decode())
    if run_config.ranks > 1 and "rank" not in question:
        from trainer.training.ray_ranks import train as train_by_ray

        train_by_ray(workspace.folder.resolve(), question, run_config.ranks)
        return 0
    if workspace.look_only:
        workspace.adopt()  # another node of the cluster made it, for the same user
    if storage is not None:
        restore(storage, workspace)
    run = next((row.id for row in workspace.runs.all()), None) or workspace.runs.create(run_config)
    job = str(question["job"])
    with StatePublisher(workspace, run, job) if storage is None else StoredPublisher(workspace, run, job, storage):
        train(workspace, run)
    return 0


def _follow(workspace: Path, question: dict[str, Any]) -> int:
    """Be a rank that does not lead, of the only run of a workspace that rank 0 has made."""
    from functools import partial

    from trainer import ranks
    from trainer.places.storage import Storage
    from trainer.places.stored_run import bring_checkpoint
    from trainer.training.follower import follow

    shared = ranks.join()
    assert shared is not None, "Ray has placed several ranks"
    try:
        if "storage" in question:
            folder = workspace / "run"
            folder.mkdir(parents=True, exist_ok=True)
            bring = partial(bring_checkpoint, Storage(str(question["storage"])), folder, check=shared.check_peers)
            follow(folder, workspace, shared, bring=bring)
        else:
            # Rank 0 makes the run before it joins, so its folder is there by now.
            follow(next((workspace / "runs").glob("0001-*")), workspace, shared)
    except Exception as error:
        if not isinstance(error, ranks.RankError):
            shared.confess(str(error) or type(error).__name__)
        raise
    finally:
        shared.leave()
    return 0


def _embed(workspace: Path, question: dict[str, Any]) -> int:
    """Embed a data set that another computer named, and print how far it is."""
    from trainer.evaluation.embed_set import Workers, run_job

    def say(share: float, note: str) -> None:
        say_json(json.dumps({"share": round(share, 4), "note": note}), flush=True)

    workers = None
    if question.get("ray"):
        count = int(question.get("workers") or 0)
        workers = Workers(count=count, cpus=float(question.get("cpus", 1)), gpus=float(question.get("gpus", 0)))
    workspace.mkdir(parents=True, exist_ok=True)
    run_job(str(question["job"]), workspace, say, workers)
    return 0
