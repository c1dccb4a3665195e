"""`trainer watch`: a training of another program as a run, while it is trained."""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING, Final

from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.companion.folder_watch import FolderWatch, Measure
    from trainer.companion.remote_training import RemoteTraining
    from trainer.companion.watching_files import WatchedFolder
    from trainer.store import RunLog, Workspace

GROUP = "Train"
HELP = "show a training of another program as a run, while it is trained"
LOOK_S: Final = 1.0
"""Between two looks at the folder; a look at 200 files takes less than a millisecond."""
REST: Final = 19
"""How much longer than curves were read the next look waits: a long log that grows takes 5 % of a processor."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder, the pairs to embed, and how long to watch."""
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        help="logs/NAME of open_clip, version_N of Lightning, the output folder of transformers, or the log of any "
        "other program (event files, CSV, JSON lines: curves only); ssh://host/path of another computer",
    )
    parser.add_argument(
        "--data", metavar="VAL", help="validation pairs: all of them are embedded with each checkpoint; without, curves"
    )
    parser.add_argument(
        "--data-there",
        metavar="VAL",
        default="",
        help="validation pairs of the other computer: they are embedded there; with --data its checkpoints come here",
    )
    parser.add_argument(
        "--every", default="epoch", metavar="epoch|N", help="every checkpoint (epoch), or one in N updates at most"
    )
    parser.add_argument("--once", action="store_true", help="bring in what is there, and end")
    parser.add_argument("--detach", action="store_true", help="watch in the background and return immediately")
    parser.add_argument("--name", default="", help="name of a new run (default: the folder's)")
    parser.add_argument(
        "--model",
        default="",
        metavar="FOLDER",
        help="settings of the model (open_clip_config.json or config.json) where the training's files lack them",
    )


def run(args: argparse.Namespace) -> int:
    """Watch until the training has ended, and print a line for each step."""
    from pathlib import Path

    from trainer.companion.remote_training import RemoteTraining
    from trainer.companion.watching_files import is_remote, watched_folder

    _every(args.every)
    say_now = (lambda sentence: None) if args.json else say
    if not is_remote(args.folder):
        if args.data_there:
            raise _error("--data-there is for a folder of another computer: name the pairs by --data.")
        return _watch_folder(args, watched_folder(Path(args.folder)), None, say_now)
    if args.data_there:
        return _watch_there(args, say_now)
    remote = RemoteTraining(args.workspace, args.folder, say_now)
    try:
        return _watch_folder(args, remote.recognized(), remote, say_now)
    finally:
        remote.close()


def _watch_folder(
    args: argparse.Namespace, folder: WatchedFolder, remote: RemoteTraining | None, say_now: Callable[[str], None]
) -> int:
    """Watch a folder of this computer, or the copy of one that `remote` brings here."""
    from pathlib import Path

    from trainer.companion.folder_watch import FolderWatch, watched_run
    from trainer.companion.watching_curves import read_training

    dataset = Path(args.data).stem if args.data else ""
    if args.data and not folder.has_known_checkpoints:
        raise _error(f"The checkpoints of {folder.label} cannot be opened: watch it without --data.")
    read_training(folder, ())  # refuses the curves of several trainings before there is a run
    if args.detach:
        return _detach(args, folder, dataset)
    measure = _measure(args) if args.data else None
    with watched_run(args.workspace, folder, name=args.name, dataset=dataset) as log:
        say_now(f"Run {log.run.id} ({log.run.name}) shows {folder.label}, {folder.description}.")
        watch = FolderWatch(args.workspace, log, folder, measure, every=_every(args.every), say=say_now)
        _watch(args.workspace, watch, log, remote, once=args.once)
    if watch.elapsed_s:  # as its files tell, and not how long it was watched
        args.workspace.runs.change(log.run.id, trained_s=watch.elapsed_s)
    return _say_end(args, log.run.id, list(watch.failures.values()))


def _say_end(args: argparse.Namespace, run: int, passed_over: list[str]) -> int:
    row = args.workspace.runs.get(run)
    steps = sorted({snapshot.step for snapshot in args.workspace.results.snapshots(row.id)})
    answer = {"id": row.id, "name": row.name, "status": row.status, "steps": steps, "passed_over": passed_over}
    text = f"Run {row.id} ({row.name}): {row.status}, {len(steps)} steps with embeddings. {row.reason}".strip()
    say_json(json.dumps(answer)) if args.json else say(text)
    return 0


def _watch_there(args: argparse.Namespace, say_now: Callable[[str], None]) -> int:
    """Watch on the other computer, where the pairs are, and mirror the run here."""
    from trainer.cli._progress import say_started
    from trainer.companion.remote_training import follow, follow_detached, watch_there

    values = {"--data": args.data_there, "--model": args.model, "--every": args.every}
    options = [word for name, value in values.items() if value for word in (name, value)]
    options += ["--once"] if args.once else []
    number = watch_there(args.workspace, args.folder, options, args.name, say_now)
    if not args.detach:
        follow(args.workspace, number, say_now)
        return _say_end(args, number, [])
    pid = follow_detached(args.workspace, number)
    return say_started(args, number, pid, f"shows {args.folder}, watched by")


def _detach(args: argparse.Namespace, folder: WatchedFolder, dataset: str) -> int:
    """Start the same watch in a process of its own, and tell the run that shows the training."""
    from trainer.cli._progress import say_started
    from trainer.companion.folder_watch import prepared_run
    from trainer.scheduling import launch

    _check_data(args.data or "")
    number = prepared_run(args.workspace, folder, name=args.name, dataset=dataset)
    paths = {"--data": _absolute(args.data), "--model": _absolute(args.model), "--every": args.every}
    options = [word for name, value in paths.items() if value for word in (name, value)]
    options += ["--once"] if args.once else []
    pid = launch.start_watch(args.workspace, number, folder.label, options)
    return say_started(args, number, pid, f"shows {folder.label}, watched by")


def _error(sentence: str) -> Exception:
    from trainer.companion.watching_files import WatchError

    return WatchError(sentence)


def _check_data(data: str) -> None:
    """Refuse pairs that are missing before there is a run; a name without a folder is that of a standard data set."""
    from pathlib import Path

    from trainer.companion.watching_files import WatchError

    path = Path(data.partition("::")[0]).expanduser()
    if data and not path.exists() and (len(path.parts) > 1 or path.suffix):
        raise WatchError(f"{path} does not exist. Choose a folder, a table or a tar.")


def _absolute(path: str | None) -> str:
    """Return a path for another process; the name of a data set, which is no path, stays."""
    from pathlib import Path

    absolute = Path(path or "").expanduser().absolute()
    return str(absolute) if path and absolute.exists() else path or ""


def _every(text: str) -> int:
    from trainer.companion.watching_files import WatchError

    if text == "epoch":
        return 0
    if not text.isdecimal() or not 0 < int(text[:15]):
        raise WatchError(f"--every {text}: write epoch, or a number of updates.")
    return int(text[:15])


def _measure(args: argparse.Namespace) -> Measure:
    """Return what embeds the pairs, at the priority of a training, so that the one that is watched comes first."""
    from trainer import device
    from trainer.evaluation.checkpoint_measurement import CheckpointMeasurement

    device.be_polite(device.choose("auto"))
    return CheckpointMeasurement(args.workspace, args.data, model=args.model)


def _watch(workspace: Workspace, watch: FolderWatch, log: RunLog, remote: RemoteTraining | None, *, once: bool) -> None:
    """Look until the training has ended, somebody stops the watch, or nothing is new and it looks once."""
    from trainer.companion import remote_training
    from trainer.companion.stop_request import is_asked_to_stop
    from trainer.store import stop_flag
    from trainer.store.process_lock import identity

    watcher, look_s, next_look = identity(), LOOK_S if remote is None else remote_training.LOOK_S, 0.0
    while True:
        if time.monotonic() >= next_look:
            has_come = remote is not None and remote.bring(watch)
            is_new = watch.look() or has_come
            if watch.has_ended and not has_come:
                return log.status("finished")
            # Curves alone may grow as fast as they are read.
            is_behind = is_new and (watch.has_measure or has_come)
            if once and not is_behind:
                return log.status("stopped", "Its files do not say that the training has ended: watch it again.")
            next_look = time.monotonic() + max(0.0 if is_behind else look_s, REST * watch.reading_s)
        if is_asked_to_stop(workspace, log, watcher, watch.step):
            stop_flag.remove(log.folder)
            return log.status("stopped", "The watch was stopped; the training is not affected.")
        time.sleep(max(0.0, min(LOOK_S, next_look - time.monotonic())))
