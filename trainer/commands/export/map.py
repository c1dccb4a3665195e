"""`trainer export map`: the embedding maps side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.commands.export import (
    ExportError,
    View,
    add_file_arguments,
    add_run_arguments,
    add_view_arguments,
    check_arguments,
    command_line,
    print_files,
    tell,
    view_of,
)

if TYPE_CHECKING:
    from trainer.charts.map import Placed
    from trainer.store import Workspace

HELP = "embedding maps side by side"


@dataclass(frozen=True, kw_only=True)
class Placement:
    """How a map places its points and what colours them."""

    method: str = "pca"
    neighbours: int = 15
    min_dist: float = 0.1
    seed: int = 0
    colour: str = "modality"
    turn: tuple[float, float] | None = None
    """Azimuth and elevation in degrees from which three principal components are seen; None: a map in the plane."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs, which of their embeddings, how points are placed and coloured."""
    add_run_arguments(parser)
    add_view_arguments(parser)
    parser.add_argument("--method", choices=("pca", "umap"), default="pca", help="how points are placed")
    parser.add_argument("--neighbours", type=int, default=15, help="UMAP: size of a neighbourhood (15)")
    parser.add_argument("--min-dist", type=float, default=0.1, help="UMAP: how close points may lie (0.1)")
    parser.add_argument("--seed", type=int, default=0, help="UMAP: makes it reproducible (0)")
    parser.add_argument(
        "--turn",
        nargs=2,
        type=float,
        metavar=("AZIMUTH", "ELEVATION"),
        help="in space: three principal components, seen from this side (degrees)",
    )
    parser.add_argument(
        "--colour",
        default="modality",
        metavar="BY",
        help="modality, label, agreement (of the first two runs), rank, cosine, or a column of the items",
    )
    add_file_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    check_arguments(args)
    placement = Placement(
        method=args.method,
        neighbours=args.neighbours,
        min_dist=args.min_dist,
        seed=args.seed,
        colour=args.colour,
        turn=tuple(args.turn) if args.turn else None,
    )
    write(args.workspace, args.runs, args.out, view=view_of(args), placement=placement)
    print_files(args)
    return 0


def write(
    workspace: Workspace, runs: Sequence[int | str], files: Sequence[Path], *, view: View, placement: Placement
) -> str:
    """Writes the maps side by side; returns the command that does the same."""
    from trainer.charts.map import embedding_maps
    from trainer.figures import map as figure
    from trainer.figures.files import write_figure

    placed = [_placed(workspace, run, view, placement) for run in runs]
    charts = embedding_maps(workspace, placed, colour=placement.colour, progress=tell)
    options: dict[str, Any] = {**vars(view), "method": placement.method}
    if placement.method == "umap":
        options |= {"neighbours": placement.neighbours, "min-dist": placement.min_dist, "seed": placement.seed}
    if placement.turn is not None:
        options["turn"] = [f"{degrees:g}" for degrees in placement.turn]
    line = command_line("map", runs, files, {**options, "colour": placement.colour})
    title = "Embedding map"
    write_figure(files, figure=lambda: figure.draw(charts), rows=lambda: figure.rows(charts), command=line, title=title)
    return line


def _placed(workspace: Workspace, run: int | str, view: View, placement: Placement) -> Placed:
    from trainer.charts.map import Placed
    from trainer.charts.snapshots import choose_snapshot
    from trainer.project import layout

    row = workspace.run(run)
    snapshot = choose_snapshot(workspace, row, step=view.step, dataset=view.dataset, split=view.split)
    if placement.turn is not None:
        if placement.method != "pca":
            raise ExportError("Only PCA has a third dimension here: leave --turn away, or take --method pca.")
        return _in_space(snapshot.folder, placement.turn)
    points = layout(
        workspace.folder,
        snapshot.folder,
        method=placement.method,
        neighbours=placement.neighbours,
        min_dist=placement.min_dist,
        seed=placement.seed,
        progress=tell,
    )
    parameters = ""
    if placement.method == "umap":
        parameters = (
            f"cosine, {placement.neighbours} neighbours, minimal distance {placement.min_dist:g}, seed {placement.seed}"
        )
    return Placed(snapshot.folder, points, placement.method, parameters)


def _in_space(folder: Path, turn: tuple[float, float]) -> Placed:
    from trainer.analysis.orbit import components, turned
    from trainer.charts.map import Placed
    from trainer.store.snapshot_files import read_snapshot

    snapshot = read_snapshot(folder)
    points, near = turned(components((snapshot.image, snapshot.text)), *turn)
    seen = f"azimuth {turn[0]:g}°, elevation {turn[1]:g}°"
    return Placed(folder, points, "pca", seen, side=turn, near=near)
