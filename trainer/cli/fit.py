"""`trainer fit`: trains a run, in this process or in the background."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.distribution import training_part
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer import config
    from trainer.store import Workspace

GROUP = "Train"
HELP = "train an existing run, or a new one from a preset or a file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, changes to its configuration, and where to train it."""
    parser.add_argument("run", nargs="?", metavar="RUN", help="number, name or folder of an existing run")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--preset", metavar="NAME", help="make a new run from a preset: clip-scenes, cloob-scenes, ...")
    source.add_argument("--config", type=Path, metavar="FILE", help="make a new run from a TOML file")
    source.add_argument(
        "--from",
        dest="start",
        metavar="RUN|MODEL",
        help="fine-tune a run (RUN@STEP), or a model as trainer open names it, on --data: settings follow its weights",
    )
    parser.add_argument(
        "--reference",
        metavar="DATA",
        help="with --from: what is measured with the own data, to see what is forgotten: a path, a name (CIFAR10), "
        "none, or start, the held-out pairs of RUN (default where --data are others)",
    )
    parser.add_argument("--name", help="name of the new run (default: after the data of --data, else the preset's)")
    data = parser.add_mutually_exclusive_group()
    data.add_argument(
        "--data",
        metavar="PATH",
        help="train on a folder, table or tar (layout detected); without --preset or --config, settings fit the data",
    )
    data.add_argument("--folder", metavar="DIR", help="train on a folder of images with .txt captions next to them")
    data.add_argument("--table", metavar="FILE", help="train on a table of images and captions")
    parser.add_argument("--of", metavar="RUN", help="with a decoder preset: the run whose embeddings are decoded")
    parser.add_argument("--of-step", type=int, metavar="N", help="at this checkpoint of it (default: its newest)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="e.g. optimizer.batch_size=64; repeatable"
    )
    parser.add_argument("--measure", action="store_true", help="estimate the cost with three real steps; create no run")
    parser.add_argument("--ranks", type=int, metavar="N", help="N processes of this computer share every batch")
    parser.add_argument(
        "--max-restarts",
        type=int,
        default=0,
        metavar="N",
        help="start the processes of --ranks again from the last checkpoint, up to N times, when one is lost",
    )
    parser.add_argument(
        "--check-ranks",
        type=int,
        metavar="N",
        help="compare 20 updates of N processes with those of one; create no run",
    )
    parser.add_argument(
        "--nodes", type=int, default=0, metavar="M", help="of SLURM, which share --ranks N as many on each"
    )
    parser.add_argument("--on", metavar="PLACE", help="train at a place (trainer places), and mirror the run here")
    remote = parser.add_mutually_exclusive_group()
    remote.add_argument("--data-there", metavar="PATH", help="with --on: where the data lie there (default: as here)")
    remote.add_argument(
        "--upload", action="store_true", help="with --on: send the data; what is there is not sent again"
    )
    remote.add_argument(
        "--upload-prepared",
        action="store_true",
        help="with --on: prepare the pictures here and send those, small and as they are trained on; continues, too",
    )
    parser.add_argument(
        "--log",
        nargs="+",
        default=[],
        metavar="TRACKER",
        help="log to tensorboard (files in the run's folder), wandb or mlflow too; each is an extra",
    )
    parser.add_argument("--detach", action="store_true", help="train in the background and return immediately")


def run(args: argparse.Namespace) -> int:
    """Create the run if it is new, train it, and report how it ended."""
    from trainer.config import ConfigError

    workspace: Workspace = args.workspace
    if args.log:
        from trainer.trackers.live import want

        want(args.log)
    changes = args.set or args.name or args.folder or args.table or args.data or args.of
    if args.reference and not args.start:
        raise ConfigError("--reference shows what a fine-tuning forgets: name what is fine-tuned, --from RUN.")
    if bool(args.run) == bool(args.preset or args.config or args.data or args.start):
        raise ConfigError(
            "Name an existing run, or create a new one with --data PATH, --preset or --config: exactly one of these; "
            "--data may be combined with --preset or --config."
        )
    if args.ranks is not None and not args.run:
        args.set.append(f"ranks={args.ranks}")
    if args.run and changes:
        raise ConfigError("An existing run keeps its configuration; create a new one with --preset or --config.")
    if args.max_restarts < 0 or (args.max_restarts and (args.on or args.detach)):
        raise ConfigError(
            "--max-restarts N, 0 or more, is for a training that this command waits for: leave out --on and --detach."
        )
    if args.measure:
        return _measure(args)
    if args.check_ranks is not None:
        return _check_ranks(args)
    if args.on:
        from trainer.places.bindings import host_of

        if host_of(args.on).kind != "slurm" and args.nodes > 1:  # before a run is made
            raise ConfigError(f"--nodes is for places of SLURM, and {args.on} is none. Leave it out.")
        if args.start:
            raise ConfigError(
                "The weights of --from lie in this workspace, and a place has none of its runs. Train here, or export "
                "the model, copy it there, and name its folder: --set model=open_clip --set model.name=FOLDER."
            )
    elif args.data_there or args.upload or args.upload_prepared or args.nodes:
        raise ConfigError("--data-there, --upload and --nodes are for a run at a place: name it with --on PLACE.")
    if args.run:
        workspace.check_there()
    elif not args.on:
        training_part.check("Training")  # before a run is made
    number = workspace.runs.get(args.run).id if args.run else _create(workspace, args)
    if args.run and args.ranks is not None:
        workspace.runs.set_ranks(number, args.ranks)
    if args.on:
        from trainer.places.bindings import Binding
        from trainer.places.follower import send

        prepared = _prepared(workspace, number) if args.upload_prepared else ""
        upload = args.upload or args.upload_prepared
        binding = Binding(args.on, data=args.data_there or "", upload=upload, prepared=prepared, nodes=args.nodes)
        send(workspace, number, binding)
    if args.detach:
        from trainer.cli._progress import say_started
        from trainer.scheduling.launch import start_detached

        return say_started(args, number, start_detached(workspace, number), "trains as")
    train(workspace, number, quiet=args.json, max_restarts=args.max_restarts)
    row = workspace.runs.get(number)
    answer = {"id": number, "name": row.name, "status": row.status, "step": row.step, "best": row.best}
    text = f"Run {number} ({row.name}): {row.status} at step {row.step} of {row.total_steps}."
    say_json(json.dumps(answer)) if args.json else say(text)
    return 0


def _prepared(workspace: Workspace, run: int) -> str:
    """Return the folder of tars with the prepared pictures of a run that is to be sent.

    Raises:
        ConfigError: Its pictures are prepared by a published model's own rules, which are known where it trains.
    """
    from trainer import config
    from trainer.cli._progress import report
    from trainer.data.prepared_tars import write_prepared_tars

    run_config = workspace.runs.config_of(run)
    if not isinstance(run_config.model, config.TinyTowers):
        raise config.ConfigError("Pictures are prepared here for towers of our own alone. Send the data: --upload.")
    size = run_config.model.image_size
    tars = write_prepared_tars(run_config.data, image_size=size, workspace=workspace.folder, progress=report)
    return str(Path(tars.path).absolute())


def train(workspace: Workspace, run: int, *, quiet: bool = False, max_restarts: int = 0) -> None:
    """Train a run until it has ended, by as many processes as it wants, here or at the place that it was sent to.

    Args:
        quiet: What the training says goes to standard error: standard output is one JSON object.
        max_restarts: As of `trainer.scheduling.ranks.train`.
    """
    from trainer.places.bindings import binding_of
    from trainer.scheduling import ranks

    if binding_of(workspace.runs.get(run).folder) is not None:
        from trainer.places.follower import train_there

        return train_there(workspace, run, say=lambda text: say(text, error=True))
    count = workspace.runs.ranks_of(run)
    if count > 1 and not ranks.is_rank():  # this process then needs no torch
        return ranks.train(workspace, run, count, stdout=sys.stderr if quiet else None, max_restarts=max_restarts)
    from trainer.training.fit import fit

    with contextlib.redirect_stdout(sys.stderr if quiet else sys.stdout):
        fit(workspace, run)


def _measure(args: argparse.Namespace) -> int:
    from trainer.cli._progress import report
    from trainer.training.cost import measure_cost

    run_config = _wanted(args)
    cost = measure_cost(run_config, args.workspace.folder, report)
    gpu = f" and {cost.gpu_mib:,.0f} MiB of the GPU" if cost.gpu_mib is not None else ""
    text = (
        f"{cost.steps:,} steps of {cost.step_s:.2f} s on {cost.device} are {cost.train_s / 60:,.1f} min without "
        f"evaluations; {cost.memory_mib:,.0f} MiB of memory{gpu}, {cost.disk_mib:,.0f} MiB on disk."
    )
    if cost.predicted_gpu_mib is not None:
        text += f" A graphics card needs about {cost.predicted_gpu_mib:,.0f} MiB free (predicted)."
    say_json(json.dumps(dataclasses.asdict(cost))) if args.json else say(text)
    return 0


def _check_ranks(args: argparse.Namespace) -> int:
    from trainer.scheduling.ranks import check_equal

    check = check_equal(args.workspace.folder, _wanted(args), args.check_ranks)
    say_json(json.dumps(check)) if args.json else say(check["words"])
    return 0 if check["equal"] else 1


def _wanted(args: argparse.Namespace) -> config.Run:
    """Return the configuration of the run that exists, or of the one that the arguments describe."""
    return args.workspace.runs.config_of(args.workspace.runs.get(args.run).id) if args.run else configured(args)


def configured(args: argparse.Namespace) -> config.Run:
    """Return the validated run that the arguments describe.

    Raises:
        ConfigError: It cannot be run; the message names the field.
    """
    from trainer import config
    from trainer.data.new_run import new_run

    data: config.Data | None = None
    if args.folder or args.table:
        data = config.Folder(path=args.folder) if args.folder else config.Table(path=args.table)
    if getattr(args, "start", None):
        return _fine_tuning(args, data)
    of = getattr(args, "of", None)
    if of is None and getattr(args, "of_step", None) is not None:
        raise config.ConfigError(
            "--of-step says at which checkpoint the run of --of is decoded: name it with --of RUN."
        )
    decodes = [] if of is None else _decodes(args, of)
    run = new_run(
        args.workspace.folder,
        preset=args.preset or "",
        file=args.config,
        path=args.data or "",
        data=data,
        name=args.name or (f"decoder of {args.workspace.runs.get(of).name}" if of is not None else ""),
        changes=[*decodes, *args.set],
    )
    return args.workspace.runs.bound(run)


def _fine_tuning(args: argparse.Namespace, data: config.Data | None) -> config.Run:
    """Return the validated fine-tuning of the run or model that `--from` names, and print why it is as it is.

    Raises:
        ConfigError: It cannot be run; the message names the field.
    """
    from trainer import config
    from trainer.data.new_run import new_run
    from trainer.format_detection import answered

    workspace: Workspace = args.workspace
    chosen = data or (answered(args.data, args.set) if args.data else None)
    start = started_run(workspace, args.start, chosen)
    source = workspace.runs.get(config.Tuning(start=start).start_run)
    base = config.fine_tuning_of(workspace.runs.config_of(source.id), start, data=chosen)
    if args.reference:
        reference = "" if args.reference == "none" else args.reference
        base = dataclasses.replace(base, tuning=dataclasses.replace(base.tuning, reference=reference))
    run = new_run(workspace.folder, base=base, path=args.data or "", data=data, name=args.name or "", changes=args.set)
    run = workspace.runs.bound(run)
    fields = config.flatten(run)
    stated = {config.meant(change.partition("=")[0].strip(), fields) or "" for change in args.set}
    stated |= {"tuning.reference"} if args.reference else set()
    for origin in config.origins(run, source=source.name, stated=stated):
        say(f"{origin.label:<18} {origin.value:<12} {origin.why}", error=args.json)
    return run


def started_run(workspace: Workspace, name: str, data: config.Data | None) -> str:
    """Return what `tuning.start` calls a run; a model that is no run of the workspace is opened as one first.

    Args:
        name: A run, with @STEP for a checkpoint, or a model as `trainer open` names it.
        data: Whose held-out pairs a model is opened with; None: few Scenes.

    Raises:
        ConfigError: There is no such run, and no such model.
    """
    from trainer import config
    from trainer.pretrained import PretrainedError, model_of, run_of
    from trainer.store import StoreError

    try:
        workspace.runs.get(config.Tuning(start=name).start_run)
        return name
    except StoreError as not_a_run:
        try:
            model = model_of(name)
        except PretrainedError as error:
            raise config.ConfigError(f"--from {name}: {not_a_run} Nor is it a model: {error}") from error
    opened = (row for row in workspace.runs.all() if row.status == "finished" and row.step == 0)
    for row in opened:
        if workspace.runs.config_of(row.id).model == model:
            return row.folder.name
    few = config.Scenes(train_pairs=256, heldout_pairs=256)
    cache = workspace.folder / "cache"
    number = workspace.runs.create(run_of(model, data or few, name="", cache=cache, progress=lambda share, note: None))
    say(f"{name} is opened as run {number}, which the fine-tuned one is compared with.", error=True)
    train(workspace, number, quiet=True)
    return workspace.runs.get(number).folder.name


def _decodes(args: argparse.Namespace, of: str) -> list[str]:
    """Return the changes by which the run decodes another, whose data and towers it then has.

    Raises:
        ConfigError: It also names data.
    """
    from trainer.config import ConfigError

    if args.data or args.folder or args.table:
        raise ConfigError("A decoder is trained on the pairs of the run that it decodes: leave out --data.")
    step = getattr(args, "of_step", None)
    return [f"objective.of={of}", *([] if step is None else [f"objective.of_step={step}"])]


def _create(workspace: Workspace, args: argparse.Namespace) -> int:
    from trainer.data.fitting_run import PRESET

    preset = args.preset or ("" if args.config else PRESET)
    return workspace.runs.create(configured(args), preset=preset, named=bool(args.name))
