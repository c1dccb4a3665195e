"""`trainer runs`: lists runs, shows one in full, and tags, renames, deletes, imports, exports or steers it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trainer.trackers.recognition import KINDS
from trainer.untrusted import shell
from trainer.untrusted.files import expanded, spelled
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.experiments.counted import RunGroup
    from trainer.store import RunRow, Workspace
    from trainer.store.run_values import ValueColumn

GROUP = "Train"
HELP = "list, filter, tag, note, archive, rename, delete, restore, purge, import or export runs; pause, save, evaluate"

Result: TypeAlias = "tuple[str, Any]"
"""What an action prints: a text, and the document of `--json`."""

_REQUESTS: Final = {
    "pause": (
        "pause after the current step, with the model in memory",
        "pauses after the current step, with its model in memory",
    ),
    "resume": ("continue after a pause, or from the newest checkpoint", "continues"),
    "save": ("write a checkpoint now", "writes a checkpoint"),
    "evaluate": ("measure now", "measures itself"),
}
"""Request of a trainer -> its help, and what is said once it is sent."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions, each with its arguments; without one, the runs are listed."""
    parser.set_defaults(act=_list)
    _add_list_options(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")

    def action(name: str, act: Callable[[Workspace, argparse.Namespace], Result], help: str) -> argparse.ArgumentParser:
        # Options of the command are repeated so that they may follow the action; SUPPRESS keeps what stood before it.
        added = actions.add_parser(name, help=help, description=help, argument_default=argparse.SUPPRESS)
        added.set_defaults(act=act)
        added.add_argument("--workspace", type=Path, metavar="DIR", help="folder of runs")
        added.add_argument("--json", action="store_true", help="print the result as JSON")
        return added

    _add_list_options(action("list", _list, "all runs, or those that fit a filter (the default)"))
    _add_run(action("show", _show, "everything known about a run"))
    rename = action("rename", _rename, "give a run another name")
    _add_run(rename)
    rename.add_argument("name", metavar="NAME", help="the new name")
    tag = action("tag", _tag, "add or remove tags")
    _add_run_or_filter(tag)
    tag.add_argument("--add", nargs="+", default=[], metavar="TAG", help="these, each a word")
    tag.add_argument("--remove", nargs="+", default=[], metavar="TAG", help="without these")
    note = action("note", _note, "write a run's note (Markdown); without TEXT print it")
    _add_run(note)
    note.add_argument("text", nargs="?", default=None, metavar="TEXT", help="the note")
    _add_run_or_filter(action("archive", _archive, "put runs away"))
    _add_run_or_filter(action("unarchive", _unarchive, "take runs back from the archive"))
    _add_run(action("delete", _delete, "hide a run; its files stay"))
    _add_run(action("restore", _restore, "show a deleted run again"))
    _add_run(action("purge", _purge, "remove a run and its files for good"))
    _add_import_arguments(action("import", _import, "take over a run folder of another workspace, or curves as runs"))
    _add_export_arguments(action("export", _export, "write a run's model for other libraries"))
    for name, (help, _) in _REQUESTS.items():
        _add_run(action(name, _request, help))


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="number, name or folder")


def _add_run_or_filter(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("run", nargs="?", default=None, metavar="RUN", help="number, name or folder")
    which.add_argument("--filter", default=None, metavar="TEXT", help="all runs that fit it, as of list")


def _add_list_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--filter", metavar="TEXT", help="those that fit: 'objective:cloob beta>8 tag:paper -is:failed'"
    )
    parser.add_argument("--columns", nargs="+", metavar="FIELD", help="fields of configurations, or numbers, too")
    parser.add_argument("--group-by", metavar="FIELD", help="groups of equal experiment, arm, tag, objective.beta")
    parser.add_argument("--deleted", action="store_true", help="the deleted runs instead")


def _add_import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="folder of a run, or what holds the curves")
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="of the run that curves become")
    parser.add_argument(
        "--from",
        dest="tracker",
        default=None,
        choices=("auto", *KINDS, "bundle"),
        help="what PATH holds (auto, unless it is the folder of a run): event files of TensorBoard, a history of "
        "Weights & Biases (CSV, JSON lines, Parquet, or the folder wandb), mlruns or mlflow.db of MLflow, results of "
        "open_clip, a training's log (CSV, JSON lines or printed lines with a step or epoch), or an evidence bundle",
    )


def _add_export_arguments(parser: argparse.ArgumentParser) -> None:
    _add_run(parser)
    parser.add_argument(
        "--format",
        choices=("open_clip", "hf", "safetensors", "onnx", "peft"),
        default="open_clip",
        help="for (open_clip)",
    )
    parser.add_argument("--out", default=None, metavar="FOLDER", help="a new folder (default: the run's name)")
    parser.add_argument("--push", default=None, metavar="OWNER/NAME", help="upload it to the hub, privately")
    parser.add_argument("--public", action="store_true", default=False, help="with --push: a new repository is public")
    parser.add_argument("--step", type=int, default=None, metavar="N", help="which checkpoint (the newest)")


def run(args: argparse.Namespace) -> int:
    """Run the action and print its result."""
    args.workspace.reconcile()
    text, document = args.act(args.workspace, args)
    say_json(json.dumps(document, indent=1)) if args.json else say(text)
    return 0


def _show(workspace: Workspace, args: argparse.Namespace) -> Result:
    run_row = workspace.runs.get(args.run)
    return _description(workspace, run_row), _whole(workspace, run_row)


def _list(workspace: Workspace, args: argparse.Namespace) -> Result:
    from trainer.experiments.counted import run_groups
    from trainer.store.run_filter import parse
    from trainer.store.run_values import fitting, grouped, read_columns, read_values, unknown_fields

    run_filter = parse(args.filter or "")
    rows = fitting(workspace, run_filter, workspace.runs.deleted() if args.deleted else None)
    columns = read_columns(workspace, args.columns or (), rows)
    by = read_columns(workspace, [args.group_by] if args.group_by else (), rows)
    groups = {run_row.id: group.title for column in by for group in grouped(rows, column) for run_row in group.runs}
    rows = [row for title in dict.fromkeys(groups.values()) for row in rows if groups[row.id] == title] or rows
    silent = _silent(workspace, rows)
    titles = dict.fromkeys(groups.values())
    counted = run_groups(workspace, [(t, [r for r in rows if groups[r.id] == t]) for t in titles], paired=False)
    reasons = {entry.run.id: entry.reason for group in counted for entry in group.members}
    document = [
        _plain(row, silent)
        | {"columns": {column.name: value for column in columns if (value := column.value(row)) is not None}}
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


def _chosen(workspace: Workspace, args: argparse.Namespace, more: str = "") -> list[int]:
    """Return the numbers of the run that is named, or of all that fit the filter and `more`."""
    from trainer.store.run_values import fitting

    if args.filter is None:
        return [workspace.runs.get(args.run).id]
    return [run_row.id for run_row in fitting(workspace, f"{args.filter}{more}")]


def _changed(workspace: Workspace, run_ids: list[int], done: str) -> Result:
    plural = "s" if len(run_ids) != 1 else ""
    return f"{len(run_ids)} run{plural} {done}.", [_plain(workspace.runs.get(run_id)) for run_id in run_ids]


def _tag(workspace: Workspace, args: argparse.Namespace) -> Result:
    from trainer.store import StoreError

    run_ids = _chosen(workspace, args)
    if not (args.add or args.remove):
        raise StoreError("Say which tags: trainer runs tag RUN --add paper --remove old.")
    workspace.runs.tag(run_ids, args.add, args.remove)
    return _changed(workspace, run_ids, "tagged")


def _archive(workspace: Workspace, args: argparse.Namespace) -> Result:
    run_ids = _chosen(workspace, args)
    workspace.runs.archive(run_ids)
    return _changed(workspace, run_ids, "archived")


def _unarchive(workspace: Workspace, args: argparse.Namespace) -> Result:
    run_ids = _chosen(workspace, args, " is:archived")
    workspace.runs.unarchive(run_ids)
    return _changed(workspace, run_ids, "back from the archive")


def _note(workspace: Workspace, args: argparse.Namespace) -> Result:
    run_id = workspace.runs.get(args.run).id
    if args.text is not None:
        workspace.runs.write_note(run_id, args.text)
    note = workspace.runs.get(run_id).note
    return note or f"Run {run_id} has no note.", {"id": run_id, "note": note}


def _import(workspace: Workspace, args: argparse.Namespace) -> Result:
    path = expanded(args.path)
    if args.tracker or not any((path / name).exists() for name in ("config.toml", "run.json", "metrics.jsonl")):
        return _import_curves(workspace, path, args)
    run_row = workspace.runs.get(workspace.import_run(path))
    return f"Run {run_row.id} ({run_row.name}) is a copy of {args.path}: {run_row.status}.", _plain(run_row)


def _import_curves(workspace: Workspace, path: Path, args: argparse.Namespace) -> Result:
    """Import curves of another program, or the runs of an evidence bundle: one run or several."""
    from trainer.distribution.bundle_files import is_bundle
    from trainer.trackers.bundles import import_bundle
    from trainer.trackers.import_curves import import_curves

    if args.tracker == "bundle" or (args.tracker in (None, "auto") and is_bundle(path)):
        imported = import_bundle(workspace, path)
    else:
        kind = args.tracker if args.tracker != "auto" else None
        imported = import_curves(workspace, path, kind, name=args.name)
    lines = [
        f"Run {new.id} ({new.name}): {new.curves:,} curve{'s' * (new.curves != 1)}, "
        f"{new.numbers:,} number{'s' * (new.numbers != 1)}."
        for new in imported
    ]
    lines += dict.fromkeys(sentence for new in imported for sentence in new.notes)
    return "\n".join(lines), [dataclasses.asdict(new) for new in imported]


def _export(workspace: Workspace, args: argparse.Namespace) -> Result:
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


def _rename(workspace: Workspace, args: argparse.Namespace) -> Result:
    before = workspace.runs.get(args.run)
    workspace.runs.rename(before.id, args.name)
    return f"Run {before.id} ({before.name}) is now called {args.name}.", _plain(workspace.runs.get(before.id))


def _delete(workspace: Workspace, args: argparse.Namespace) -> Result:
    run_row = workspace.runs.get(args.run)
    workspace.delete(run_row.id)
    text = f"Run {run_row.id} ({run_row.name}) is deleted. To get it back: trainer runs restore {run_row.id}."
    return text, _plain(workspace.runs.get(run_row.id))


def _restore(workspace: Workspace, args: argparse.Namespace) -> Result:
    run_row = workspace.runs.get(args.run)
    workspace.runs.restore(run_row.id)
    return f"Run {run_row.id} ({run_row.name}) is back.", _plain(workspace.runs.get(run_row.id))


def _purge(workspace: Workspace, args: argparse.Namespace) -> Result:
    run_row = workspace.runs.get(args.run)
    workspace.purge(run_row.id)
    return f"Run {run_row.id} ({run_row.name}) and its files are gone.", {"id": run_row.id, "purged": True}


def _request(workspace: Workspace, args: argparse.Namespace) -> Result:
    """Send a request to the run's trainer; `resume` restarts a run that has ended."""
    from trainer.scheduling import launch

    run_row, request = workspace.runs.get(args.run), args.action
    if not workspace.is_alive(run_row.id):
        if request != "resume":
            raise launch.LaunchError(
                f"Run {run_row.id} ({run_row.name}) is {run_row.status}: it has no running trainer."
            )
        done = f"continues as process {launch.start_detached(workspace, run_row.id)}"
    else:
        workspace.runs.ask(run_row.id, "" if request == "resume" else request)
        done = _REQUESTS[request][1]
    return f"Run {run_row.id} ({run_row.name}) {done}.", _plain(workspace.runs.get(run_row.id))


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
    from trainer.experiments.counted import counted_line, flaw_of
    from trainer.metrics import headline_name, metric

    if not rows:
        return "No runs here yet. Start the demo runs: trainer demo."
    head = ("ID", "LABEL", "NAME", "OBJECTIVE", "DATA", "STATUS", "STEP", "LAST", "BEST", "TRAINED")
    lines = [(*head, *(chosen_column.title for chosen_column in columns))]
    for row in rows:
        number = metric(row.metric)
        step = f"{row.step}/{row.total_steps}" if row.total_steps else "–"
        best, last = number.text(row.best), number.text(row.last)
        status = "not responding" if row.id in silent else row.phase if row.out_of_reach else row.status
        trained = _span(row.duration_s)
        cells = (str(row.id), row.short_name, row.name, row.objective, row.data, status, step, last, best, trained)
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
    flaws = "".join(f"\n{row.short_name} {flaw}" for row in rows if (flaw := flaw_of(row, fully=True)))
    names = sorted({headline_name(row.metric, row.facts) for row in rows if row.last is not None})
    last = f"\nLast and best are of: {'; '.join(names)}." if names else ""
    warning = "".join(f"\nRun {run} does not respond. {reason}" for run, reason in silent.items())
    left_out = f"\n{line}" if (line := counted_line(groups)) else ""
    return "\n".join(written) + left_out + last + flaws + warning


def _description(workspace: Workspace, row: RunRow) -> str:
    from trainer import alerts, config
    from trainer.metrics import metric
    from trainer.prompt_suites import ZERO_SHOT, suite_of_facts
    from trainer.scheduling import energy
    from trainer.store.rows import PLAN
    from trainer.store.run_texts import SETTINGS
    from trainer.training import provenance

    lines = [f"Run {row.id}: {row.name}", f"  status    {row.status}{' - ' + row.reason if row.reason else ''}"]
    lines.append(f"  label     {row.short_name}")
    lines += [f"  silent    It does not respond. {reason}" for reason in _silent(workspace, [row]).values()]
    lines += [f"  folder    {row.folder}", f"  trained   {_span(row.duration_s)}, step {row.step} of {row.total_steps}"]
    used = workspace.results.last_values(row.id)
    lines += [f"  energy    {energy.words(used[energy.METRIC])} of the GPUs"] if energy.METRIC in used else []
    if row.tags:
        lines.append(f"  tags      {row.tags}")
    if row.archived_at is not None:
        lines.append(f"  archived  {time.strftime('%Y-%m-%d %H:%M', time.localtime(row.archived_at))}")
    hidden = (provenance.SESSIONS, SETTINGS, ZERO_SHOT, alerts.BEST, PLAN)
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
    lines.append(f"To repeat it: {shell.join(provenance.repeat_command(workspace, row))}")
    best = workspace.results.best_values(row.id)
    lines.append("Numbers (last, best)")
    for name, value in used.items():
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
        lines.append(f"            {shell.join(session['command'])}")
    return [spelled(line) for line in lines]


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
