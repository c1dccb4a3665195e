"""Maps of runs for a browser: placed, colored, with cosines and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxtyping import UInt8
from numpy import ndarray

from trainer.analysis.progress import Progress, silent
from trainer.analysis.similarity import matched_cosines
from trainer.charts.map import Placed, embedding_maps
from trainer.charts.opened_snapshot import open_target
from trainer.charts.point_placement import PointPlacement
from trainer.charts.spec import Request
from trainer.projection import MOST_FITTED, layout
from trainer.render_html.live_map import LiveMapInput, live_map
from trainer.store import Workspace


def live_maps(
    workspace: Workspace,
    request: Request,
    *,
    placement: PointPlacement,
    color: str = "modality",
    progress: Progress = silent,
) -> dict[str, Any]:
    """Return what a browser needs to draw the maps of these snapshots next to each other; see `live_map`.

    Maps of the same pairs are aligned to the first (Procrustes).

    Args:
        color: As in `embedding_maps`.

    Raises:
        ChartError: There is no such snapshot or color.
        UserError: The runs show different pairs.
    """
    opened = [open_target(workspace, target, request) for target in request.targets]
    folders = [each.row.folder for each in opened]
    placed = [placed_snapshot(workspace, folder, folders[0], placement, progress) for folder in folders]
    maps = []
    for chart, each in zip(embedding_maps(workspace, placed, color=color, progress=progress), opened, strict=True):
        image, text = each.snapshot.image, each.snapshot.text
        maps.append(LiveMapInput(chart, None if image is None or text is None else matched_cosines(image, text)))
    return live_map(maps, _thumbnails)


def placed_snapshot(
    workspace: Workspace, folder: Path, first: Path, placement: PointPlacement, progress: Progress
) -> Placed:
    """Return a snapshot's points, aligned to those of the first one if both have the same pairs."""
    onto = () if folder == first or placement.method == "file" else (first,)
    points = layout(workspace.folder, folder, placement, onto=onto, progress=progress)
    parameters = placement.words.partition(", ")[2]
    if len(points) > MOST_FITTED and placement.method not in ("pca", "umap", "file"):
        parameters += f", fitted on {MOST_FITTED:,} of {len(points):,} points, the others placed at their nearest"
    return Placed(folder, points, placement.method, parameters, neighborhood=placement.neighborhood)


def _thumbnails(paths: Sequence[str], side: int) -> list[UInt8[ndarray, "s s 3"] | None]:
    """Return squares of pictures, decoded by the helper; None for one that cannot be read."""
    from trainer.images import read_pictures

    if not paths:
        return []
    pixels, answers = read_pictures(paths, side)
    return [None if answer.reason else square for square, answer in zip(pixels, answers, strict=True)]
