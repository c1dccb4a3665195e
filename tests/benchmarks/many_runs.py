"""`python -m tests.benchmarks many_runs`: how long the window computes at a stretch beside thousands of runs.

Makes a workspace of so many runs with so many rows of curves each, opens the window on it and goes through every view.
Prints the seconds to the first paint and to the last view, and the longest stretches of computing with their calls.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sqlite3
import sys
import tempfile
import time
from pathlib import Path


def make(folder: Path, runs: int, rows: int) -> None:
    """A workspace of finished runs; `rows` values of curves each, under five names."""
    from trainer import config
    from trainer.store import Workspace
    from trainer.store.run_files import folder_name

    space = Workspace(folder)
    first = space.runs.create(config.Run(name="run 0001"))
    space.runs.change(first, status="finished")
    space.close()
    base = sqlite3.connect(space.database_file, isolation_level=None)
    columns = [row[1] for row in base.execute("PRAGMA table_info(run)")]
    known = dict(zip(columns, base.execute("SELECT * FROM run").fetchone()))
    base.execute("PRAGMA synchronous=OFF")
    base.execute("BEGIN")
    for number in range(2, runs + 1):
        name = f"run {number:04d}"
        row = known | {"id": number, "name": name, "folder": folder_name(number, name), "last": 1 / number}
        row |= {"started_at": known["created_at"], "ended_at": known["created_at"] + number, "step": rows // 5}
        base.execute(f"INSERT INTO run VALUES ({','.join('?' * len(columns))})", [row[name] for name in columns])
        (space.runs_folder / row["folder"]).mkdir()
    names = ("train/loss", "train/inv_tau", "train/lr", "heldout/loss", "heldout/acc1")
    insert = "INSERT INTO scalar (run, name, step, value, time, elapsed_s) VALUES (?, ?, ?, ?, ?, ?)"
    for number in range(1, runs + 1):
        values = ((number, names[i % 5], i // 5, 1 / (1 + i), 1.7e9 + i, float(i)) for i in range(rows))
        base.executemany(insert, values)
    base.execute("COMMIT")
    base.close()


def measure(folder: Path) -> dict[str, object]:
    """Opens the window and every view; what it took."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    logging.disable(logging.WARNING)
    began = time.perf_counter()
    from PySide6.QtWidgets import QApplication

    from explorer import theme
    from explorer.event_loop.exception_hooks import Hooks
    from explorer.event_loop.gc_on_gui_thread import Garbage
    from explorer.window import Window

    application = QApplication.instance() or QApplication([])
    hooks = Hooks(folder)
    theme.theme().apply(application, "light")
    window = Window(folder, hooks)
    garbage = Garbage()
    window.ready.connect(garbage.keep_what_is_there)
    passed: dict[str, float] = {}
    window.painted.connect(lambda: passed.setdefault("first_paint_s", time.perf_counter() - began))
    window.ready.connect(lambda: passed.setdefault("all_views_s", time.perf_counter() - began))
    window.show()
    stretches: dict[str, dict[str, object]] = {}

    def wait(seconds: float, until: str = "") -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end and until not in passed:
            application.processEvents()
            time.sleep(0.001)

    def note(what: str) -> None:
        longest = window.watchdog.longest
        told = [gap.stack for gap in window.watchdog.gaps if gap.own_ms > 100]
        if longest is not None:
            stretches[what] = {"cpu_ms": round(longest.cpu_ms), "wall_ms": round(longest.wall_ms), "stacks": told}
        window.watchdog.forget()

    wait(120, until="all_views_s")
    wait(6)
    note("start")
    for place in window._places:
        window.go_to(place.name)
        wait(2)
        note(place.name)
    window.bar.run_a.showPopup()
    wait(1)
    note("picker")
    window.bar.run_a._finder.close()
    window.selection.select_runs(1, 2)
    wait(4)
    note("two chosen")
    window.close()
    garbage.close()
    hooks.remove()
    return {name: round(value, 2) for name, value in passed.items()} | {"stretches": stretches}


HELP = "how long the window computes at a stretch beside thousands of runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How many runs, how long their curves."""
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=7_000, help="values of curves a run (default: 7000)")
    parser.add_argument("--workspace", type=Path, help="measure this one; it is made if it is not there")


def run(args: argparse.Namespace) -> int:
    """Prints one object."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.workspace or Path(scratch) / "many"
        if not (folder / "explorer.db").exists():
            began = time.perf_counter()
            make(folder, args.runs, args.rows)
            print(f"made in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        print(json.dumps(measure(folder), indent=1))
    return 0
