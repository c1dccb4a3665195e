"""Read the timeline's data off the GUI thread: pure functions of the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from trainer.charts.pair_colors import MOST_RANKED
from trainer.charts.point_placement import PointPlacement
from trainer.charts.snapshot_series import TimelineRun
from trainer.charts.timeline import TimelineChart, pca_frames, same_box, series_words, timeline
from trainer.errors import UserError
from trainer.store import Workspace
from trainer.store.layout_files import has_layout, kept_series
from trainer.untrusted.bounded.arrays import load_npy

UMAP: Final = PointPlacement(method="umap")


@dataclass(frozen=True)
class TimelineResult:
    """The chart of the available runs by place (0 is A), and why others are missing."""

    chart: TimelineChart | None
    problems: dict[int, UserError] = field(default_factory=dict)
    has_umap: bool = False
    """Whether each snapshot has a UMAP layout in the workspace."""

    def run(self, index: int) -> TimelineRun | None:
        return next((run for run in self.chart.runs if run.index == index), None) if self.chart else None


def read(
    workspace: Workspace, runs: Sequence[int | None], dataset: str | None, split: str | None, *, umap: bool = False
) -> TimelineResult:
    """Read the maps of A and B, if they have snapshots; the curves follow later.

    Args:
        workspace: With both runs.
        runs: A and B.
        dataset: Of the snapshots; None takes each run's first.
        split: Of the snapshots; None takes the held-out split.
        umap: Show UMAP layouts where the workspace has them; else PCA.
    """
    sides = [index for index, run in enumerate(runs) if run is not None]
    options: dict[str, Any] = {"dataset": dataset, "split": split, "curves": False}
    try:
        return _result(workspace, timeline(workspace, [runs[index] for index in sides], **options), sides, {}, umap)
    except UserError as error:
        if len(sides) == 1:
            return TimelineResult(None, {sides[0]: error})
    problems: dict[int, UserError] = {}
    for index in sides:
        try:
            timeline(workspace, [runs[index]], **options)
        except UserError as error:
            problems[index] = error
    able = [index for index in sides if index not in problems]
    if not able:
        return TimelineResult(None, problems)
    return _result(workspace, timeline(workspace, [runs[index] for index in able], **options), able, problems, umap)


def _result(
    workspace: Workspace, chart: TimelineChart, sides: Sequence[int], problems: dict[int, UserError], umap: bool
) -> TimelineResult:
    folders = [folder for run in chart.runs for folder in run.folders]
    runs = tuple(replace(run, index=side) for run, side in zip(chart.runs, sides, strict=True))
    chart, has_umap = replace(chart, runs=runs), has_layout(workspace.folder, folders, "umap")
    by_umap = placed_by_kept(workspace.folder, chart, UMAP) if umap and has_umap else None
    return TimelineResult(by_umap or chart, problems, has_umap)


def placed_by_kept(workspace_folder: Path, chart: TimelineChart, placement: PointPlacement) -> TimelineChart | None:
    """Return the chart with points of layouts that the workspace has; None if one lacks or has too many points."""
    if max(run.n for run in chart.runs) > MOST_RANKED:
        return None  # to look a layout up, all vectors are read: the projection process does it
    files: dict[int, Sequence[str]] = {}
    anchor = None
    for run in chart.runs:
        layouts = kept_series(workspace_folder, run.folders, placement.parameters, anchor)
        if layouts is None:
            return None
        files[run.index], anchor = layouts, anchor or run.folders[-1]
    return placed_by(chart, placement, files)


def placed_by(chart: TimelineChart, placement: PointPlacement, files: dict[int, Sequence[str]]) -> TimelineChart:
    """Return the chart with points from each run's files, by place."""
    placed = same_box([[load_npy(file).astype(np.float32) for file in files[run.index]] for run in chart.runs])
    runs = tuple(replace(run, points=tuple(points)) for run, points in zip(chart.runs, placed, strict=True))
    return replace(chart, runs=runs, placement=placement, note=series_words(placement))


def placed_by_pca(chart: TimelineChart) -> TimelineChart:
    """Return the chart with points placed by PCA."""
    placed, note = pca_frames([run.folders for run in chart.runs])
    runs = tuple(replace(run, points=tuple(points)) for run, points in zip(chart.runs, placed, strict=True))
    return replace(chart, runs=runs, placement=PointPlacement(), note=note)
