"""The handlers of `trainer.messages.Project` and `PlaceRows`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from jaxtyping import Float
from numpy import ndarray

from trainer.analysis.progress import Progress
from trainer.charts.point_placement import PointPlacement
from trainer.messages import PlaceRows, Project
from trainer.projection.fitting import ProjectError, placed
from trainer.projection.layouts import layout_file, series
from trainer.projection.new_points import place_new
from trainer.untrusted.bounded.arrays import load_npy

_CHOSEN: Final = ("method", "neighbors", "min_dist", "metric", "seed")


def answer_place_rows(question: PlaceRows, progress: Progress) -> Float[ndarray, "m 2"]:
    """Return the points of the vectors.

    Raises:
        ProjectError: As `trainer.projection.fitting.placed`.
    """
    placement = PointPlacement(**{name: getattr(question, name) for name in _CHOSEN})
    return placed(load_npy(question.vectors), placement, progress)


def answer_project(workspace_folder: Path, question: Project, progress: Progress) -> dict[str, Any]:
    """Return the response as documented in the request class.

    Raises:
        ProjectError: A folder that is no snapshot, or as `layout_file`.
    """
    chosen = {name: getattr(question, name) for name in (*_CHOSEN, "file")}
    others = [Path(folder) for folder in question.series]
    for folder in (Path(question.snapshot), *others, *([Path(question.onto)] if question.onto else [])):
        if not (folder / "snapshot.json").is_file():
            raise ProjectError(f"There is no snapshot in {folder}: choose another step.")
    onto = Path(question.onto) if question.onto else None
    if others:
        folders = [*others, Path(question.snapshot)]
        *earlier, layout = series(workspace_folder, folders, PointPlacement(**chosen), onto=onto, progress=progress)
        layouts = [str(earlier_layout.file) for earlier_layout in earlier]
    else:
        layout = layout_file(workspace_folder, Path(question.snapshot), **chosen, onto=onto, progress=progress)
        layouts = []
    answer = {name: value for name, value in asdict(layout).items() if name != "file"}
    answer |= {"layout": str(layout.file), "layouts": layouts, "placed": []}
    if question.place:
        vectors = load_npy(question.place)
        answer["placed"] = place_new(Path(question.snapshot), layout, vectors, images=question.place_images).tolist()
    return answer
