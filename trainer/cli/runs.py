"""`trainer runs`: lists runs, shows one in full, and renames, deletes, restores or purges it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainer.untrusted import shell
from trainer.untrusted.files import expanded, spelled
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.experiments.counted import RunGroup
    from trainer.store import RunRow, Workspace
    from trainer.store.run_values import ValueColumn

GROUP = "Train"
HELP = "list, filter, tag, note, archive, rename, delete, restore, purge, import or export runs; pause, save, evaluate"

_REQUESTS: Final = {
    "pause": "pauses after the current step, with its model in memory",
    "resume": "continues",
    "save": "writes a checkpoint",
    "evaluate": "measures itself",
}
_ORDER: Final = ("tag", "note", "archive", "unarchive")
_ACTIONS: Final = ("list", "show", "rename", *_ORDER, "delete", "restore", "purge", "import", "export", *_REQUESTS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action, its run, and the new name."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = (
        "trainer runs                      all runs\n"
        "trainer runs show RUN             everything known about one\n"
        "trainer runs rename RUN NAME      give it another name\n"
        "trainer runs list --filter TEXT   those that fit: 'objective:cloob beta>8 tag:paper -is:failed'\n"
        "trainer runs list --columns F F   with fields of configurations, or numbers: beta image_to_text_R@5\n"
        "trainer runs list --group-by F    in groups of equal experiment, arm, tag, objective.beta\n"
        "trainer runs tag RUN --add paper --remove old   --filter TEXT in place of RUN: of all that fit\n"
        "trainer runs note RUN TEXT        write its note (Markdown); without TEXT print it\n"
        "trainer runs archive RUN          put it away; unarchive takes it back; --filter TEXT as above\n"
        "trainer runs delete RUN           hide it; its files stay\n"
        "trainer runs restore RUN          show a deleted one again\n"
        "trainer runs purge RUN            remove it and its files for good\n"
        "trainer runs import FOLDER        take over a run folder of another workspace, as a new run that has ended\n"
        "trainer runs import PATH --from tensorboard|wandb|open_clip [NAME]   curves of another program, as runs\n"
        "trainer runs export RUN --format open_clip|hf|safetensors|onnx --out FOLDER   its model for other libraries\n"
        "trainer runs pause RUN            pause after the current step, with the model in memory\n"
        "trainer runs resume RUN           continue after a pause, or from the newest checkpoint\n"
        "trainer runs save RUN             write a checkpoint now\n"
        "trainer runs evaluate RUN         measure now"
    )
    parser.add_argument("action", nargs="?", default="list", choices=_ACTIONS, metavar="ACTION", help="see above")
    parser.add_argument("run", nargs="?", metavar="RUN", help="number, name or folder; for import, the folder")
    parser.add_argument("name", nargs="?", metavar="NAME|TEXT", help="the new name, or the note")
    parser.add_argument("--filter", default=None, metavar="TEXT", help="list, tag, archive: the runs that fit it")
    parser.add_argument("--add", nargs="+", default=[], metavar="TAG", help="tag: these, each a word")
    parser.add_argument("--remove", nargs="+", default=[], metavar="TAG", help="tag: without these")
    parser.add_argument("--columns", nargs="+", default=[], metavar="FIELD", help="list: further columns")
    parser.add_argument(
        "--group-by", nargs=1, default=[], metavar="FIELD", help="list: experiment, tag, objective.beta"
    )
    parser.add_argument("--deleted", action="store_true", help="list the deleted runs instead")
    parser.add_argument(
        "--from",
        dest="tracker",
        choices=("auto", "tensorboard", "wandb", "open_clip", "bundle"),
        help="of import (auto, unless FOLDER is one of a run): PATH holds event files of TensorBoard, a history "
        "of Weights & Biases (CSV, JSON lines, Parquet, or the folder wandb), results of open_clip, or is an evidence "
        "bundle",
    )
    parser.add_argument(
        "--format",
        choices=("open_clip", "hf", "safetensors", "onnx"),
        default="open_clip",
        help="of export (open_clip)",
    )
    parser.add_argument("--out", metavar="FOLDER", help="of export: a new folder (default: the run's name)")
    parser.add_argument("--push", metavar="OWNER/NAME", help="of export: upload the folder to the hub, privately")
    parser.add_argument("--public", action="store_true", help="with --push: a new repository is public")
    parser.add_argument("--step", type=int, metavar="N", help="of export: which checkpoint (the newest)")


def run(args: argparse.Namespace) -> int:
    """Run the action and print its result."""
    from trainer.store import StoreError

    if args.action != "list" and args.run is None and args.filter is None:
        what = {"rename": "RUN NAME", "import": "FOLDER"}.get(args.action, "RUN")
        raise StoreError(f"Say which run: trainer runs {args.action} {what}.")
    if args.action == "rename" and not args.name:
        raise StoreError(f"Say the new name: trainer runs rename {args.run} NAME.")
    workspace: Workspace = args.workspace
    workspace.reconcile()
    document: Any
    if args.action == "list":
        text, document = _list(workspace, args)
    elif args.action in _ORDER:
        text, document = _order(workspace, args)
    elif args.action == "import" and (args.tracker or not _is_run_folder(expanded(args.run))):
        text, document = _import_curves(workspace, args)
    elif args.action == "import":
        row = workspace.runs.get(workspace.import_run(expanded(args.run)))
        text, document = f"Run {row.id} ({row.name}) is a copy of {args.run}: {row.status}.", _plain(row)
    elif args.action == "export":
        text, document = _export(workspace, args)
    elif args.action == "show":
        row = workspace.runs.get(args.run)
        document = _whole(workspace, row)
        text = _description(workspace, row)
    else:
        text, document = _change(workspace, args)
    say_json(json.dumps(document, indent=1)) if args.json else say(text)
    return 0


def _list(workspace: Workspace, args: argparse.Namespace) -> tuple[str, list[dict[str, Any]]]:
    from trainer.experiments.counted import run_groups
    from trainer.store.run_filter import parse
    from trainer.store.run_values import fitting, grouped, read_columns, read_values, unknown_fields

    run_filter = parse(args.filter or "")
    rows = fitting(workspace, run_filter, workspace.runs.deleted() if args.deleted else None)
    columns = read_columns(workspace, args.columns, rows)
    groups = {run.id: entry.title for by in read_columns(workspace, args.group_by, rows) for entry in grouped(rows, by)
              for run in entry.runs}  # fmt: skip
    rows = [row for title in dict.fromkeys(groups.values()) for row in rows if groups[row.id] == title] or rows
    silent = _silent(workspace, rows)
    titles = dict.fromkeys(groups.values())
    counted = run_groups(workspace, [(t, [r for r in rows if groups[r.id] == t]) for t in titles], paired=False)
    reasons = {entry.run.id: entry.reason for group in counted for entry in group.members}
    document = [
        _plain(row, silent)
        | {"columns": {entry.name: value for entry in columns if (value := entry.value(row)) is not None}}
        | ({"group": groups[row.id], "not_counted": reasons[row.id]} if groups else {})
        for row in rows
    ]
    text = _table(rows, silent, columns, counted)
    if lost := workspace.runs.unlisted():
        from trainer.store.run_table import lost_words

        text = lost_words(lost) if not rows else f"{text}\n{lost_words(lost)}"
    if not rows and args.filter and workspace.runs.all():
        strange = unknown_fields(read_values(workspace, run_filter.fields, workspace.runs.all()), run_filter.fields)
        text = "No run fits this filter." + (f" No run has a field or number {', '.join(strange)}." if strange else "")
    return text, document


def _order(workspace: Workspace, args: argparse.Namespace) -> tuple[str, Any]:
    """Tag, annotate or archive one run, or all that fit a filter."""
    from trainer.store import StoreError
    from trainer.store.run_values import fitting

    if args.filter is not None:
        text = args.filter if args.action != "unarchive" else f"{args.filter} is:archived"
        rows = fitting(workspace, text)
    else:
        rows = [workspace.runs.get(args.run)]
    runs, plural = [row.id for row in rows], "s" if len(rows) != 1 else ""
    if args.action == "note":
        if args.filter is not None:
            raise StoreError("A note is of one run. Name it: trainer runs note RUN TEXT.")
        if args.name is not None:
            workspace.runs.write_note(runs[0], args.name)
        note = workspace.runs.get(runs[0]).note
        return note or f"Run {runs[0]} has no note.", {"id": runs[0], "note": note}
    if args.action == "tag":
        if not (args.add or args.remove):
            raise StoreError("Say which tags: trainer runs tag RUN --add paper --remove old.")
        workspace.runs.tag(runs, args.add, args.remove)
    else:
        (workspace.runs.archive if args.action == "archive" else workspace.runs.unarchive)(runs)
    done = {"tag": "tagged", "archive": "archived", "unarchive": "back from the archive"}[args.action]
    rows = [workspace.runs.get(run) for run in runs]
    return f"{len(runs)} run{plural} {done}.", [_plain(row) for row in rows]


def _is_run_folder(path: Path) -> bool:
    """Return whether a folder looks like one of a run; damaged ones do."""
    return any((path / name).exists() for name in ("config.toml", "run.json", "metrics.jsonl"))


def _import_curves(workspace: Workspace, args: argparse.Namespace) -> tuple[str, list[dict[str, Any]]]:
    """Import curves of another program, or the runs of an evidence bundle: one run or several."""
    from trainer.distribution.bundle_files import is_bundle
    from trainer.trackers.bundles import import_bundle
    from trainer.trackers.importing import import_curves

    path = expanded(args.run)
    if args.tracker == "bundle" or (args.tracker in (None, "auto") and is_bundle(path)):
        imported = import_bundle(workspace, path)
    else:
        kind = args.tracker if args.tracker != "auto" else None
        imported = import_curves(workspace, path, kind, name=args.name or "")
    lines = [
        f"Run {new.id} ({new.name}): {new.curves:,} curve{'s' * (new.curves != 1)}, "
        f"{new.numbers:,} number{'s' * (new.numbers != 1)}."
        for new in imported
    ]
    lines += dict.fromkeys(sentence for new in imported for sentence in new.notes)
    return "\n".join(lines), [dataclasses.asdict(new) for new in imported]


def _export(workspace: Workspace, args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Write the model of a run for another library."""
    from trainer.inference.export_model import export_model

    row = workspace.runs.get(args.run)
    folder = expanded(args.out or f"{row.folder.name}-{args.format}").absolute()
    made = export_model(workspace, row.id, folder, args.format, step=args.step)
    text = f"The model of run {row.id} ({row.name}) at step {made.step} is in {folder}: {', '.join(made.files)}."
    document = {"id": row.id, "step": made.step, "folder": str(folder), "files": list(made.files)}
    if args.push:
        from trainer.inference.hub_upload import push

        document["pushed"] = push(folder, args.push, public=args.public)
        text += f" Pushed to {args.push}: {document['pushed']}"
    return text, document


def _change(workspace: Workspace, args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    before = workspace.runs.get(args.run)
    number = before.id
    if args.action in _REQUESTS:
        return _request(workspace, before, args.action)
    if args.action == "purge":
        workspace.purge(number)
        return f"Run {number} ({before.name}) and its files are gone.", {"id": number, "purged": True}
    if args.action == "rename":
        workspace.runs.rename(number, args.name)
        said = f"Run {number} ({before.name}) is now called {args.name}."
    elif args.action == "delete":
        workspace.delete(number)
        said = f"Run {number} ({before.name}) is deleted. To get it back: trainer runs restore {number}."
    else:
        workspace.runs.restore(number)
        said = f"Run {number} ({before.name}) is back."
    return said, _plain(workspace.runs.get(number))


def _request(workspace: Workspace, row: RunRow, action: str) -> tuple[str, dict[str, Any]]:
    """Send a request to the run's trainer; `resume` restarts a run that has ended."""
    from trainer.scheduling import launch

    if not workspace.is_alive(row.id):
        if action != "resume":
            raise launch.LaunchError(f"Run {row.id} ({row.name}) is {row.status}: it has no running trainer.")
        pid = launch.start_detached(workspace, row.id)
        return f"Run {row.id} ({row.name}) continues as process {pid}.", _plain(workspace.runs.get(row.id))
    workspace.runs.ask(row.id, "" if action == "resume" else action)  # type: ignore[arg-type]
    return f"Run {row.id} ({row.name}) {_REQUESTS[action]}.", _plain(workspace.runs.get(row.id))


def _silent(workspace: Workspace, rows: list[RunRow]) -> dict[int, str]:
    """Return why each live trainer that does not respond is silent, and what to do."""
    from trainer.scheduling.unresponsive import why_silent

    return {row.id: reason for row in rows if row.active and (reason := why_silent(workspace, row.id))}


def _table(
    rows: list[RunRow],
    silent: dict[int, str],
    columns: Sequence[ValueColumn] = (),
    groups: Sequence[RunGroup] = (),
) -> str:
    from trainer.experiments.counted import counted_line
    from trainer.metrics import headline_name, metric

    if not rows:
        return "No runs here yet. Start the demo runs: trainer demo."
    head = ("ID", "NAME", "OBJECTIVE", "DATA", "STATUS", "STEP", "LAST", "BEST", "TRAINED")
    lines = [(*head, *(chosen_column.title for chosen_column in columns))]
    for row in rows:
        number = metric(row.metric)
        step = f"{row.step}/{row.total_steps}" if row.total_steps else "–"
        best, last = number.text(row.best), number.text(row.last)
        status = "not responding" if row.id in silent else row.phase if row.out_of_reach else row.status
        cells = (str(row.id), row.name, row.objective, row.data, status, step, last, best, _span(row.duration_s))
        lines.append((*map(spelled, cells), *(spelled(chosen_column.text(row)) or "–" for chosen_column in columns)))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    written = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    firsts = {group.members[0].run.id: group for group in groups if group.members}
    for index in range(len(rows), 0, -1):
        if group := firsts.get(rows[index - 1].id):
            many, n = len(group.members), len(group.counted)
            counts = "" if n == many else f", {n} counted"
            written.insert(index, f"{spelled(group.name)} ({many} run{'s' * (many != 1)}{counts})")
    names = sorted({headline_name(row.metric, row.facts) for row in rows if row.last is not None})
    last = f"\nLast and best are of: {'; '.join(names)}." if names else ""
    warning = "".join(f"\nRun {run} does not respond. {reason}" for run, reason in silent.items())
    left_out = f"\n{line}" if (line := counted_line(groups)) else ""
    return "\n".join(written) + left_out + last + warning


def _description(workspace: Workspace, row: RunRow) -> str:
    from trainer import config
    from trainer.catalog import ZERO_SHOT, suite_of_facts
    from trainer.metrics import metric
    from trainer.trackers.importing import SETTINGS
    from trainer.training import provenance

    lines = [f"Run {row.id}: {row.name}", f"  status    {row.status}{' - ' + row.reason if row.reason else ''}"]
    lines += [f"  silent    It does not respond. {reason}" for reason in _silent(workspace, [row]).values()]
    lines += [f"  folder    {row.folder}", f"  trained   {_span(row.duration_s)}, step {row.step} of {row.total_steps}"]
    if row.tags:
        lines.append(f"  tags      {row.tags}")
    if row.archived_at is not None:
        lines.append(f"  archived  {time.strftime('%Y-%m-%d %H:%M', time.localtime(row.archived_at))}")
    hidden = (provenance.SESSIONS, SETTINGS, ZERO_SHOT)
    lines += [f"  {name:<9} {value}" for name, value in row.facts.items() if name not in hidden]
    settings = row.facts.get(SETTINGS)
    lines += [
        f"  imported  {name} = {value}" for name, value in (settings if isinstance(settings, dict) else {}).items()
    ]
    if suite := suite_of_facts(row.facts.get(ZERO_SHOT)):
        lines.append(f"  zero-shot {len(suite.classes):,} classes in {', '.join(map(repr, suite.templates[:3]))}"
                     f"{f' and {len(suite.templates) - 3:,} more' if len(suite.templates) > 3 else ''}")  # fmt: skip
    # A line end in a text of others would begin a line of theirs; a note may have several.
    lines = [spelled(line) for line in lines]
    if row.note:
        lines.append("  note      " + row.note.replace("\n", "\n            "))
    lines += _sessions(row)
    lines.append(f"To repeat it: {joined(provenance.repeat_command(workspace, row))}")
    best = workspace.results.best_values(row.id)
    lines.append("Numbers (last, best)")
    for name, value in workspace.results.last_values(row.id).items():
        number = metric(name)
        lines.append(f"  {name:<34} {number.text(value):>16}  {number.text(best.get(name)):>16}")
    for label, listed in (
        ("Checkpoints", workspace.results.checkpoints(row.id)),
        ("Snapshots", workspace.results.snapshots(row.id)),
    ):
        steps = sorted({item.step for item in listed})
        lines.append(f"{label}: {', '.join(map(str, steps)) or 'none'}")
    lines += [f"  {name}" for name in _snapshot_sizes(workspace, row)]
    lines.append("Configuration")
    flat = config.flatten(workspace.runs.config_of(row.id))
    lines += [spelled(f"  {name} = {value}") for name, value in flat.items()]
    return "\n".join(lines)


def _sessions(row: RunRow) -> list[str]:
    """Return one line per training session: when, from which step, on what device, by which source."""
    from trainer.training import provenance

    lines = []
    for session in provenance.sessions_of(row.facts):
        git = session.get("git") or {}
        source = f"commit {git['commit'][:12]}{' and changes' if git.get('changed') else ''}" if git else "no git"
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(session["at"]))
        lines.append(
            f"  session    {at} from step {session.get('step')} on {session.get('host')}: "
            f"{session.get('gpu') or session.get('cpu')}, "
            f"{session.get('threads')} threads; version {session.get('version')}, {source}, "
            f"torch {session['versions'].get('torch')}"
        )
        lines.append(f"            {joined(session['command'])}")
    return [spelled(line) for line in lines]


def joined(arguments: list[str]) -> str:
    """Join the words to a command line for this system's shell."""
    return shell.join(arguments)


def _snapshot_sizes(workspace: Workspace, row: RunRow) -> list[str]:
    """Return the disk space of the snapshots, and of their features if there are any."""
    from trainer.store.snapshot_files import snapshot_bytes

    sizes = [snapshot_bytes(snapshot.folder) for snapshot in workspace.results.snapshots(row.id)]
    if not sizes:
        return []
    total, features = (
        sum(sum(size.values()) for size in sizes),
        [size["features.npy"] for size in sizes if "features.npy" in size],
    )
    features_note = f", {sum(features) / 2**20:.1f} MiB of it features of {len(features)}" if features else ""
    return [f"on the disk {total / 2**20:.1f} MiB{features_note}"]


def _whole(workspace: Workspace, row: RunRow) -> dict[str, Any]:
    from trainer import config
    from trainer.store.snapshot_files import snapshot_bytes
    from trainer.training import provenance

    return {
        **_plain(row, _silent(workspace, [row])),
        "repeat": provenance.repeat_command(workspace, row),
        "config": config.flatten(workspace.runs.config_of(row.id)),
        "last_values": _finite(workspace.results.last_values(row.id)),
        "best_values": _finite(workspace.results.best_values(row.id)),
        "checkpoints": [
            {"step": c.step, "folder": str(c.folder), "best": c.best} for c in workspace.results.checkpoints(row.id)
        ],
        "snapshots": [
            {"step": s.step, "dataset": s.dataset, "split": s.split, "folder": str(s.folder), "n": s.n, "d": s.d}
            | {"bytes": snapshot_bytes(s.folder)}
            for s in workspace.results.snapshots(row.id)
        ],
        "evaluations": [
            {"step": e.step, "dataset": e.dataset, "split": e.split, "metrics": _finite(e.metrics)}
            | {"question": dataclasses.asdict(e.question) if e.question else None}
            for e in workspace.results.answers(row.id)
        ],
    }


def _plain(row: RunRow, silent: dict[int, str] | None = None) -> dict[str, Any]:
    plain = dataclasses.asdict(row) | {"folder": str(row.folder), "duration_s": row.duration_s}
    return plain if silent is None else plain | {"not_answering": silent.get(row.id, "")}


def _finite(values: dict[str, float]) -> dict[str, float | str]:
    return {name: value if math.isfinite(value) else str(value) for name, value in values.items()}


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return time.strftime("%H:%M:%S", time.gmtime(seconds)) if seconds < 86_400 else f"{seconds / 3600:.1f} h"
