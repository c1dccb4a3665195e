"""`trainer project`: writes a 2-D projection of a run's embeddings as an array."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from trainer.charts.point_placement import PointPlacement
from trainer.charts.settings import add_options, from_options
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.store import SnapshotRow

GROUP = "Look"
HELP = "project a snapshot's images and texts to 2-D with PCA, UMAP, t-SNE or PaCMAP"

PlacementT = TypeVar("PlacementT", bound=PointPlacement)
_NEXT = "Say where to put the points: --out FILE.npy."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, its snapshot, and the placement of points."""
    from trainer.cli.export import add_split_arguments, step_or_last

    parser.add_argument("run", metavar="RUN", help="number, name or folder")
    view = parser.add_argument_group("which embeddings")
    view.add_argument("--step", type=step_or_last, default=None, metavar="N|last", help="step of the snapshot (last)")
    add_split_arguments(view)
    add_placement_arguments(parser, PointPlacement)
    parser.add_argument("--onto", metavar="RUN", help="align the layout with this run's")
    parser.add_argument("--place", type=Path, metavar="FILE.npy", help="place these new image vectors on the layout")
    parser.add_argument("--out", type=Path, metavar="FILE.npy", help="copy the points here")


def add_placement_arguments(parser: argparse.ArgumentParser, kind: type[PointPlacement]) -> None:
    """Add method and parameters."""
    add_options(parser.add_argument_group("how points are placed"), kind)


def placement_of(args: argparse.Namespace, kind: type[PlacementT]) -> PlacementT:
    """Return the placement in the arguments.

    Raises:
        ProjectError: The method `file` without a file.
    """
    from trainer.projection import ProjectError

    if args.method == "file" and not args.coordinates:
        raise ProjectError("The method file needs --coordinates FILE, a .npy, .csv or .parquet with x and y.")
    placement = from_options(kind, args)
    return replace(placement, coordinates=str(Path(args.coordinates).resolve())) if args.coordinates else placement


def run(args: argparse.Namespace) -> int:
    """Print the file with the points: rows of the images, then of the texts.

    Raises:
        ProjectError: The workspace is look only and there is no `--out`; or as `layout_file`.
    """
    from trainer.charts.snapshots import choose_snapshot
    from trainer.cli._progress import report
    from trainer.projection import ProjectError, layout_file
    from trainer.store.files import write_for_user
    from trainer.untrusted import confined

    if args.out is None and args.workspace.look_only:
        raise ProjectError(f"The workspace {args.workspace.folder} is look only, and keeps no layouts. {_NEXT}")

    def chosen(run: str) -> SnapshotRow:
        row = args.workspace.runs.get(run)
        return choose_snapshot(args.workspace, row, step=args.step, dataset=args.dataset, split=args.split)

    snapshot, placement = chosen(args.run), placement_of(args, PointPlacement)
    onto = (chosen(args.onto).folder,) if args.onto else ()
    layout = layout_file(args.workspace.folder, snapshot.folder, placement, onto=onto, progress=report)
    file = layout.file
    if args.out is not None:
        file = args.out if args.out.suffix == ".npy" else args.out.with_name(f"{args.out.name}.npy")
        write_for_user(file, lambda draft: confined.copy(layout.file, draft.parent, draft.name))
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
