"""`trainer open`: a published model, or vectors of another program, as a run for inspection without training."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer import config
    from trainer.vectors.open_run import OpenedVectors

GROUP = "Train"
HELP = "open a pretrained model, or vectors of another program, as a run, without training"
FEW: Final = 256
"""Pairs of each split of the Scenes that a model is opened with where no data are named."""
INTERRUPTED: Final = 130
LIST: Final = "list"
"""In place of a model: published ones are listed."""
VECTORS: Final = "vectors"
"""In place of a model: vectors of another program are opened."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model, the data to inspect with it, and where to open it."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="open_clip:ViT-B-32/laion2b_s34b_b79k, hf-hub:OWNER/NAME, local-dir:FOLDER, the folder of an open_clip "
        "run, of transformers (CLIP, SigLIP) or of an export, or a .safetensors or .pt file (open_clip, or CLOOB as "
        "published); list: published models with size and license; vectors: see below",
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
    vectors = parser.add_argument_group("trainer open vectors", "Row i of images, texts and items is one pair.")
    for side in ("image", "text"):
        vectors.add_argument(
            f"--{side}",
            metavar="PATH",
            help=f"{side} vectors: .npy, .npz, .safetensors, .pt, .fvecs, .fbin and their like, a table or Arrow file "
            "with a column of lists, words with their vectors (.txt, .vec, .bin; .gz), or a folder of clip-retrieval, "
            "of CLIP_benchmark, that `datasets` saved, or of step_N.npy (a step each)",
        )
        vectors.add_argument(f"--{side}-column", metavar="NAME", default="", help="which array or column of it")
    vectors.add_argument("--run", type=int, help=argparse.SUPPRESS)  # whose vectors are opened: made by --detach
    vectors.add_argument("--into", metavar="RUN", help="add a step to this run of vectors; needs --step")
    vectors.add_argument("--step", type=int, metavar="N", help="updates that the model had seen, of --into")
    vectors.add_argument("--items", metavar="FILE", help="CSV, JSONL, Parquet or Arrow: id, path, caption, label")
    vectors.add_argument("--pictures", metavar="FOLDER", help="where the paths of the items start")
    vectors.add_argument("--rows", type=int, metavar="N", help="how many to keep, drawn at random (10,000)")
    vectors.add_argument(
        "--called", metavar="NAME", help="name of the data; sets of one name are compared by the ids of their items"
    )


def run(args: argparse.Namespace) -> int:
    """Create the run, open it here or in the background, and report the result."""
    workspace = args.workspace
    if args.model == LIST:
        return _list(args)
    if args.model == VECTORS:
        return _open_vectors(args)
    _refuse_vector_options(args)
    number = workspace.runs.create(_configured(args))
    if args.detach:
        return _detached(args, number)
    from trainer.training.fit import fit

    with contextlib.redirect_stdout(sys.stderr if args.json else sys.stdout):
        fit(workspace, number)
    row = workspace.runs.get(number)
    snapshots = [f"{snapshot.dataset} {snapshot.split}" for snapshot in workspace.results.snapshots(number)]
    answer = {"id": number, "name": row.name, "status": row.status, "snapshots": snapshots}
    text = f"Run {number} ({row.name}): {row.status}, embeddings of {', '.join(snapshots) or 'nothing'}."
    stopped = row.status == "stopped"
    text += f" `trainer resume {number}` opens it." if stopped else ""
    say_json(json.dumps(answer)) if args.json else say(text)
    return INTERRUPTED if stopped else 0


def _detached(args: argparse.Namespace, number: int) -> int:
    """Have another process open the run, and say which."""
    from trainer.cli._progress import say_started
    from trainer.scheduling.launch import start_detached

    return say_started(args, number, start_detached(args.workspace, number), "is opened by")


def _list(args: argparse.Namespace) -> int:
    """Print the published models; the hub is not asked."""
    import dataclasses

    from trainer.distribution.published_models import PUBLISHED

    rows = [
        dataclasses.asdict(model)
        | {"model": model.specification, "megabytes": model.megabytes, "address": model.address}
        for model in PUBLISHED
    ]
    lines = [f"trainer open {model.specification}\n    {model.words}; {model.source}" for model in PUBLISHED]
    say_json(json.dumps(rows, indent=1)) if args.json else say("\n".join(lines))
    return 0


def _open_vectors(args: argparse.Namespace) -> int:
    """Open vectors here: that takes no model, no torch and little time."""
    from trainer import config
    from trainer.vectors.matrices import VectorError
    from trainer.vectors.open_run import add_step, open_here

    if (args.into is None) != (args.step is None):
        raise VectorError("--into RUN and --step N belong together: the run of vectors, and the step to add to it.")
    if args.into is None:
        number = args.workspace.runs.create(_vectors(args)) if args.run is None else args.run
        if args.detach:
            return _detached(args, number)
        if args.run is not None:  # the window stops it by SIGTERM: what was copied goes, as after Ctrl+C
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        ready = partial(_say_opened, args, number)
        opened = open_here(args.workspace, number, ready, keep=args.run is not None)
    else:
        data = _vectors(args).data
        assert isinstance(data, config.Vectors)
        number, opened = add_step(args.workspace, args.into, data, args.step)
        _say_opened(args, number, opened)
    note = f"{opened.note} {opened.recall}".strip()
    if args.json:
        row = args.workspace.runs.get(number)
        answer = {"id": number, "name": row.name, "status": row.status, "rows": opened.rows, "kept": opened.kept}
        answer |= {"left_out": opened.left_out, "width": opened.width, "note": note, "steps": opened.steps}
        say_json(json.dumps(answer))
    elif note:
        say(note)
    return 0


def _say_opened(args: argparse.Namespace, number: int, opened: OpenedVectors) -> None:
    """Say what can be looked at; the first questions of many pairs are asked afterwards."""
    if args.json:
        return
    row = args.workspace.runs.get(number)
    left_out = f", {opened.left_out:,} left out that are zero or no numbers" if opened.left_out else ""
    text = f"Run {number} ({row.name}): {opened.kept:,} of {opened.rows:,} vectors of {opened.width} numbers{left_out}."
    say(f"{text} {opened.steps} steps, the last is {row.step}." if opened.steps > 1 else text)


def _vectors(args: argparse.Namespace) -> config.Run:
    """Return the run that the arguments describe.

    Raises:
        UserError: The vectors cannot be opened.
    """
    from pathlib import Path

    from trainer import config
    from trainer.vectors.matrices import VectorError, find
    from trainer.vectors.open_run import run_of

    ignored = [name for name in ("data", "preset", "like") if getattr(args, name)]
    if ignored:
        raise VectorError(f"--{ignored[0]} belongs to models: vectors come with --items, and are opened at once.")
    if not (args.image or args.text):
        raise VectorError("Name the vectors: trainer open vectors --image PATH, --text PATH, or both.")
    image, text, columns = args.image or "", args.text or "", {"image": args.image_column, "text": args.text_column}
    if bool(image) != bool(text) and not any(columns.values()):
        # One file or folder may hold both sides.
        vectors = find(Path(image or text).expanduser())
        if vectors.image is not None and vectors.text is not None:
            image = text = image or text
            columns = {"image": vectors.image.name, "text": vectors.text.name}
    data = config.Vectors(
        image_vectors=image,
        text_vectors=text,
        image_column=columns["image"],
        text_column=columns["text"],
        items=args.items or "",
        pictures=args.pictures or "",
        called=(args.called or "").strip() or Path(args.items or image or text).stem or "vectors",
        **({} if args.rows is None else {"rows": args.rows}),
    )
    made = run_of(config.absolute(data), args.name or common_name([Path(file).stem for file in (image, text) if file]))
    return _changed(made, args.set)


def common_name(stems: list[str]) -> str:
    """Return what the names of both files begin with, up to a separator; the first name where that is nothing."""
    match = re.match(r"(.+)[ _.-][^/]*/\1[ _.-]", "/".join(dict.fromkeys(stems)))
    return match[1] if match else stems[0]


def _refuse_vector_options(args: argparse.Namespace) -> None:
    """Reject options of vectors together with a model: they would be ignored.

    Raises:
        ConfigError: There are some.
    """
    from trainer.config import ConfigError

    options = [name for name in ("image", "text", "items", "pictures", "rows", "called", "into") if getattr(args, name)]
    if options:
        raise ConfigError(f"--{options[0]} belongs to vectors: trainer open vectors --image PATH ...")


def _configured(args: argparse.Namespace) -> config.Run:
    """Return the validated run that the arguments describe.

    Raises:
        UserError: The model or the data cannot be opened.
    """
    from trainer import config
    from trainer.config import presets
    from trainer.format_detection import answered
    from trainer.pretrained import model_of, run_of

    data: config.Data = config.Scenes(train_pairs=FEW, heldout_pairs=FEW)
    if args.data:
        data = answered(args.data, args.set)
    elif args.like:
        data = args.workspace.runs.config_of(args.workspace.runs.get(args.like).id).data
    elif args.preset:
        data = config.Scenes() if args.preset == "scenes" else presets.preset(args.preset).data
    model = model_of(args.model)
    made = run_of(model, data, name=args.name, cache=args.workspace.folder / "cache", progress=lambda share, note: None)
    return _changed(made, args.set)


def _changed(made: config.Run, changes: list[str]) -> config.Run:
    """Return the run with the fields that `--set` names, checked.

    Raises:
        ConfigError: A change is none, or contradicts others.
    """
    import dataclasses

    from trainer import config

    for change in changes:
        field, equals, value = change.partition("=")
        if not equals:
            raise config.ConfigError(f"--set {change}: write FIELD=VALUE, e.g. data.heldout_share=0.5.")
        made = config.replace(made, field.strip(), value.strip())
    made = dataclasses.replace(made, data=config.absolute(made.data))
    config.check(made)
    return made
