"""`trainer selections`: lists, saves, exports and deletes named selections of pairs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainer.errors import UserError
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.store import Workspace
    from trainer.store.selections import NamedSelection

GROUP = "Look"
HELP = "list named selections of pairs, write one as Parquet, CSV or list of images, keep or delete one"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action and its selection."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = (
        "trainer selections                                     all named selections\n"
        "trainer selections export NAME --out FILE ...          its pairs as .parquet or .csv, its images as .txt\n"
        "trainer selections keep NAME --run RUN --rows ROW ...  keep pairs under a name\n"
        "trainer selections delete NAME                         forget one"
    )
    parser.add_argument("action", nargs="?", default="list", choices=tuple(_WAYS), metavar="ACTION", help="see above")
    parser.add_argument("name", nargs="?", metavar="NAME", help="name or number of the selection")
    parser.add_argument("--data", metavar="DATASET-SPLIT", help="list: only of this data; else whose selection it is")
    parser.add_argument(
        "--out", nargs="+", type=Path, default=[], metavar="FILE", help="export: .parquet, .csv or .txt"
    )
    parser.add_argument("--run", metavar="RUN", help="whose snapshot describes the pairs")
    parser.add_argument("--rows", nargs="+", type=int, default=[], metavar="ROW", help="keep: rows of it, from 0")


def run(args: argparse.Namespace) -> int:
    """Run the action, and print the selections or the file written."""
    from trainer.render_mpl.files import json_text

    if args.action != "list" and not args.name:
        raise UserError(f"Say which selection: trainer selections {args.action} NAME.")
    answer = _WAYS[args.action](args.workspace, args)
    if args.json:
        say_json(json_text(answer))
    elif "selections" in answer:
        for row in answer["selections"]:
            say(f"{row['id']:>4}  {row['name']:<28} {row['n']:>9,} pairs  {row['data']}")
        if not answer["selections"]:
            say("No selection is kept. Select pairs on the Map and keep them under a name.")
    else:
        say("\n".join(answer.get("files", ())) or f"{answer['name']}: {answer['n']:,} pairs of {answer['data']}")
    return 0


def _list(workspace: Workspace, args: argparse.Namespace) -> dict[str, Any]:
    return {"selections": [_facts(s) for s in workspace.selections.all(args.data)]}


def _keep(workspace: Workspace, args: argparse.Namespace) -> dict[str, Any]:
    from trainer.charts.snapshots import choose_snapshot
    from trainer.store import of_split, read_snapshot

    if not args.run or not args.rows:
        raise UserError(f"Say which pairs: trainer selections keep {args.name} --run RUN --rows ROW ...")
    row = workspace.runs.get(args.run)
    keys = {str(each.key): each.key for each in workspace.results.snapshots(row.id)}
    if args.data and args.data not in keys:
        raise UserError(f"Run {row.name} has no snapshot of {args.data}; it has: {', '.join(keys) or 'none'}.")
    chosen = choose_snapshot(workspace, row, **of_split(keys.get(args.data)))
    if min(args.rows) < 0 or max(args.rows) >= chosen.n:
        raise UserError(f"The snapshot has rows 0 to {chosen.n - 1}; choose among these.")
    ids = read_snapshot(chosen.folder).items.id
    return _facts(workspace.selections.keep(args.name, str(chosen.key), list(ids[sorted(args.rows)])))


def _delete(workspace: Workspace, args: argparse.Namespace) -> dict[str, Any]:
    selection = workspace.selections.get(args.name, args.data)
    workspace.selections.drop(selection)
    return _facts(selection)


def _export(workspace: Workspace, args: argparse.Namespace) -> dict[str, Any]:
    from trainer.store import read_snapshot
    from trainer.store.selections import rows_of, write_selection

    if not args.out:
        raise UserError("Say where to write: --out pairs.parquet, for example.")
    selection = workspace.selections.get(args.name, args.data)
    runs = [workspace.runs.get(args.run)] if args.run else workspace.runs.all()
    fitting = [s for r in runs for s in workspace.results.snapshots(r.id) if str(s.key) == selection.dataset]
    if not fitting:
        raise UserError(f"No run has a snapshot of {selection.dataset}, which names the files. Train or import one.")
    items = read_snapshot(fitting[-1].folder).items
    rows = rows_of(selection, items)
    for file in args.out:
        write_selection(items, rows, file)
    missing = selection.n - len(rows)
    return {**_facts(selection), "written": len(rows), "missing": missing, "files": [str(file) for file in args.out]}


def _facts(selection: NamedSelection) -> dict[str, Any]:
    facts = {"id": selection.id, "name": selection.name, "data": selection.dataset, "n": selection.n}
    return {**facts, "created_at": selection.created_at}


_WAYS: Final = {"list": _list, "export": _export, "keep": _keep, "delete": _delete}
