"""`python -m tests.benchmarks scale_of_data`: what each thing costs at 10^4, 10^5 and 10^6 pairs, and in which memory.

Everything is measured in a process of its own: wall time, processor time, and the most memory, pages of mapped files
included. The vectors are a mixture (50 clusters and noise, `mixture`), or a smooth manifold without clusters
(`manifold`), where approximate neighbors are hard to find; or pairs of your own in two `.npy`. The table is Markdown.
With `--programs` follows a table of what the commands of other programs take for a map of the same vectors.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.benchmarks import other_programs
from tests.benchmarks.opened import measured_apart

HELP = "what opening, ranks, neighbors, UMAP and charts cost at 10^4, 10^5 and 10^6 pairs"
SIZES: Final = (10_000, 100_000)
WIDTH: Final = 512
CHARTS: Final = (
    *("hubness", "similarity", "geometry", "gap", "concepts", "prototypes", "embedding-spectrum"),
    *("hopfield-retrieval", "hopfield-pair", "hopfield-beta", "hopfield-batch-size", "hopfield-spectrum"),
    *("changes", "separated-groups", "representation-similarity", "map-of-models", "small-multiples"),
    "snapshot-curves",
)
"""Every chart that vectors alone are enough for, and whose cost depends on their number."""
MOST_EXACT: Final = 200_000
"""Pairs up to which what is quadratic is measured."""
MOST_UMAP_LEARN: Final = 20_000


def made(folder: Path, pairs: int, width: int, kind: str) -> None:
    """Write `image.npy` and `text.npy` with these pairs: float32, in half precision from a million on."""
    rng = np.random.default_rng(0)
    dtype = np.float16 if pairs >= 1_000_000 else np.float32
    files = [
        np.lib.format.open_memmap(folder / f"{side}.npy", "w+", dtype, (pairs, width)) for side in ("image", "text")
    ]
    centers = 0.35 * rng.standard_normal((50, width), np.float32)
    hidden = [rng.standard_normal(shape, np.float32) for shape in ((12, 256), (256, width))]
    for start in range(0, pairs, 10_000):
        n = min(10_000, pairs - start)
        if kind == "mixture":
            shared = centers[rng.integers(0, 50, n)] + 0.5 * rng.standard_normal((n, width), np.float32)
        else:
            shared = np.tanh(rng.standard_normal((n, 12), np.float32) @ hidden[0] * 0.4) @ hidden[1] / 16
        for file in files:
            noise = (0.8 if kind == "mixture" else 0.05) * rng.standard_normal((n, width), np.float32)
            file[start : start + n] = shared + noise


class _Data:
    """The vectors of a folder, and a workspace that they are opened in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def side(self, name: str) -> np.ndarray:
        from trainer.analysis.unit_rows import unit_rows

        rows = np.load(self.folder / f"{name}.npy", mmap_mode="r")
        if rows.dtype == np.float32:
            return unit_rows(rows)
        unit = self.folder / f"unit-{name}.npy"
        if not unit.exists():  # as a snapshot has them: in half precision, and mapped
            copy = np.lib.format.open_memmap(unit, "w+", rows.dtype, rows.shape)
            for start in range(0, len(rows), 10_000):
                copy[start : start + 10_000] = unit_rows(rows[start : start + 10_000])
        return np.load(unit, mmap_mode="r")

    def opened(self) -> dict[str, Any]:
        """Open them as `trainer open vectors` does."""
        from trainer import config
        from trainer.store import Workspace
        from trainer.vectors.open_run import open_here, run_of

        sides = {f"{side}_vectors": str(self.folder / f"{side}.npy") for side in ("image", "text")}
        workspace = Workspace(self.folder / "workspace")
        run = workspace.runs.create(run_of(config.Vectors(**sides, called="made", rows=5_000_000)))
        return {"kept": open_here(workspace, run).kept}


def _open(data: _Data) -> dict[str, Any]:
    return data.opened()


def _bare(data: _Data) -> dict[str, Any]:
    from trainer.analysis.tiled_ranks import EDGE
    from trainer.analysis.tiles import row_blocks
    from trainer.analysis.worker_threads import share_out

    image, text = data.side("image"), data.side("text")

    def multiply(rows: slice, buffer: np.ndarray) -> None:
        for columns in row_blocks(len(text), 1, cells=EDGE):
            shape = rows.stop - rows.start, columns.stop - columns.start
            np.matmul(image[rows], text[columns].T, out=buffer[: shape[0] * shape[1]].reshape(shape))

    blocks = list(row_blocks(len(image), 1, cells=EDGE))
    return timed(lambda: share_out(blocks, multiply, lambda: np.empty(EDGE * EDGE, np.float32)))


def _ranks(data: _Data) -> dict[str, Any]:
    from trainer.analysis.rank_margins import both_standings

    image, text = data.side("image"), data.side("text")
    return timed(lambda: both_standings(image, text))


def _sampled(data: _Data) -> dict[str, Any]:
    from trainer.analysis.retrieval import ranks
    from trainer.analysis.sampling import at_most

    image, text = data.side("image"), data.side("text")
    rows = at_most(len(image), 2_500)
    return timed(lambda: [ranks(query, stored, rows=rows) for query, stored in ((image, text), (text, image))])


def _neighbors(data: _Data) -> dict[str, Any]:
    from trainer.analysis.tiled_neighbors import neighbors_of_each

    image = data.side("image")
    neighbors_of_each(image[:5_000], 14)
    return timed(lambda: neighbors_of_each(image, 14))


def _cells(data: _Data) -> dict[str, Any]:
    from trainer.analysis.neighbor_cells import neighbors_by_cells

    image, found = data.side("image"), []
    neighbors_by_cells(image[:5_000], 14)
    return timed(lambda: found.append(neighbors_by_cells(image, 14))) | {"note": found[0].words}


def _umap(data: _Data, method: str = "umap") -> dict[str, Any]:
    from trainer.analysis.map_quality import map_quality
    from trainer.analysis.progress import silent
    from trainer.charts.point_placement import PointPlacement
    from trainer.projection import fitting

    image, found = data.side("image"), []
    fitting.BY_UMAP_LEARN = 0 if method == "umap" else fitting.BY_UMAP_LEARN  # type: ignore[misc]
    fitting.fit(image[:200], PointPlacement(method=method), silent)
    measured = timed(lambda: found.append(fitting.fit(image, PointPlacement(method=method), silent)))
    return measured | {"note": "; ".join(filter(None, (found[0].note, map_quality(image, found[0].points).words)))}


def _umap_learn(data: _Data) -> dict[str, Any]:
    return _umap(data, "umap-learn")


def _near_duplicates(data: _Data) -> dict[str, Any]:
    from trainer.analysis.image_neighbors import image_neighbors

    image = data.side("image")
    return timed(lambda: image_neighbors(image))


def _chart(name: str) -> Callable[[_Data], dict[str, Any]]:
    def measure(data: _Data) -> dict[str, Any]:
        from trainer.analysis.progress import silent
        from trainer.charts.registry import load
        from trainer.charts.spec import Request, Target
        from trainer.store import Workspace

        workspace, made_chart = Workspace(data.folder / "workspace"), load(name)
        while len(workspace.runs.all()) < 2:  # what was measured before may have opened one
            data.opened()
        request = Request((Target(1), Target(2)))
        return timed(lambda: made_chart.result(workspace, request, made_chart.settings(), silent))

    return measure


MEASURES: Final[dict[str, tuple[Callable[[_Data], dict[str, Any]], str, int]]] = {
    "open": (_open, "n", 10**9),
    "sampled ranks, 2,500 questions": (_sampled, "n", 10**9),
    "bare product": (_bare, "n^2", MOST_EXACT),
    "exact ranks both ways, margins": (_ranks, "n^2", MOST_EXACT),
    "exact neighbors": (_neighbors, "n^2", MOST_EXACT),
    "neighbors by cells": (_cells, "n^1.5", 10**9),
    "UMAP": (_umap, "n (n^2 of neighbors up to 150,000)", 10**9),
    "UMAP by umap-learn": (_umap_learn, "n", MOST_UMAP_LEARN),
    "near duplicates": (_near_duplicates, "n^2 up to 150,000, then n^1.5", 10**9),
    **{f"chart {name}": (_chart(name), "", 10**9) for name in CHARTS},
}
"""What is measured -> how, how its cost grows, and up to how many pairs."""


def timed(call: Callable[[], object]) -> dict[str, Any]:
    """Return wall and processor time of one call."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - processor}


def once(name: str, folder: Path) -> dict[str, Any]:
    """Measure one thing in this process."""
    found: dict[str, Any] = {}
    whole = timed(lambda: found.update(MEASURES[name][0](_Data(folder))))
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return whole | found | {"peak_mb": peak, "load": load}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add sizes, the kind of data, and what is measured."""
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="pairs (10000 100000)")
    parser.add_argument("--width", type=int, default=WIDTH, help="numbers of an embedding (512)")
    parser.add_argument("--kind", choices=("mixture", "manifold"), default="mixture", help="of the vectors (mixture)")
    parser.add_argument("--measures", nargs="*", choices=list(MEASURES), default=list(MEASURES), metavar="NAME")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="image.npy and text.npy to measure instead")
    parser.add_argument(
        "--programs", nargs="*", choices=list(other_programs.PROGRAMS), metavar="NAME", help="compare with them (all)"
    )
    parser.add_argument("--once", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Print the table, a line for each measure and a column for each size."""
    if args.once:
        print(json.dumps(once(args.once, args.data)))
        return 0
    rows: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in args.measures}
    programs: dict[int, dict[str, dict[str, Any]]] = {}
    for size in [0] if args.data else args.sizes:
        with tempfile.TemporaryDirectory() as scratch:
            folder = args.data or Path(scratch)
            if not args.data:
                made(folder, size, args.width, args.kind)
            pairs = size or len(np.load(folder / "image.npy", mmap_mode="r"))
            for name in args.measures:
                if pairs <= MEASURES[name][2]:
                    rows[name][pairs] = measured_apart("scale_of_data", "--once", name, "--data", str(folder))
            if args.programs is not None:
                programs[pairs] = other_programs.compared(folder, args.programs or list(other_programs.PROGRAMS))
    if args.json:
        print(json.dumps({"rows": rows, "programs": programs}, indent=1))
        return 0
    print(table(rows) if any(rows.values()) else "")
    for pairs, took in programs.items():
        print(f"\n{pairs:,} x {args.width} vectors:\n\n{other_programs.table(took)}")
    return 0


def table(rows: dict[str, dict[int, dict[str, Any]]]) -> str:
    """Return the measurements as Markdown."""
    sizes = sorted({size for by_size in rows.values() for size in by_size})
    heads = ["what", "grows with", *(f"{size:,} pairs" for size in sizes), "note"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name, by_size in rows.items():
        cells = [_cell(by_size[size]) if size in by_size else "-" for size in sizes]
        notes = [measured["note"] for measured in by_size.values() if measured.get("note")]
        lines.append(f"| {' | '.join([name, _growth(name), *cells, notes[-1] if notes else ''])} |")
    loads = [measured["load"] for by_size in rows.values() for measured in by_size.values()]
    lines.append(f"\nSeconds (processor seconds), most memory; load {min(loads):.1f} to {max(loads):.1f}.")
    return "\n".join(lines)


def _growth(name: str) -> str:
    from trainer.charts.registry import load

    return load(name.removeprefix("chart ")).cost if name.startswith("chart ") else MEASURES[name][1]


def _cell(measured: dict[str, Any]) -> str:
    return f"{measured['wall_s']:.2f} ({measured['cpu_s']:.2f}), {measured['peak_mb']:,.0f} MB"
