"""`trainer fit`: trains a run, here or in the background."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer import config
    from trainer.store import Workspace

GROUP = "Train"
HELP = "train a run: one that exists, or a new one from a preset or a file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, what to change in it, and where to train it."""
    parser.add_argument("run", nargs="?", metavar="RUN", help="number, name or folder of a run that exists")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--preset", metavar="NAME", help="make a new run from a preset: clip-scenes, cloob-scenes, ...")
    source.add_argument("--config", type=Path, metavar="FILE", help="make a new run from a TOML file")
    parser.add_argument("--name", help="name of the new run (default: after the data of --data, else the preset's)")
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--data",
        metavar="PATH",
        help="train on a folder, table or tar of whatever layout; without --preset or --config as it fits the data",
    )
    place.add_argument("--folder", metavar="DIR", help="train on a folder of images with .txt captions next to them")
    place.add_argument("--table", metavar="FILE", help="train on a table of images and captions")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="e.g. optimizer.batch_size=64; repeatable"
    )
    parser.add_argument("--detach", action="store_true", help="train in the background and return at once")


def run(args: argparse.Namespace) -> int:
    """Makes the run if it is new, trains it, and says how it ended."""
    from trainer.config import ConfigError

    workspace: Workspace = args.workspace
    changes = args.set or args.name or args.folder or args.table or args.data
    if bool(args.run) == bool(args.preset or args.config or args.data):
        raise ConfigError(
            "Name a run that exists, or make a new one with --data PATH, --preset or --config: exactly one of these; "
            "--data may be combined with --preset or --config."
        )
    if args.run and changes:
        raise ConfigError("A run that exists keeps its configuration; make a new one with --preset or --config.")
    if args.run:
        workspace.check_there()
    number = workspace.runs.get(args.run).id if args.run else _create(workspace, args)
    if args.detach:
        from trainer.scheduling.launch import start_detached

        pid = start_detached(workspace, number)
        row = workspace.runs.get(number)
        answer = {"id": number, "name": row.name, "pid": pid, "log": str(row.folder / "log.txt")}
        text = f"Run {number} ({row.name}) trains as process {pid}. Its log: {row.folder / 'log.txt'}"
    else:
        from trainer.training.fit import fit

        # With --json, what the training says goes to standard error: standard output is one JSON object.
        with contextlib.redirect_stdout(sys.stderr if args.json else sys.stdout):
            fit(workspace, number)
        row = workspace.runs.get(number)
        answer = {"id": number, "name": row.name, "status": row.status, "step": row.step, "best": row.best}
        text = f"Run {number} ({row.name}): {row.status} at step {row.step} of {row.total_steps}."
    print(json.dumps(answer) if args.json else text)
    return 0


def configured(args: argparse.Namespace) -> config.Run:
    """The run that the arguments describe, checked.

    Raises:
        ConfigError: It cannot be run; the message names the field.
    """
    from dataclasses import replace

    from trainer import catalog, config
    from trainer.analysis.progress import silent
    from trainer.data.fitting_run import PRESET, fitting_run, named_after
    from trainer.format_detection import answered

    run = config.read(args.config) if args.config else catalog.preset(args.preset or PRESET)
    if args.data:
        data = answered(args.data, args.set)
        run = replace(run, data=data, name=named_after(data, run.objective.kind))
    if args.folder:
        run = replace(run, data=config.Folder(path=args.folder))
    if args.table:
        run = replace(run, data=config.Table(path=args.table))
    if args.name:
        run = replace(run, name=args.name)
    run = _changed(run, args.set)
    run = replace(run, data=config.absolute(run.data))
    if args.data and not (args.preset or args.config):
        config.check(run)
        run = fitting_run(run, args.workspace.folder, silent)
        # What was asked for stays; a kind of objective or towers is there already.
        run = _changed(run, [change for change in args.set if change.partition("=")[0].strip() not in config.SECTIONS])
        run = replace(run, data=config.absolute(run.data))
    config.check(run)
    return run


def _changed(run: config.Run, changes: Sequence[str]) -> config.Run:
    from trainer import config

    for change in changes:
        field, equals, value = change.partition("=")
        if not equals:
            raise config.ConfigError(f"--set {change}: write FIELD=VALUE, e.g. optimizer.batch_size=64.")
        run = config.replace(run, field.strip(), value.strip())
    return run


def _create(workspace: Workspace, args: argparse.Namespace) -> int:
    from trainer.data.fitting_run import PRESET

    preset = args.preset or ("" if args.config else PRESET)
    return workspace.runs.create(configured(args), preset=preset)
