"""Geometry over training: maps of all snapshots in a fixed frame of each run, and curves over the steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.procrustes import nearest_rotation
from trainer.analysis.progress import Progress, between, silent
from trainer.analysis.projection import ScatterSum
from trainer.analysis.tiles import row_blocks
from trainer.charts import BOTH, ChartError
from trainer.charts.colored_points import ColoredPoints
from trainer.charts.common_pairs import same_pairs
from trainer.charts.figure_choices import WHOLE, FigureChoices
from trainer.charts.marks import Mark, PairMap, Panel, run_tone
from trainer.charts.metadata_columns import MetadataColumn, column, is_class
from trainer.charts.pair_changes import changes
from trainer.charts.pair_colors import (
    AGREEMENT,
    CHANGED,
    CLASS,
    COMPUTED,
    MODALITY,
    ColoredMap,
    changed_columns,
    color_notes,
    compares,
    pair_colors,
    pair_numbers,
    words,
)
from trainer.charts.point_placement import PointPlacement
from trainer.charts.snapshot_curves import by_data, measure_plot, measures_of
from trainer.charts.snapshot_label import data_notes
from trainer.charts.snapshot_series import MEASURES, TimelineRun, measured, snapshots_of, timeline_run
from trainer.store import Workspace
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot

MOST_STEPS, MAP_IN = 5, 1.15
"""Maps of a run in the still figure at most, and the least width of one; of more steps evenly chosen ones are shown."""
MOST_CLASSES: Final = 256
"""A column of more different words is an identity, not a class."""
Layouts = Callable[[Sequence[Sequence[Path]]], Sequence[Sequence[np.ndarray]]]
"""Places of the points of each snapshot of each run, along the same axes."""


@dataclass(frozen=True)
class TimelineChart:
    """All runs along the same axes."""

    runs: tuple[TimelineRun, ...]
    placement: PointPlacement  # How points are placed.
    note: str  # What was fixed, turned and sampled.
    colors: tuple[ColoredPoints, ...] = ()  # Of each run's pairs; empty: by class where there are some.

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps at which any run has a snapshot, ascending."""
        return tuple(sorted({step for run in self.runs for step in run.steps}))


def timeline(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    dataset: str | None = None,
    split: str | None = None,
    placement: PointPlacement | None = None,
    layouts: Layouts | None = None,
    curves: bool = True,
    progress: Progress = silent,
) -> TimelineChart:
    """Return the maps and curves of the runs over their snapshots of one split.

    Args:
        runs: Ids or names; their order decides the colors, and the first one's last step the frame of PCA.
        dataset: Of the snapshots; None takes each run's first.
        split: Of the snapshots; None takes the held-out split.
        placement: How points are placed; None is PCA.
        layouts: Places points by any other method; gets the folders of each run.
        curves: Whether to measure too; False leaves that to `measured`.
        progress: Told a share and a note; what it raises ends the computation.

    Raises:
        ChartError: A run has no such snapshots.
    """
    placement = placement or PointPlacement()
    rows = [workspace.runs.get(run) for run in runs]
    chosen = [snapshots_of(workspace, row, dataset=dataset, split=split) for row in rows]
    folders = [[snapshot.folder for snapshot in snapshots] for snapshots in chosen]
    progress(0.0, "placing the points")
    if placement.method == "pca":
        placed, note = pca_frames(folders)
    elif layouts is None:
        raise ChartError(f"A timeline by {placement.words} has to place its points.")
    else:
        placed, note = same_box(layouts(folders)), series_words(placement)
    made = []
    for index, (row, snapshots, points) in enumerate(zip(rows, chosen, placed, strict=True)):
        run = timeline_run(index, row, snapshots, points)
        if curves:
            begin, end = (0.2 + 0.8 * part / len(rows) for part in (index, index + 1))
            run.curves.update(measured(workspace, run, progress=between(progress, begin, end)))
        made.append(run)
    return TimelineChart(tuple(made), placement, note)


def series_words(placement: PointPlacement) -> str:
    """Return how layouts of several steps were made."""
    return f"{placement.words}; each step initialized from the next one, aligned to it and scaled to the same size"


MOST_STRETCH: Final = 1.35
"""How much longer than the other an axis of a layout may become, which has no unit."""


def same_box(placed: Sequence[Sequence[np.ndarray]]) -> list[list[Float[np.ndarray, "m 2"]]]:
    """Return the layouts of each run, every step moved and scaled into the box of its last: their axes have no unit.

    Without this one scattered step would make all others small in the frame.
    """
    return [[_into(xy, np.asarray(steps[-1])) for xy in steps] for steps in placed]


def _into(xy: np.ndarray, box: np.ndarray) -> Float[np.ndarray, "m 2"]:
    (low, high), (left, right) = ((np.nanmin(each, axis=0), np.nanmax(each, axis=0)) for each in (xy, box))
    share = (right - left) / np.maximum(high - low, 1e-12)
    share = np.minimum(share, MOST_STRETCH * share.min())
    return ((xy - (low + high) / 2) * share + (left + right) / 2).astype(np.float32)


def draw(chart: TimelineChart, choices: FigureChoices = WHOLE) -> Panel:
    """Return a row of maps per run, or a column, all of a run in one frame, above the curves.

    Args:
        chart: What is drawn.
        choices: Their width decides how many steps have room.
    """
    steps = _chosen(chart.steps, min(MOST_STEPS, int(choices.layout_in / MAP_IN)))
    rows: list[tuple[Mark, ...]] = [*_maps(chart, steps, in_columns=choices.arrange == "column")]
    for number, runs in enumerate(by_data(chart.runs)):
        plots = [measure_plot(measure, runs) for measure in measures_of(runs)]
        if number:
            plots = [replace(plot, key=f"{plot.key}-{number}") for plot in plots]
        rows += [(*plots[:4],), (*plots[4:],)]
    return Panel(
        title="Geometry over training",
        rows=tuple(rows),
        notes=(note_of(chart, steps),),
        warnings=data_notes(chart.runs),
        compact=True,
        letters=compares((chart.colors or point_colors(chart))[0]),
    )


def _maps(chart: TimelineChart, steps: Sequence[int], *, in_columns: bool) -> Iterator[tuple[PairMap, ...]]:
    """Yield rows of maps; what all of a row or column have in common is written at its edge alone."""
    maps = [[map_at(chart, run, step, bar=step == steps[-1]) for step in steps] for run in chart.runs]
    if len({tuple(mark.title for mark in row) for row in maps}) == 1:
        for row, run in zip(maps, chart.runs, strict=True):
            for column, mark in enumerate(row):
                over, left = (run.name, mark.title) if in_columns else (mark.title, run.name)
                is_first = run is chart.runs[0], not column
                over_at, left_at = is_first[::-1] if in_columns else is_first
                tone = mark.tone if in_columns else ""
                title, row_label = over if over_at else "", left if left_at else ""
                row[column] = replace(mark, notes=(), tone=tone, title=title, row_label=row_label)
    yield from zip(*maps) if in_columns else map(tuple, maps)


def map_at(chart: TimelineChart, run: TimelineRun, step: int, *, bar: bool = True) -> PairMap:
    """Return the map of a run at a step; in a film the scale of all runs stands at the last."""
    index = run.at(step)
    xy, colors = run.points[index], (chart.colors or point_colors(chart))[chart.runs.index(run)]
    return PairMap(
        f"maps-{chart.runs.index(run) * len(chart.steps) + chart.steps.index(step)}",
        f"Step {run.steps[index]:,}",
        xy[: run.images],
        xy[run.images :],
        colors,
        run_tone(run.index),
        notes=(run.name,),
        frame=run.frame,
        bar=bar and (colors.own_scale or run is chart.runs[-1]),
        bar_label=words(colors.by),
    )


def curve_rows(chart: TimelineChart) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
    """Return a header and a row of every point of every curve: run, measure, step, value, whether it was logged."""
    header = ("run", "name", "objective", "dataset", "split", "n", "measured_on", "measure", "unit", "step", "value")
    return (*header, "logged"), _rows(chart)


def _rows(chart: TimelineChart) -> Iterator[tuple[Any, ...]]:
    for run in chart.runs:
        for measure in MEASURES:
            curve = run.curves.get(measure.key)
            if curve is None:
                continue
            for step, value in zip(curve.x.tolist(), curve.y.tolist(), strict=True):
                facts = (run.run, run.name, run.objective, run.dataset, run.split, run.n)
                yield *facts, curve.n, measure.key, measure.unit, int(step), value, str(curve.logged).lower()


def _chosen(steps: Sequence[int], most: int) -> list[int]:
    indices = np.unique(np.linspace(0, len(steps) - 1, min(most, len(steps))).round().astype(int))
    return [steps[index] for index in indices]


def note_of(chart: TimelineChart, steps: Sequence[int]) -> str:
    """Return the note: how points are placed and colored, and what was sampled."""
    sizes = ", ".join(f"{run.n:,} ({run.name})" for run in chart.runs)
    sentences = [chart.note, f"Pairs: {sizes}"]
    colors = (chart.colors or point_colors(chart))[0]
    question = ", of the last step" if colors.by in COMPUTED else ""
    question = f" from A to B: {compared_words(chart.runs)}" if colors.by in CHANGED else question
    sentences += color_notes(colors, question)
    if len(steps) < len(chart.steps):
        sentences.append(f"{len(steps)} of {len(chart.steps)} steps are shown")
    sampled = [run for run in chart.runs if run.measured < run.n]
    if sampled:
        sentences.append(f"Curves that are not logged: measured on {sampled[0].measured:,} of {sampled[0].n:,} pairs")
    return ". ".join(sentences) + "."


def compared(runs: Sequence[TimelineRun]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the two snapshots (run and step) that changes refer to; None if there are not two.

    The last steps of two runs with the same pairs, or the first and the last step of one.
    """
    if len(runs) == 1 and len(runs[0].steps) > 1:
        return (runs[0].run, runs[0].steps[0]), (runs[0].run, runs[0].steps[-1])
    if len(runs) == 2 and runs[0].run != runs[1].run and same_pairs(runs[0].items, runs[1].items):
        return (runs[0].run, runs[0].steps[-1]), (runs[1].run, runs[1].steps[-1])
    return None


def compared_words(runs: Sequence[TimelineRun]) -> str:
    """Return the legend text of the snapshots that changes refer to."""
    pair = compared(runs)
    if pair is None:
        return ""
    (a, first), (b, last) = pair
    return f"A is step {first:,}, B step {last:,}" if a == b else f"A at step {first:,}, B at step {last:,}"


def what_changed(
    workspace: Workspace, runs: Sequence[TimelineRun], progress: Progress = silent
) -> dict[str, MetadataColumn]:
    """Return the changes between the snapshots of `compared`, pair by pair: measure -> its values.

    Raises:
        ChartError: There are no two such snapshots, or they cannot be compared.
    """
    pair = compared(runs)
    if pair is None:
        raise ChartError(
            "What changed needs two runs with snapshots of the same pairs, or one run with two steps: --runs A B."
        )
    return changed_columns(changes(workspace, *pair, dataset=runs[0].dataset, split=runs[0].split, progress=progress))


def point_colors(
    chart: TimelineChart,
    by: str | None = None,
    *,
    workspace: Workspace | None = None,
    progress: Progress = silent,
) -> tuple[ColoredPoints, ...]:
    """Return the colors of every run's pairs with a common meaning; computed ones are of each run's last step.

    Args:
        by: `modality`, `label`, a column, `agreement`, `rank`, `cosine`, or what changed; None: class where there are
            some, else modality.
        workspace: Where the runs are; only what changed is read from it.
        progress: Told how far the comparison is; may raise to cancel.

    Raises:
        ChartError: The runs have no such column, or cannot be compared.
    """
    if by is None:
        by = CLASS if all(is_class(run.items.label, MOST_CLASSES) for run in chart.runs) else MODALITY
    runs = chart.runs
    if by == AGREEMENT and (len(runs) != 2 or not same_pairs(runs[0].items, runs[1].items)):
        raise ChartError("Agreement needs two runs with snapshots of the same pairs: name them, --runs A B.")
    numbers = [pair_numbers(read_snapshot(run.folders[-1])) if by in COMPUTED else None for run in runs]
    if by in COMPUTED and not any(numbers):
        raise ChartError(f"{words(by)} needs images and texts. {BOTH}")
    columns = [column_of(run.items, by) for run in runs]
    if by in CHANGED and workspace is not None:
        changed = what_changed(workspace, runs, progress)
        if by not in changed:
            raise ChartError(f"These runs have no {by}: it needs images and texts, and for predictions classes.")
        columns = [changed] * len(runs)
    if by not in (MODALITY, *COMPUTED) and not any(columns):
        named = ", ".join(dict.fromkeys(name for run in runs for name in run.items.metadata))
        computed = ", ".join((*COMPUTED, *CHANGED))
        raise ChartError(f"There is no column {by!r} to color by; choose modality, label, {computed}, {named}.")
    maps = [ColoredMap(run.n, *made) for run, *made in zip(runs, columns, numbers, strict=True)]
    return tuple(pair_colors(by, maps))


def column_of(items: Items, by: str) -> dict[str, MetadataColumn]:
    """Return the column that colors pairs by this, under its name; nothing where there is none."""
    values = items.label if by == CLASS else items.metadata.get(by)
    prepared = column(values) if values is not None and by not in (MODALITY, *COMPUTED) else None
    return {} if prepared is None else {by: prepared}


def pca_frames(folders: Sequence[Sequence[Path]]) -> tuple[list[list[Float[np.ndarray, "m 2"]]], str]:
    """Return all points in ONE plane, the principal axes of the first run's last step, and a note.

    Every other step is turned onto the last one in the embedding space (orthogonal Procrustes about the origin, which
    keeps all distances, the gap included), and the last steps of further runs onto the first run's, where they are of
    the same items. Without the turn the axes of the last step would show little of the steps before.
    """
    reference = read_snapshot(folders[0][-1])
    first = _plane(reference)
    placed, alone = [], 0
    for run in folders:
        last = read_snapshot(run[-1])
        aim, plane = reference, first
        if not _same(last, reference):
            aim, plane, alone = last, _plane(last), alone + 1
        placed.append([_seen(read_snapshot(folder), aim, *plane[:2]) for folder in run])
    shares = first[2]
    note = (
        f"PCA: the axes of the last step ({100 * shares.sum():.0f} % of its variance), every step aligned to it in "
        "embedding space"
    )
    return placed, note + ("; runs of other pairs have axes of their own" if alone else "")


def _blocks(snapshot: Snapshot) -> Iterator[Float[np.ndarray, "b d"]]:
    """Yield all rows, images first: a copy of a million would not fit the memory."""
    for part in (snapshot.image, snapshot.text):
        for rows in row_blocks(0 if part is None else len(part), snapshot.d):
            assert part is not None, "it has rows"
            yield np.asarray(part[rows], np.float32)


def _plane(snapshot: Snapshot) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d 2"], Float[np.ndarray, " 2"]]:
    """Return the mean of all rows, their two principal axes, and the shares of the variance."""
    rows = ScatterSum(snapshot.d)
    for block in _blocks(snapshot):
        rows.add(block)
    return rows.axes(2)


def _same(snapshot: Snapshot, other: Snapshot) -> bool:
    modalities = [(s.image is None, s.text is None) for s in (snapshot, other)]
    return modalities[0] == modalities[1] and np.array_equal(np.asarray(snapshot.items.id), np.asarray(other.items.id))


def _seen(
    snapshot: Snapshot, aim: Snapshot, mean: Float[np.ndarray, " d"], axes: Float[np.ndarray, "d 2"]
) -> Float[np.ndarray, "m 2"]:
    turned = axes
    if snapshot.folder != aim.folder and _same(snapshot, aim):
        products = np.zeros((snapshot.d, aim.d))
        for block, onto in zip(_blocks(snapshot), _blocks(aim), strict=True):
            products += block.T @ onto
        turned = nearest_rotation(products) @ axes
    return np.concatenate([(block @ turned - mean @ axes).astype(np.float32) for block in _blocks(snapshot)])
