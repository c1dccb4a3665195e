"""`trainer data`: writes the built-in images, or shows what a run would learn from."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer import config
from trainer.cli import _data_quality
from trainer.cli._progress import report
from trainer.format_detection import open_question, other_ways, propose
from trainer.untrusted import shell
from trainer.untrusted.escaping import cell
from trainer.untrusted.files import expanded, spelled
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.data.duplicates import Group
    from trainer.data.survey import Survey

GROUP = "Maintain"
HELP = "write the built-in images, or show the pairs of a preset, folder or table and their problems"

_PROBLEMS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions: `scenes`, `show`, `duplicates` and those about the quality of a run's data."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    write = actions.add_parser("scenes", help="draw Scenes and print its folder")
    write.add_argument("--out", type=Path, metavar="DIR", help="new folder (default: in the workspace)")
    _add_scenes_fields(write)
    show = actions.add_parser("show", help="counts, ten example pairs, and every problem")
    _add_choice(show)
    show.add_argument("--quick", action="store_true", help="list the pairs only, without decoding images")
    show.add_argument(
        "--report", type=Path, metavar="FILE", help="write unused and unusual items to a .csv or .parquet"
    )
    same = actions.add_parser("duplicates", help="near-duplicate images, also across the split")
    _add_choice(same)
    same.add_argument(
        "--bits",
        type=int,
        default=4,
        choices=range(17),
        metavar="0-16",
        help="of the perceptual hash of 64 that may differ (4)",
    )
    same.add_argument(
        "--out", type=Path, metavar="FILE", help="write a cleaned list of pairs (.csv or .parquet) to train on"
    )
    for action in (write, show, same, *_data_quality.add_actions(actions)):
        # Repeated here so that they may follow the action; SUPPRESS keeps what was given before it.
        action.add_argument("--workspace", type=Path, default=argparse.SUPPRESS, metavar="DIR", help="folder of runs")
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the action; return 0, or 1 if pairs had problems or a held-out image is also a training image."""
    if action := _data_quality.WAYS.get(args.action):
        return action(args, report)
    return {"scenes": _write_scenes, "show": _show, "duplicates": _duplicates}[args.action](args)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the choice of pairs, and how to read them."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--preset", metavar="NAME", help="the data of a preset")
    which.add_argument("--data", metavar="PATH", help="a folder, table or tar; the layout is detected")
    which.add_argument("--folder", metavar="DIR", help="images with .txt captions next to them")
    which.add_argument("--table", metavar="FILE", help="table of images and captions")
    which.add_argument("--config", type=Path, metavar="FILE", help="the data of a run's config.toml")
    parser.add_argument("--image-column", metavar="NAME", help="of a table; as --set data.image_column=NAME")
    parser.add_argument("--caption-column", metavar="NAME", help="of a table; as --set data.caption_column=NAME")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="e.g. data.separator=tab; repeatable"
    )
    parser.add_argument("--image-size", type=int, default=64, metavar="PX", help="default: %(default)s")


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
        folder = scenes.write(chosen, args.out.expanduser().absolute(), report)
    else:
        args.workspace.check_mine()
        folder = scenes_folder(chosen, args.workspace.folder, report)
    say_json(json.dumps({"folder": str(folder)})) if args.json else say(folder)
    return 0


def _show(args: argparse.Namespace) -> int:
    from trainer.data import DataError
    from trainer.data.survey import as_json, report_lines, survey

    proposal = propose(args.data) if args.data else None
    data = _chosen(args, proposal.data if proposal else _named(args))
    question = open_question(proposal, args.set) if proposal else ""
    surveyed = survey(
        data,
        image_size=args.image_size,
        workspace_folder=args.workspace.folder,
        opened=not args.quick,
        progress=report,
    )
    if args.report:
        from trainer.render_mpl.import_report import write_report

        write_report(args.report.expanduser(), report_lines(surveyed))
    if args.json:
        lists = {"problems": surveyed.problems, "other_parts": surveyed.other_parts}
        lines = {key: [{"path": path, "reason": reason} for path, reason in items] for key, items in lists.items()}
        remarks = [{"path": path, "remark": remark} for path, remark in surveyed.remarks]
        say_json(json.dumps(as_json(surveyed) | {"question": question, **lines, "remarks": remarks}, indent=2))
    else:
        _print_survey(surveyed)
        if surveyed.opened and not surveyed.trouble:
            note = f"The prepared images are in {args.workspace.folder / 'cache'} until 30 days after their last use"
            say(spelled(f"{note}; --quick opens and keeps none."))
    if surveyed.trouble:
        offered = other_ways(proposal) if proposal and proposal.data == data else ""
        raise DataError(f"{surveyed.trouble} {offered}".strip())
    if question:
        raise config.ConfigError(question)
    return 1 if surveyed.problems else 0


def _duplicates(args: argparse.Namespace) -> int:
    from trainer.data import load
    from trainer.data.duplicates import PAIR, cleaned, groups_of
    from trainer.render_mpl.import_report import write_table

    proposal = propose(args.data) if args.data else None
    data = _chosen(args, proposal.data if proposal else _named(args))
    if proposal and (question := open_question(proposal, args.set)):
        raise config.ConfigError(question)
    where = {"image_size": args.image_size, "workspace_folder": args.workspace.folder}
    splits = load(data, **where, progress=report)
    groups = groups_of(splits, bits=args.bits)
    files: list[Path] = []
    if args.out:
        file = args.out.expanduser()
        files = [file, file.with_name(f"{file.stem}-heldout{file.suffix}")]
        tables = cleaned(splits, groups)
        _check_kept(file, tables)
        for each, rows in zip(files, tables, strict=True):
            write_table(each, PAIR, rows)
    if args.json:
        say_json(json.dumps({"groups": [dataclasses.asdict(group) for group in groups], "files": [*map(str, files)]}))
    else:
        _print_duplicates(groups, files)
    return int(any(group.leaks for group in groups))


def _check_kept(file: Path, tables: Iterable[Sequence[tuple[str, ...]]]) -> None:
    """Refuse a CSV whose captions would not be those to train on: formulas of spreadsheets get an apostrophe there."""
    if file.suffix.lower() != ".csv":
        return
    changed = sum(cell(text) != text for rows in tables for row in rows for text in row)
    if changed:
        raise config.ConfigError(
            f"{changed:,} text{'s' * (changed != 1)} would be changed in a CSV, because spreadsheets would run them as "
            f"formulas. Write {spelled(file.with_suffix('.parquet').name)} instead."
        )


def _print_duplicates(groups: Sequence[Group], files: Sequence[Path]) -> None:
    leaks = sum(len(group.heldout) for group in groups if group.leaks)
    say(
        f"{len(groups):,} group{'s' * (len(groups) != 1)} of near-duplicate images; held-out images that are also "
        f"training images: {leaks:,}."
    )
    for group in groups[:_PROBLEMS]:
        say("  " + spelled("  =  ".join([*group.train, *(f"{path} (held out)" for path in group.heldout)])))
    if len(groups) > _PROBLEMS:
        say(f"  and {len(groups) - _PROBLEMS:,} more; --json lists them all.")
    if files:
        gone = sum(len(group.dropped) for group in groups)
        arguments = ["trainer", "fit", "--data", str(files[0]), "--set", f"data.heldout_path={files[1].absolute()}"]
        say(f"Left out of {spelled(str(files[0]))}: {gone:,} picture{'s' * (gone != 1)}.")
        say(f"Train on it: {shell.join(arguments)}")


def _chosen(args: argparse.Namespace, data: config.Data) -> config.Data:
    """Return the data with the fields changed by the arguments."""
    changes = list(args.set)
    for name in ("image_column", "caption_column"):
        if (value := getattr(args, name)) is not None:
            changes.append(f"data.{name}={value}")
    made = config.Run(data=data)
    for change in changes:
        field, equals, value = change.partition("=")
        if not equals or not field.strip().startswith("data"):
            raise config.ConfigError(f"--set {change}: write data.FIELD=VALUE, e.g. data.separator=tab.")
        made = config.replace(made, field.strip(), value.strip())
    return made.data


def _named(args: argparse.Namespace) -> config.Data:
    if args.preset:
        from trainer.config.presets import preset

        return preset(args.preset).data
    if args.config:
        return config.read(args.config).data
    if args.folder:
        return config.Folder(path=str(expanded(args.folder).absolute()))
    return config.Table(path=str(expanded(args.table).absolute()))


def _print_survey(surveyed: Survey) -> None:
    from trainer.experiments.held_out import few_captions

    say(f"{surveyed.data.label}: {surveyed.name}")
    for split, pairs in surveyed.pairs.items():
        say(f"{split:<14}{pairs:>9,} pairs")
    if surveyed.split:
        say(spelled(surveyed.split))
    if surveyed.classes:
        say(f"{surveyed.classes:,} {'class' if surveyed.classes == 1 else 'classes'}")
    if surveyed.columns:
        say(f"Columns: {spelled(', '.join(surveyed.columns))}")
    if surveyed.examples:
        say(f"\n{len(surveyed.examples)} training pairs, spread evenly:")
    for example in surveyed.examples:
        say(f"  {spelled(example.path)}\n      {spelled(example.caption[:110])}")
    listed = "used" if surveyed.opened else "listed (their images were not decoded)"
    if surveyed.pairs.get("train") == 0:
        listed = "held out, none to train on"
    pairs = "pair" if surveyed.used == 1 else "pairs"
    left_out = f"; {surveyed.found - surveyed.used:,} not used" if surveyed.found > surveyed.used else ""
    say(f"\n{surveyed.used:,} {pairs} {listed}{left_out}.")
    if surveyed.bytes_needed:
        needed, free = surveyed.bytes_needed / 2**20, surveyed.bytes_free / 2**20
        say(f"Prepared at {surveyed.image_size} px they take {needed:,.1f} MiB; {free:,.0f} MiB are free.")
    if surveyed.passed_over:
        named = ", ".join(f"{count:,} {spelled(ending)}" for ending, count in surveyed.passed_over.items())
        say(f"Skipped, neither image nor text: {named}.")
    for sentence in filter(None, (*surveyed.notes, few_captions(surveyed.captions, surveyed.used))):
        say(spelled(sentence))
    _print_some("Not used", surveyed.problems)
    _print_some("Used with a warning", surveyed.remarks)


def _print_some(title: str, lines: list[tuple[str, str]]) -> None:
    if not lines:
        return
    say(f"{title}:")
    for path, reason in lines[:_PROBLEMS]:
        say(f"  {spelled(path)}: {spelled(reason)}")
    if len(lines) > _PROBLEMS:
        say(f"  and {len(lines) - _PROBLEMS:,} more; --json lists them all.")
