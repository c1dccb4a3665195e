"""Maps of runs for a browser: placed, colored, with cosines and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtyping import UInt8
from numpy import ndarray

from trainer.analysis.progress import Progress, silent
from trainer.analysis.similarity import matched_cosines
from trainer.charts.map import Placed, embedding_maps
from trainer.charts.point_placement import PointPlacement
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import targets_of
from trainer.projection.layouts import layout
from trainer.render_html.live_map import LiveMapInput, live_map
from trainer.store import Workspace, read_snapshot


def live_maps(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    placement: PointPlacement,
    color: str = "modality",
    steps: Sequence[int | None] = (),
    dataset: str | None = None,
    split: str | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Return what a browser needs to draw the maps of these runs next to each other; see `live_map`.

    Maps of the same pairs are aligned to the first (Procrustes).

    Args:
        workspace: Where the runs are.
        runs: Numbers or names.
        placement: How points are placed.
        color: As in `embedding_maps`.
        steps: Of the snapshots, one for each run or one for all; None: the last.
        dataset: Of the snapshots.
        split: Of the snapshots.
        progress: Called with the share done and a note.

    Raises:
        ChartError: There is no such snapshot or color.
        UserError: The runs show different pairs.
    """
    rows = [
        choose_snapshot(workspace, workspace.runs.get(target.run), step=target.step, dataset=dataset, split=split)
        for target in targets_of(runs, steps)
    ]
    placed = []
    for row in rows:
        onto = () if row.folder == rows[0].folder or placement.method == "file" else (rows[0].folder,)
        points = layout(workspace.folder, row.folder, placement, onto=onto, progress=progress)
        about = placement.words.partition(", ")[2]
        placed.append(Placed(row.folder, points, placement.method, about, neighborhood=placement.neighborhood))
    maps = []
    for chart, row in zip(embedding_maps(workspace, placed, color=color, progress=progress), rows, strict=True):
        snapshot = read_snapshot(row.folder)
        image, text = snapshot.image, snapshot.text
        maps.append(LiveMapInput(chart, None if image is None or text is None else matched_cosines(image, text)))
    return live_map(maps, _thumbnails)


def _thumbnails(paths: Sequence[str], side: int) -> list[UInt8[ndarray, "s s 3"] | None]:
    """Return squares of pictures, decoded by the helper; None for one that cannot be read."""
    from trainer.images import read_pictures

    if not paths:
        return []
    pixels, answers = read_pictures(paths, side)
    return [None if answer.reason else square for square, answer in zip(pixels, answers, strict=True)]
