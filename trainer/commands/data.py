"""`trainer data`: write the built-in pictures, or look at what a run would learn from."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from trainer import config

if TYPE_CHECKING:
    from trainer.data import DataSplits, Pairs

GROUP = "Maintain"
HELP = "write the built-in pictures, or show the pairs of a preset, folder or table and what is wrong with them"

_EXAMPLES = 10
_PROBLEMS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Two actions: `scenes` and `show`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    write = actions.add_parser("scenes", help="draw Scenes and print its folder")
    write.add_argument("--out", type=Path, metavar="DIR", help="new folder (default: in the workspace)")
    _add_scenes_fields(write)
    show = actions.add_parser("show", help="counts, ten example pairs, and every problem")
    which = show.add_mutually_exclusive_group(required=True)
    which.add_argument("--preset", metavar="NAME", help="the data of a preset")
    which.add_argument("--data", metavar="PATH", help="a folder, table or tar of whatever layout; it is recognised")
    which.add_argument("--folder", metavar="DIR", help="images with .txt captions beside them")
    which.add_argument("--table", metavar="FILE", help="table of images and captions")
    which.add_argument("--config", type=Path, metavar="FILE", help="the data of a run's config.toml")
    show.add_argument("--image-column", default=config.Table.image_column, help="default: %(default)s")
    show.add_argument("--caption-column", default=config.Table.caption_column, help="default: %(default)s")
    show.add_argument("--image-size", type=int, default=64, metavar="PX", help="default: %(default)s")
    for action in (write, show):
        # Repeated here so that they may follow the action; SUPPRESS keeps what was given before it.
        action.add_argument("--workspace", type=Path, default=argparse.SUPPRESS, metavar="DIR", help="folder of runs")
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Does the action; 0, or 1 when pairs had problems."""
    return _write_scenes(args) if args.action == "scenes" else _show(args)


def _add_scenes_fields(parser: argparse.ArgumentParser) -> None:
    for field in dataclasses.fields(config.Scenes):
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=config.field_type(config.Scenes, field.name),
            default=field.default,
            metavar=field.name.split("_")[-1].upper(),
            help=f"{field.metadata['help']} Default: %(default)s",
        )


def _write_scenes(args: argparse.Namespace) -> int:
    from trainer.data import scenes, scenes_folder

    values = {field.name: getattr(args, field.name) for field in dataclasses.fields(config.Scenes)}
    chosen = config.from_dict({"data": {"kind": "scenes", **values}}, source="trainer data scenes").data
    if args.out:
        folder = scenes.write(chosen, args.out.expanduser().absolute(), _print_progress())
    else:
        folder = scenes_folder(chosen, args.workspace.folder, _print_progress())
    print(json.dumps({"folder": str(folder)}) if args.json else folder)
    return 0


def _show(args: argparse.Namespace) -> int:
    from trainer.data import load

    splits = load(
        _chosen(args),
        image_size=args.image_size,
        workspace_folder=args.workspace.folder,
        progress=_print_progress(),
    )
    if args.json:
        print(json.dumps(_as_json(splits), indent=2))
    else:
        _print_splits(splits)
    return 1 if splits.report.problems else 0


def _chosen(args: argparse.Namespace) -> config.Data:
    if args.preset:
        from trainer.catalog import preset

        return preset(args.preset).data
    if args.config:
        return config.read(args.config).data
    if args.data:
        return config.recognise(args.data)
    if args.folder:
        return config.Folder(path=str(Path(args.folder).expanduser().absolute()))
    return config.Table(
        path=str(Path(args.table).expanduser().absolute()),
        image_column=args.image_column,
        caption_column=args.caption_column,
    )


def _as_json(splits: DataSplits) -> dict:
    pairs = [splits.train, *splits.heldout.values()]
    return {
        "name": splits.train.name,
        "pairs": {part.split: len(part) for part in pairs},
        "fingerprints": {part.split: part.fingerprint for part in pairs},
        "examples": [{"path": path, "caption": caption} for path, caption in _examples(splits.train)],
        "suite": splits.suite.name if splits.suite else None,
        "used": splits.report.used,
        "problems": [{"path": path, "reason": reason} for path, reason in splits.report.problems],
        "remarks": [{"path": path, "remark": remark} for path, remark in splits.report.remarks],
    }


def _print_splits(splits: DataSplits) -> None:
    for part in (splits.train, *splits.heldout.values()):
        classes = len(set(part.labels) - {""})
        print(f"{part.split:<14}{len(part):>9,} pairs" + (f", {classes:,} classes" if classes else ""))
    print("\nThe first training pairs:")
    for path, caption in _examples(splits.train):
        print(f"  {path}\n      {caption[:110]}")
    report = splits.report
    found = report.used + len(report.problems)
    print(f"\n{found:,} pairs found: {report.used:,} used, {len(report.problems):,} not.")
    _print_some("Not used", report.problems)
    _print_some("Used, but odd", report.remarks)


def _print_some(title: str, lines: list[tuple[str, str]]) -> None:
    if not lines:
        return
    print(f"{title}:")
    for path, words in lines[:_PROBLEMS]:
        print(f"  {path}: {words}")
    if len(lines) > _PROBLEMS:
        print(f"  and {len(lines) - _PROBLEMS:,} more; --json lists them all.")


def _examples(pairs: Pairs) -> list[tuple[str, str]]:
    return list(zip(pairs.paths, pairs.captions, strict=True))[:_EXAMPLES]


def _print_progress() -> Callable[[float, str], None]:
    """Prints the note to stderr, at most once a second and only for work that takes one."""
    last = time.monotonic()

    def progress(share: float, note: str) -> None:
        nonlocal last
        if time.monotonic() - last >= 1:
            last = time.monotonic()
            print(f"{share:4.0%}  {note}", file=sys.stderr, flush=True)

    return progress
