"""`python -m tests.benchmarks many_runs`: how long the window is blocked with thousands of runs.

Makes a workspace of so many runs with so many rows of curves each, and one of two runs. Starts the window on both in
turn and prints the seconds to the first paint; then goes through every view of the large one, scrolls, sorts, types,
shows columns of fields and metrics, groups, filters by tags and fields, and polls beside a run that trains, and prints
the longest stretches of computing with their calls.
"""

import argparse
import json
import sqlite3
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.opened import Opened, measured_apart, opened

OBJECTIVES = ("clip", "cloob", "siglip", "infoloob")
ENDS = ("finished", "finished", "finished", "stopped", "failed", "interrupted")
TAGS = ("", "paper", "paper baseline", "old", "")
COLUMNS = ("tag", "experiment", "seed", "objective.scale_hopfield", "val/image_to_text_R@1", "text_to_image_R@1")
GROUPS = ("experiment", "tag", "objective.scale_hopfield", "status")
NAMES = ("train/loss", "train/inv_tau", "train/lr", "val/image_to_text_R@1", "val/text_to_image_R@1")


def make(folder: Path, runs: int, rows: int) -> None:
    """Create a workspace of ended runs with `rows` curve values each, under five names.

    They have tags, notes and experiments, and every second is of CLOOB with one of ten values of beta.
    """
    from trainer import config
    from trainer.store import Workspace
    from trainer.store.run_files import folder_name

    space = Workspace(folder)
    first = space.runs.create(config.Run(name="run 0001"))
    space.runs.change(first, status="finished")
    space.close()
    base = sqlite3.connect(space.database_file, isolation_level=None)
    base.execute("PRAGMA cache_size=-600000")
    base.execute("PRAGMA synchronous=OFF")
    columns = [row[1] for row in base.execute("PRAGMA table_info(run)")]
    known = dict(zip(columns, base.execute("SELECT * FROM run").fetchone(), strict=True))
    base.execute("BEGIN")
    cloob = config.Run(name="run", objective=config.Cloob())
    written = [config.to_toml(config.replace(cloob, "beta", str(2 + 2 * place))) for place in range(10)]
    for number in range(2, runs + 1):
        name = f"run {number:04d}"
        row = known | {"id": number, "name": name, "folder": folder_name(number, name)}
        row |= {"objective": OBJECTIVES[number % 4], "status": ENDS[number % 6], "last": 1 / number}
        row |= {"started_at": known["created_at"] + 7919 * number % 100_003, "ended_at": known["created_at"] + 200_000}
        row |= {"tags": TAGS[number % 5], "note": f"# Run {number}" if number % 7 == 0 else ""}
        row |= {"experiment": f"experiment {number % 40}" if number % 4 else "", "arm": f"arm {number % 3}"}
        if number % 2:
            row |= {"objective": "cloob", "config": written[number % 20 // 2]}
        row |= {"step": rows // len(NAMES), "total_steps": rows // len(NAMES), "trained_s": 1000.0 + number}
        base.execute(f"INSERT INTO run VALUES ({','.join('?' * len(columns))})", [row[name] for name in columns])
        (space.runs_folder / row["folder"]).mkdir(mode=0o700)
    insert = "INSERT INTO scalar (run, name, step, value, time, elapsed_s) VALUES (?, ?, ?, ?, ?, ?)"
    steps, began = rows // len(NAMES), known["created_at"]
    for number in range(1, runs + 1):
        # Curve by curve, as the index has them: in the order of steps the making takes three times as long.
        values = (
            (number, name, i, 1 / (1 + i + number % 7), began + i, float(i))
            for name in sorted(NAMES)
            for i in range(steps)
        )
        base.executemany(insert, values)
    base.execute("COMMIT")
    base.close()


def measure(folder: Path, *, only_start: bool = False) -> dict[str, Any]:
    """Open the window and perform all user actions with many runs."""
    with opened(folder) as it:
        it.wait(120, until=lambda: "all_views" in it.passed)
        if only_start:
            return it.passed
        it.wait(6)
        it.note("start")
        _views(it)
        _table(it)
        _columns(it)
        _pickers(it)
        _polls(it, folder)
    longest = max(it.stretches.items(), key=lambda pair: pair[1]["cpu_ms"])
    return it.passed | {"longest_cpu_ms": longest[1]["cpu_ms"], "longest_in": longest[0], "stretches": it.stretches}


def _views(it: Opened) -> None:
    for view in [view for place in it.window.places for view in place.views]:
        it.do(f"view {view.name}", lambda name=view.name: it.window.navigation.go_to(name))
    it.do("back to runs", lambda: it.window.navigation.go_to("runs"))


def _table(it: Opened) -> None:
    view = it.window.pages.views["runs"]
    table, bar = view.table, view.table.verticalScrollBar()  # type: ignore[attr-defined]

    def scroll() -> None:
        for place in range(0, bar.maximum() + 1, max(1, bar.maximum() // 60)):
            bar.setValue(place)
            it.wait(0.02)

    it.do("scroll", scroll)
    for column in range(table.shown.columnCount()):
        for order in _orders():
            it.do(f"sort by {column} {order.name}", lambda c=column, o=order: table.sortByColumn(c, o), 0.3)
    for typed in ("c", "cl", "clo", "run 1", ""):
        it.do(f"filter {typed!r}", lambda words=typed: view.filter.setText(words), 0.5)  # type: ignore[attr-defined]
    for count in (1, 2, 10, 100):
        it.do(f"choose {count}", lambda n=count: table.choose([*range(3, 3 + n)]), 5)
    it.do("choose all", table.selectAll, 40)
    it.do("choose one again", lambda: table.choose([5]), 3)


def _columns(it: Opened) -> None:
    """Show columns and groups, and filter by what they hold."""
    view: Any = it.window.pages.views["runs"]
    table, arrangement, first = view.table, view.arrangement, view.table.shown.columnCount()
    it.do("show six columns", lambda: arrangement.choose(columns=COLUMNS), 4)
    for column in range(first, table.shown.columnCount()):
        for order in _orders():
            it.do(
                f"sort by {COLUMNS[column - first]} {order.name}",
                lambda c=column, o=order: table.sortByColumn(c, o),
                0.3,
            )
    filters = ("tag:paper", "objective:cloob scale_hopfield>8", "image_to_text_R@1>40%", "experiment:7 -is:failed", "")
    for typed in filters:
        it.do(f"filter {typed!r} beside columns", lambda words=typed: view.filter.setText(words), 2)
    for group in GROUPS:
        it.do(f"group by {group}", lambda name=group: arrangement.choose(group=name), 3)
        it.do(f"collapse groups of {group}", table.collapse_all, 1)
        it.do(f"expand groups of {group}", lambda: table.collapse(()), 1)
        it.do(f"filter in groups of {group}", lambda: view.filter.setText("tag:paper scale_hopfield>8"), 1)
        it.do(f"all in groups of {group}", lambda: view.filter.setText(""), 1)
    it.do("no groups and columns", lambda: arrangement.choose(columns=(), group=""), 1)


def _orders() -> tuple[Any, ...]:
    """Return both sort orders."""
    from PySide6.QtCore import Qt

    return (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder)


def _pickers(it: Opened) -> None:
    picker = it.window.bar.run_a
    it.do("open a picker", picker.showPopup, 1)
    for typed in ("1", "19", "199", "run 1999"):
        it.do(f"type {typed!r}", lambda words=typed: picker.finder.line.setText(words), 0.3)
    rows = picker.finder.list.model().rowCount()
    it.do(f"found {rows}", picker.finder.close, 0.3)
    it.do("choose A and B", lambda: it.window.selection.select_runs(1, 2), 4)
    it.do("the palette", it.window.menus.show_palette, 1)
    it.window.palette_panel.hide()


def _polls(it: Opened, folder: Path) -> None:
    """Log five rows and heartbeats of a run ten times a second, for eight seconds."""
    over = threading.Event()

    def train() -> None:
        base = sqlite3.connect(folder / "explorer.db", isolation_level=None, timeout=20)
        step = int(base.execute("SELECT max(step) FROM scalar WHERE run = 2").fetchone()[0])
        insert = "INSERT INTO scalar (run, name, step, value, time, elapsed_s) VALUES (2, ?, ?, ?, ?, ?)"
        while not over.wait(0.1):
            step += 1
            base.execute("BEGIN IMMEDIATE")
            base.executemany(insert, [(name, step, 1 / step, time.time(), float(step)) for name in NAMES])
            base.execute("UPDATE run SET step = ?, beats = beats + 1 WHERE id = 2", (step,))
            base.execute("COMMIT")
        base.close()

    writer = threading.Thread(target=train)
    writer.start()
    it.do("polls", lambda: None, 8)
    over.set()
    writer.join()


HELP = "how long the window computes at a stretch beside thousands of runs, and how soon it paints"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the number of runs, the length of their curves, and the repetitions."""
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=7_000, help="values of curves a run (default: 7000)")
    parser.add_argument("--starts", type=int, default=5, help="of each workspace, in turn (default: 5)")
    parser.add_argument("--times", type=int, default=3, help="walks through the large one (default: 3)")
    parser.add_argument("--workspace", type=Path, help="where both are, or are made")
    parser.add_argument("--one", choices=("start", "walk"), help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Print one object for each workspace's starts, and one for each walk."""
    if args.one:
        print(json.dumps(measure(args.workspace, only_start=args.one == "start")))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        both = {n: (args.workspace or Path(scratch)) / name for n, name in ((2, "two"), (args.runs, "many"))}
        for runs, folder in both.items():
            if not (folder / "explorer.db").exists():
                make(folder, runs, args.rows)
        starts: dict[int, list[dict[str, Any]]] = {runs: [] for runs in both}
        for _ in range(args.starts):
            for runs, folder in both.items():
                starts[runs].append(_apart("start", folder))
        for runs, found in starts.items():
            told = {name: statistics.median(one[name] for one in found) for name in (found or [{}])[0]}
            print(json.dumps({"runs": runs, "starts": len(found), **told}), flush=True)
        for _ in range(args.times):
            print(json.dumps(_apart("walk", both[args.runs]), indent=1), flush=True)
    return 0


def _apart(what: str, folder: Path) -> dict[str, Any]:
    return measured_apart("many_runs", "--one", what, "--workspace", str(folder.absolute()))
