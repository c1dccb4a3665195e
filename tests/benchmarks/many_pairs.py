"""`python -m tests.benchmarks many_pairs`: the time until the map of a million pairs is visible.

Makes a workspace with one run and one snapshot of so many pairs, opens the window on it, and then the Map. Prints the
seconds to the first picture and to the one of all points, and the longest stretches of computing. The first opening
finds no layout on disk; those after it, each in a process of its own, do.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float16

from tests.benchmarks.opened import measured_apart, opened

GROUPS = 500


def make(folder: Path, pairs: int, width: int) -> None:
    """Create a workspace with one finished run, whose snapshot has these pairs in `GROUPS` clusters of unequal size."""
    from trainer import config
    from trainer.store import Workspace
    from trainer.store.snapshot_files import Items, snapshot_name, write_snapshot

    space = Workspace(folder)
    number = space.runs.create(config.Run(name="a million pairs"))
    rng = np.random.default_rng(0)
    share = rng.gamma(1.2, 1, GROUPS)
    group = rng.choice(GROUPS, pairs, p=share / share.sum())
    items = Items(
        id=np.arange(pairs),
        path=[f"pictures/{i // 1000:04d}/{i:07d}.jpg" for i in range(pairs)],
        caption=[f"the picture number {i} of a thing of kind {kind}, on a table" for i, kind in enumerate(group)],
        label=[f"kind {kind % 40}" for kind in group],
        split=["heldout"] * pairs,
        metadata={"brightness": rng.random(pairs).tolist(), "kind": [f"kind {kind}" for kind in group]},
    )
    name = snapshot_name(dataset="million", split="heldout", step=100)
    kept = space.runs.get(number).folder / "snapshots" / name
    middle = rng.standard_normal((GROUPS, width), np.float32)
    image, text = (_rows(rng, middle + shift, group) for shift in rng.standard_normal((2, width), np.float32))
    write_snapshot(
        kept, image=image, text=text, items=items, step=100, dataset="million", split="heldout", model="a million pairs"
    )
    space.results.add_snapshot(number, 100, "million", "heldout", kept, n=pairs, d=width)
    space.runs.change(number, status="finished", step=100, total_steps=100)
    space.close()


def _rows(rng: np.random.Generator, middle: np.ndarray, group: np.ndarray) -> Float16[np.ndarray, "n d"]:
    rows = np.empty((len(group), middle.shape[1]), np.float16)
    for start in range(0, len(group), 10_000):
        part = slice(start, start + 10_000)
        block = middle[group[part]] + rng.standard_normal((len(group[part]), middle.shape[1]), np.float32)
        rows[part] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return rows


def measure(folder: Path, *, cold: bool) -> dict[str, Any]:
    """Open the window, and the Map once the window is idle."""
    with opened(folder) as it:
        it.wait(120, until=lambda: "all_views" in it.passed)
        it.wait(5)
        it.note("start")
        if cold:
            forget_files(folder)
        view = it.window.pages.views["map"]
        panel = view.panels[0]  # type: ignore[attr-defined]
        layer = panel.map.layer
        marks: dict[str, float] = {}
        began, computed = time.perf_counter(), time.thread_time()
        layer.framed.connect(
            lambda: layer.grid.bounds and marks.setdefault("first_picture_s", time.perf_counter() - began)
        )
        it.window.navigation.go_to("map")
        it.wait(600, until=lambda: "first_picture_s" in marks)
        if pictures := os.environ.get("PICTURES"):
            it.window.grab().save(f"{pictures}/first.png")
        it.wait(600, until=lambda: panel.side is not None and layer.still and len(layer.grid) == len(panel.side.xy))
        marks["all_points_s"] = time.perf_counter() - began
        it.wait(2)
        marks["gui_computing_s"] = time.thread_time() - computed
        it.note("map")
        if pictures := os.environ.get("PICTURES"):
            it.window.grab().save(f"{pictures}/all.png")
        return {name: round(value, 2) for name, value in marks.items()} | {"stretches": it.stretches}


def forget_files(folder: Path) -> None:
    """Evict the runs' files from the page cache, as after a reboot."""
    for file in folder.rglob("*"):
        if file.suffix in (".npy", ".parquet"):
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


HELP = "how soon the map of a million pairs is seen after its view is opened"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the number of pairs, their width, and the repetitions."""
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=512, help="numbers of an embedding (default: 512)")
    parser.add_argument("--times", type=int, default=5, help="openings with the layout on disk (default: 5)")
    parser.add_argument("--cold", action="store_true", help="the files are read from the disk, not from memory")
    parser.add_argument("--workspace", type=Path, help="measure this one; it is made if it is not there")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Print one object per opening, the first without a layout on disk, then the medians of the others."""
    if args.once:
        print(json.dumps(measure(args.workspace, cold=args.cold)))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = (args.workspace or Path(scratch) / "pairs").absolute()
        if not (folder / "explorer.db").exists():
            make(folder, args.pairs, args.width)
        for file in (folder / "layouts").glob("*.components.npy"):
            file.unlink()
        words = ["many_pairs", "--once", "--workspace", str(folder), *(["--cold"] if args.cold else [])]
        found = []
        for _ in range(1 + args.times):
            found.append(measured_apart(*words))
            print(json.dumps(found[-1]), flush=True)
        names = [name for name in found[0] if name != "stretches"]
        medians = {name: float(np.median([one[name] for one in found[1:]])) for name in names if len(found) > 1}
        print(json.dumps({"openings": args.times, "medians": medians}))
    return 0
