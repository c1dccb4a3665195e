"""`trainer project`: writes a 2-D projection of a run's embeddings as an array."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.charts.point_placement import METHODS, METRICS, PointPlacement
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.store import SnapshotRow

GROUP = "Look"
HELP = "project a snapshot's images and texts to 2-D with PCA, UMAP, t-SNE or PaCMAP"

_NEXT = "Say where to put the points: --out FILE.npy."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, its snapshot, and the placement of points."""
    from trainer.cli.export import add_split_arguments, step_or_last

    parser.add_argument("run", metavar="RUN", help="number, name or folder")
    view = parser.add_argument_group("which embeddings")
    view.add_argument("--step", type=step_or_last, default=None, metavar="N|last", help="step of the snapshot (last)")
    add_split_arguments(view)
    add_placement_arguments(parser)
    parser.add_argument("--onto", metavar="RUN", help="align the layout with this run's")
    parser.add_argument("--place", type=Path, metavar="FILE.npy", help="place these new image vectors on the layout")
    parser.add_argument("--out", type=Path, metavar="FILE.npy", help="copy the points here")


def add_placement_arguments(parser: argparse.ArgumentParser) -> None:
    """Add method and parameters."""
    group = parser.add_argument_group("how points are placed")
    group.add_argument(
        "--method",
        choices=METHODS,
        default="pca",
        help="how points are placed (pca); umap takes all cores above 20,000 points, umap-learn is always that package",
    )
    group.add_argument("--neighbors", type=int, default=15, help="size of a neighborhood; t-SNE: the perplexity (15)")
    group.add_argument("--min-dist", type=float, default=0.1, help="UMAP: how close points may lie (0.1)")
    group.add_argument("--metric", choices=METRICS, default="cosine", help="UMAP, t-SNE: distance of vectors (cosine)")
    group.add_argument("--seed", type=int, default=0, help="random seed (0)")
    group.add_argument(
        "--coordinates", type=Path, metavar="FILE", help="file: .npy, .csv or .parquet with x and y, images first"
    )


def placement_of(args: argparse.Namespace) -> PointPlacement:
    """Return the placement in the arguments.

    Raises:
        ProjectError: The method `file` without a file.
    """
    from trainer.projection import ProjectError

    if args.method == "file" and args.coordinates is None:
        raise ProjectError("The method file needs --coordinates FILE, a .npy, .csv or .parquet with x and y.")
    return PointPlacement(
        method=args.method,
        neighbors=args.neighbors,
        min_dist=args.min_dist,
        metric=args.metric,
        seed=args.seed,
        file=str(args.coordinates.resolve()) if args.coordinates is not None else "",
    )


def run(args: argparse.Namespace) -> int:
    """Print the file with the points: rows of the images, then of the texts.

    Raises:
        ProjectError: The workspace is look only and there is no `--out`; or as `layout_file`.
    """
    from trainer.charts.snapshots import choose_snapshot
    from trainer.cli._progress import report
    from trainer.projection import ProjectError, layout_file

    if args.out is None and args.workspace.look_only:
        raise ProjectError(f"The workspace {args.workspace.folder} is look only, and keeps no layouts. {_NEXT}")

    def chosen(run: str) -> SnapshotRow:
        row = args.workspace.runs.get(run)
        return choose_snapshot(args.workspace, row, step=args.step, dataset=args.dataset, split=args.split)

    snapshot, placement = chosen(args.run), placement_of(args)
    onto = (chosen(args.onto).folder,) if args.onto else ()
    layout = layout_file(args.workspace.folder, snapshot.folder, placement, onto=onto, progress=report)
    file = layout.file
    if args.out is not None:
        file = args.out if args.out.suffix == ".npy" else args.out.with_name(f"{args.out.name}.npy")
        _copy(layout.file, file.absolute())
    answer = {**asdict(layout), "file": str(file), "step": snapshot.step}
    if args.place is not None:
        from trainer.projection import place_new, read_vectors

        answer["placed"] = place_new(snapshot.folder, layout, read_vectors(args.place)).tolist()
    if args.json:
        say_json(json.dumps(answer))
        return 0
    say(f"{file}\n{layout.images:,} images, then {layout.texts:,} texts; {layout.note} ({layout.seconds:.1f} s)")
    for x, y in answer.get("placed", []):
        say(f"{x:.4f}\t{y:.4f}")
    return 0


def _copy(layout: Path, file: Path) -> None:
    from trainer.errors import UserError
    from trainer.store.files import write_atomically
    from trainer.untrusted import confined

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, lambda draft: confined.copy(layout, draft.parent, draft.name))
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror or error}. Choose another place.") from error
