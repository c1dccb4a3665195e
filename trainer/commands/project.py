"""`trainer project`: the picture of a run's embeddings in the plane, as an array."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

GROUP = "Look"
HELP = "place a snapshot's images and texts in the plane with PCA or UMAP"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The run, which of its snapshots, and how to place the points."""
    from trainer.commands.export import add_view_arguments

    parser.add_argument("run", metavar="RUN", help="number, name or folder")
    add_view_arguments(parser)
    parser.add_argument("--method", choices=("pca", "umap"), default="pca", help="how points are placed")
    parser.add_argument("--neighbours", type=int, default=15, help="UMAP: size of a neighbourhood (15)")
    parser.add_argument("--min-dist", type=float, default=0.1, help="UMAP: how close points may lie (0.1)")
    parser.add_argument("--seed", type=int, default=0, help="UMAP: makes it reproducible (0)")
    parser.add_argument("--out", type=Path, metavar="FILE.npy", help="copy the points here")


def run(args: argparse.Namespace) -> int:
    """Prints where the points are: rows of the images, then of the texts."""
    from trainer.charts.snapshots import choose_snapshot
    from trainer.project import layout_file

    row = args.workspace.run(args.run)
    snapshot = choose_snapshot(args.workspace, row, step=args.step, dataset=args.dataset, split=args.split)
    found = layout_file(
        args.workspace.folder,
        snapshot.folder,
        method=args.method,
        neighbours=args.neighbours,
        min_dist=args.min_dist,
        seed=args.seed,
        progress=_tell,
    )
    file = found.file
    if args.out is not None:
        file = args.out if args.out.suffix == ".npy" else args.out.with_name(f"{args.out.name}.npy")
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found.file, file)
    if args.json:
        print(json.dumps({**asdict(found), "file": str(file), "step": snapshot.step}))
    else:
        print(f"{file}\n{found.images:,} images, then {found.texts:,} texts; {found.note} ({found.seconds:.1f} s)")
    return 0


def _tell(share: float, note: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{share:4.0%} {note:<40}", end="" if share < 1 else "\n", file=sys.stderr, flush=True)
