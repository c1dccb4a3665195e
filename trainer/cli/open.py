"""`trainer open`: imports a published model as a run, for inspection and comparison without training."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from trainer import config

GROUP = "Train"
HELP = "open a pretrained model as a run, without training"
FEW: Final = 256
"""Pairs of each split of the Scenes that a model is opened with where no data are named."""
INTERRUPTED: Final = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model, the data to inspect with it, and where to open it."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="open_clip:ViT-B-32/laion2b_s34b_b79k, hf-hub:OWNER/NAME, local-dir:FOLDER, the folder of an open_clip "
        "run, or a .safetensors or .pt file (open_clip, or CLOOB as published)",
    )
    data = parser.add_mutually_exclusive_group()
    data.add_argument("--data", metavar="PATH", help="folder, table or tar to embed; the layout is detected")
    data.add_argument(
        "--preset",
        metavar="NAME",
        help="the data of a preset, scenes among them (default: few Scenes, 256 of each split, which are drawn soon)",
    )
    data.add_argument("--like", metavar="RUN", help="the data of another run, to compare the two")
    parser.add_argument("--name", default="", help="name of the run (default: the model's)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="e.g. data.heldout_share=0.5; repeatable"
    )
    parser.add_argument("--detach", action="store_true", help="open it in the background and return immediately")


def run(args: argparse.Namespace) -> int:
    """Create the run, open it here or in the background, and report the result."""
    workspace = args.workspace
    made = _configured(args)
    number = workspace.runs.create(made)
    code = 0
    if args.detach:
        from trainer.scheduling.launch import start_detached

        pid = start_detached(workspace, number)
        row = workspace.runs.get(number)
        answer = {"id": number, "name": row.name, "pid": pid, "log": str(row.folder / "log.txt")}
        text = f"Run {number} ({row.name}) is opened by process {pid}. Its log: {row.folder / 'log.txt'}"
    else:
        from trainer.training.fit import fit

        with contextlib.redirect_stdout(sys.stderr if args.json else sys.stdout):
            fit(workspace, number)
        row = workspace.runs.get(number)
        shown = [f"{one.dataset} {one.split}" for one in workspace.results.snapshots(number)]
        answer = {"id": number, "name": row.name, "status": row.status, "snapshots": shown}
        text = f"Run {number} ({row.name}): {row.status}, embeddings of {', '.join(shown) or 'nothing'}."
        if row.status == "stopped":
            text += f" `trainer resume {number}` opens it."
            code = INTERRUPTED
    print(json.dumps(answer) if args.json else text)
    return code


def _configured(args: argparse.Namespace) -> config.Run:
    """Return the validated run that the arguments describe.

    Raises:
        Problem: The model or the data cannot be opened.
    """
    import dataclasses

    from trainer import catalog, config
    from trainer.format_detection import answered
    from trainer.pretrained import model_of, run_of

    data: config.Data = config.Scenes(train_pairs=FEW, heldout_pairs=FEW)
    if args.data:
        data = answered(args.data, args.set)
    elif args.like:
        data = args.workspace.runs.config_of(args.workspace.runs.get(args.like).id).data
    elif args.preset:
        data = config.Scenes() if args.preset == "scenes" else catalog.preset(args.preset).data
    model = model_of(args.model)
    made = run_of(model, data, name=args.name, cache=args.workspace.folder / "cache", progress=lambda share, note: None)
    for change in args.set:
        field, equals, value = change.partition("=")
        if not equals:
            raise config.ConfigError(f"--set {change}: write FIELD=VALUE, e.g. data.heldout_share=0.5.")
        made = config.replace(made, field.strip(), value.strip())
    made = dataclasses.replace(made, data=config.absolute(made.data))
    config.check(made)
    return made
