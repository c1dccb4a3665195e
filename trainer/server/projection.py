"""The handlers of `trainer.messages.Project` and `PlaceRows`."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from trainer.analysis.progress import Progress
from trainer.messages import Project, ProjectAnswer
from trainer.projection.fitting import ProjectError
from trainer.projection.layouts import series
from trainer.projection.new_points import place_new
from trainer.store.files import write_atomically
from trainer.untrusted.bounded.arrays import load_npy


def answer_project(workspace_folder: Path, question: Project, progress: Progress) -> ProjectAnswer:
    """Return the answer to the question.

    Raises:
        ProjectError: A folder that is no snapshot, or as `trainer.projection.layouts.series`.
    """
    snapshot, onto = Path(question.snapshot), Path(question.onto) if question.onto else None
    folders = [*map(Path, question.series), snapshot]
    for folder in (*folders, *([onto] if onto else [])):
        if not (folder / "snapshot.json").is_file():
            raise ProjectError(f"There is no snapshot in {folder}: choose another step.")
    show = partial(_write_points, Path(question.sketch)) if question.sketch else None
    *earlier, layout = series(workspace_folder, folders, question.placement, onto=onto, progress=progress, show=show)
    points: list[list[float]] = []
    if question.place:
        vectors = load_npy(question.place)
        points = place_new(snapshot, layout, vectors, images=question.place_images).tolist()
    facts = {name: value for name, value in asdict(layout).items() if name != "file"}
    layouts = tuple(str(each.file) for each in earlier)
    return ProjectAnswer(layout=str(layout.file), layouts=layouts, placed=tuple((x, y) for x, y in points), **facts)


def _write_points(file: Path, points: Float[ndarray, "m 2"]) -> None:
    """Write points where the window looks for them; it never sees half of them."""
    write_atomically(file, lambda draft: np.save(draft, points))
