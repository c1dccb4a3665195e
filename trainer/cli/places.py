"""`trainer places`: other computers that train runs, as the user's own settings have them."""

from __future__ import annotations

import argparse
import json
from types import SimpleNamespace
from typing import Any, Final

from trainer.untrusted.terminal import say, say_json

GROUP = "Train"
HELP = "name other computers that train runs: by ssh, SLURM or Ray"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    _name(parser, "as runs, forms and commands call it")
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


def _add(args: argparse.Namespace) -> int:
    """Add the place; nothing is connected."""
    from trainer.places import bindings
    from trainer.places.remote_host import parse

    host = parse(args.name, args.address)
    lines = {"prologue": "\n".join(args.prologue), "container": args.container}
    if any(lines.values()):
        host = host.changed(**{name: value for name, value in lines.items() if value})
    bindings.add(host)
    text = f"{host.name} is {host.address}. Try it: trainer places test {host.name}"
    return _print(args, {"name": host.name, "address": host.address}, text)


def _fetch_arguments(parser: argparse.ArgumentParser) -> None:
    _run(parser)
    parser.add_argument(
        "--step",
        type=int,
        metavar="N",
        help="of the checkpoint (in a mirror: the best one and, after its end, the last)",
    )


def _fetch(args: argparse.Namespace) -> int:
    """Bring the checkpoint, or what a mirror has of a run."""
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
    return _print(args, {"id": row.id, **steps}, f"Of run {row.id} there are here: {text}.")


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


def _follow(args: argparse.Namespace) -> int:
    """Mirror the run until it has ended."""
    from trainer.places.follower import train_there

    args.workspace.check_there()
    row = args.workspace.runs.get(args.run)
    train_there(args.workspace, row.id, start=False, say=_tell)
    row = args.workspace.runs.get(row.id)
    answer = {"id": row.id, "name": row.name, "status": row.status, "step": row.step}
    return _print(args, answer, f"Run {row.id} ({row.name}): {row.status} at step {row.step} of {row.total_steps}.")


def _install_arguments(parser: argparse.ArgumentParser) -> None:
    from trainer.places.remote_host import INSTALL_FOLDER

    _name(parser)
    parser.add_argument("--build", default="auto", help="of torch: auto, cpu, cu128, rocm6.4, ... or index (auto)")
    parser.add_argument("--folder", default=INSTALL_FOLDER, metavar="DIR", help=f"there ({INSTALL_FOLDER})")


def _install(args: argparse.Namespace) -> int:
    """Install, with progress on standard error; the place uses that Python from now on."""
    from trainer.cli._progress import report
    from trainer.places.bindings import host_of
    from trainer.places.packages import install

    host = install(host_of(args.name), report, folder=args.folder, build=args.build)
    text = f"{host.name} can train with {host.python}. See it: trainer places test {host.name}"
    return _print(args, {"name": host.name, "address": host.address}, text)


def _list(args: argparse.Namespace) -> int:
    """Print name and address of each place."""
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


def _mirror_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("address", metavar="ADDRESS", help="ssh://host/path of the workspace there")
    parser.add_argument("--once", action="store_true", help="bring what is there, and end")
    parser.add_argument(
        "--all",
        action="store_true",
        help="embeddings and checkpoints of all runs; without, of those asked for",
    )
    parser.add_argument("--while-pid", type=int, default=0, metavar="PID", help="end with the process of this number")


def _mirror(args: argparse.Namespace) -> int:
    """Mirror until all that was asked for is here, or until somebody ends it."""
    from trainer.places.workspace_mirror import WorkspaceMirror, keep
    from trainer.store.process_lock import identity

    mirror = WorkspaceMirror(args.address, _tell)
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
    return _print(args, answer, f"{len(rows)} runs in {answer['folder']}, look only.{trouble}")


def _remove(args: argparse.Namespace) -> int:
    from trainer.places.bindings import remove

    remove(args.name)
    return _print(args, {"removed": args.name}, f"{args.name} is not a place any more.")


def _test(args: argparse.Namespace) -> int:
    """Print the findings; return 1 if something there is broken."""
    from trainer.places.doctor import findings
    from trainer.untrusted.files import spelled

    rows = findings(args.name, args.workspace.folder)
    if args.json:
        say_json(json.dumps(rows, indent=1))
    else:
        for row in rows:
            sign = "!" if row.get("state") == "broken" else " "
            line = f"{sign} {row.get('group')}: {row.get('name')}: {row.get('value')} {row.get('next', '')}"
            say(spelled(line).rstrip())
    return 1 if any(row.get("state") == "broken" for row in rows) else 0


def _name(parser: argparse.ArgumentParser, about: str = "of the place") -> None:
    parser.add_argument("name", metavar="NAME", help=about)


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="number, name or folder of the run here")


def _print(args: argparse.Namespace, answer: dict[str, Any], text: str) -> int:
    say_json(json.dumps(answer)) if args.json else say(text)
    return 0


def _tell(sentence: str) -> None:
    say(sentence, error=True)


_ABOUT: Final = (
    (
        "add",
        "name a place, or change one: ssh://user@host[:port][/python], slurm://user@host, ray://host:8265?storage=DIR",
        _add_arguments,
        _add,
    ),
    (
        "fetch",
        "bring a checkpoint of a run that trains at a place, or embeddings and checkpoint of a run of a mirror",
        _fetch_arguments,
        _fetch,
    ),
    ("follow", "mirror a run that trains at a place, until it has ended; a window does so by itself", _run, _follow),
    (
        "install",
        "install training at a place by ssh or SLURM: by uv, into a folder there, with the card's build of torch",
        _install_arguments,
        _install,
    ),
    ("list", "list the places", lambda _parser: None, _list),
    (
        "mirror",
        "mirror a workspace of another computer, look only; explorer --workspace ssh://host/path does, too",
        _mirror_arguments,
        _mirror,
    ),
    ("remove", "remove a place; runs that train there continue", _name, _remove),
    ("test", "connect to a place, bring this version there and print its doctor", _name, _test),
)
SUBCOMMANDS: Final = {
    name: SimpleNamespace(HELP=about, add_arguments=arguments, run=run) for name, about, arguments, run in _ABOUT
}
"""Name of a subcommand -> what it does."""
