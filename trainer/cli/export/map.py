"""`trainer export map`: draws the embedding maps side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trainer.charts.point_placement import PointPlacement
from trainer.charts.settings import add_options, from_options
from trainer.cli._progress import report
from trainer.cli.export import (
    WrittenFigure,
    add_figure_arguments,
    add_file_arguments,
    add_run_arguments,
    add_snapshot_arguments,
    check_arguments,
    figure_choices,
    print_files,
    request_of,
)
from trainer.config.fields import option
from trainer.errors import UserError
from trainer.untrusted import shell
from trainer.untrusted.bounded.arrays import load_npy

if TYPE_CHECKING:
    from trainer.charts.figure_choices import FigureChoices
    from trainer.charts.map import Placed
    from trainer.charts.spec import Request
    from trainer.store import Workspace

HELP = "embedding maps side by side"

PlacementT = TypeVar("PlacementT", bound=PointPlacement)


@dataclass(frozen=True, kw_only=True)
class Placement(PointPlacement):
    """The placement and colors of a map's points."""

    color: str = option(
        "modality",
        "Color",
        "modality, label, agreement or a measure of what changed (of the first two runs: image_rank_change, "
        "text_rank_change, margin_change, overlap, residual, verdict), rank, cosine, or a column of the items",
    )
    turn: tuple[float, ...] = option(
        (), "Side", "in space: three principal components, seen from this azimuth and elevation (degrees)"
    )
    isolate: tuple[str, ...] = option((), "In color", "classes in color, the others gray")
    pairs: str = option(
        "", "Pairs", "selected pairs in color, the others gray, of a few the others pale: 0-59,70 or a .npy"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs, their embeddings, and the placement and colors of points."""
    add_run_arguments(parser)
    add_snapshot_arguments(parser)
    add_placement_arguments(parser, Placement)
    add_figure_arguments(parser)
    add_file_arguments(parser)


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
    """Write the files and print their names."""
    check_arguments(args)
    placement = placement_of(args, Placement)
    if len(placement.turn) not in (0, 2):
        raise UserError("A side has two angles: --turn AZIMUTH ELEVATION.")
    choices = figure_choices(args)
    written = write(args.workspace, request_of(args), args.out, placement=placement, choices=choices)
    print_files(args, written)
    return 0


def write(
    workspace: Workspace,
    request: Request,
    files: Sequence[Path],
    *,
    placement: Placement,
    choices: FigureChoices | None = None,
) -> WrittenFigure:
    """Write the maps side by side."""
    from trainer.charts.figure_choices import FigureChoices
    from trainer.charts.map import draw, embedding_maps, point_rows
    from trainer.charts.opened_snapshot import open_target
    from trainer.charts.seed_note import with_seed_note
    from trainer.charts.settings import options
    from trainer.charts.spec import request_words
    from trainer.render_mpl.files import NumberRows, write_figure
    from trainer.render_mpl.panel import draw as drawn

    folders = [open_target(workspace, target, request).row.folder for target in request.targets]
    pairs = rows_of(placement.pairs) if placement.pairs else None
    placed = [_placed(folder, folders[0], placement, workspace) for folder in folders]
    charts = embedding_maps(
        workspace, placed, color=placement.color, isolate=placement.isolate, pairs=pairs, progress=report
    )
    choices = choices or FigureChoices()
    arguments = ["trainer", "export", "map", *request_words(request), *options(placement), *options(choices)]
    line = shell.join([*arguments, "--out", *(file.name for file in files)])
    size = write_figure(
        files,
        figure=lambda: drawn(
            with_seed_note(draw(charts), workspace, "map", request), choices, [chart.name for chart in charts]
        ),
        rows=lambda: NumberRows(*point_rows(charts)),
        command=line,
        title="Embedding map",
    )
    return WrittenFigure(line, size)


def rows_of(written: str) -> Any:
    """Parse rows written as `0-59,70`, or in a `.npy` file.

    Raises:
        UserError: They are neither.
    """
    import numpy as np

    try:
        if written.endswith(".npy"):
            return np.unique(load_npy(written).astype(np.int64))
        ends = [part.partition("-") for part in written.split(",")]
        return np.unique(np.concatenate([np.arange(int(a), int(b or a) + 1) for a, _, b in ends]))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{written[:60]!r} are not pairs ({error}): write 0-59,70 or the name of a .npy file."
        ) from error


def _placed(folder: Path, first: Path, placement: Placement, workspace: Workspace) -> Placed:
    from trainer.projection.live_maps import placed_snapshot

    if not placement.turn:
        return placed_snapshot(workspace, folder, first, placement, report)
    if placement.method != "pca":
        raise UserError("Only PCA has a third dimension here: leave --turn away, or take --method pca.")
    return _in_space(folder, placement.turn)


def _in_space(folder: Path, turn: tuple[float, ...]) -> Placed:
    from trainer.analysis.camera_3d import components, turned
    from trainer.charts.map import Placed
    from trainer.store.snapshot_files import read_snapshot

    snapshot = read_snapshot(folder)
    points, near = turned(components((snapshot.image, snapshot.text)), *turn)
    seen = f"azimuth {turn[0]:g}°, elevation {turn[1]:g}°"
    return Placed(folder, points, "pca", seen, side=(turn[0], turn[1]), near=near)
