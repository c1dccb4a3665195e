"""Geometry over training: maps of all snapshots in one fixed frame, and curves over the steps."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.geometry import ajne, alignment, modality_gap, uniformity
from trainer.analysis.procrustes import ProcrustesTransform, procrustes
from trainer.analysis.progress import Progress, silent
from trainer.analysis.projection import principal_axes
from trainer.analysis.retrieval import question_ranks, recall_at
from trainer.analysis.sampling import at_most
from trainer.analysis.spectra import covariance_spectrum, effective_rank
from trainer.charts import BOTH, ChartError
from trainer.charts.layout_method import PointPlacement
from trainer.charts.matching import matching_of
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
    pair_colors,
    pair_numbers,
    words,
)
from trainer.charts.snapshots import choose_snapshot
from trainer.metrics import noted_n, recall_name
from trainer.store import RunRow, SnapshotRow, Workspace
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot

MOST_CLASSES: Final = 256
"""A column of more different words is an identity, not a class."""
MOST_PAIRS: Final = 4_000
"""More pairs than this are sampled for the curves: recall, uniformity and Ajne compare everything with everything."""

Layouts = Callable[[Sequence[Sequence[Path]]], Sequence[Sequence[np.ndarray]]]
"""Places of the points of each snapshot of each run, in one frame."""


@dataclass(frozen=True)
class TimelineMeasure:
    """One curve of the timeline.

    Attributes:
        key: Tells it from the others.
        label: For people.
        unit: `%`, or empty.
        digits: Decimals shown.
        logged: Names under which runs may have logged it, the first that is there wins; `{}` is the split's prefix.
    """

    key: str
    label: str
    unit: str = ""
    digits: int = 3
    logged: tuple[str, ...] = ()


MEASURES: Final = (
    TimelineMeasure("recall", recall_name("image_to_text"), "%", 1, ("{}/image_to_text_R@1",)),
    TimelineMeasure("gap", "Modality gap", logged=("{}/modality_gap",)),
    TimelineMeasure("alignment", "Alignment", logged=("{}/alignment",)),
    TimelineMeasure("uniformity", "Uniformity, images", logged=("{}/uniformity_image",)),
    TimelineMeasure("rank", "Effective rank, images", digits=1, logged=("{}/effective_rank_image",)),
    TimelineMeasure("ajne", "Ajne / n, images", digits=4),
    TimelineMeasure("tau", "Tau", digits=4, logged=("train/inv_tau",)),
)


def measure_name(measure: TimelineMeasure, runs: Sequence[TimelineRun]) -> str:
    """Return the label of a measure of these runs; that of a recall names split and n."""
    if measure.key != "recall":
        return measure.label
    return recall_name("image_to_text", split=[run.split for run in runs], n=[run.pictures for run in runs])


@dataclass(frozen=True)
class Curve:
    """A measure of one run over its steps.

    Attributes:
        x: Steps, ascending.
        y: Values; percent where the measure's unit is %.
        logged: Whether the run logged it or fixed it from the start; else it is computed from the snapshots.
    """

    x: Float[np.ndarray, " s"]
    y: Float[np.ndarray, " s"]
    logged: bool


@dataclass(frozen=True)
class TimelineRun:
    """One run's snapshots; in each, point i of the images and point i of the texts are pair i.

    Attributes:
        index: Place among the runs asked for; decides its color.
        folders: Of the snapshots, in the order of their steps.
        steps: Ascending.
        points: Where the points stand at each step: images, then texts.
        n: Pairs.
        sampled: The snapshots hold a sample of their split.
        measured: Pairs the computed curves are measured on; fewer than `n` when sampled.
        pictures: Distinct pictures among the pairs, the questions of recall; 0 where they are not known.
        curves: By the key of their measure; those that cannot be had are missing.
    """

    index: int
    run: int
    name: str
    objective: str
    dataset: str
    split: str
    folders: tuple[Path, ...]
    steps: tuple[int, ...]
    points: tuple[Float[np.ndarray, "m 2"], ...]
    images: int
    texts: int
    items: Items
    n: int
    sampled: bool
    measured: int
    pictures: int = 0
    curves: dict[str, Curve] = field(default_factory=dict)

    def at(self, step: float) -> int:
        """Return the place of the last snapshot at or before `step`; the first if there is none."""
        return max(int(np.searchsorted(self.steps, step, side="right")) - 1, 0)


@dataclass(frozen=True)
class PointColors:
    """The colors of one run's pairs at all steps; fields as in `trainer.charts.map.MapChart`."""

    color: str
    classes: tuple[str, ...]
    class_of: Int[np.ndarray, " n"]
    numbers: Float[np.ndarray, " n"] | None
    ordered: bool
    own_scale: bool
    ends: tuple[float, float] | None
    better: int
    note: str


@dataclass(frozen=True)
class TimelineChart:
    """All runs in one frame.

    Attributes:
        frame: Left, bottom, right and top that hold every point of every run and step.
        placement: How points are placed.
        note: What was fixed, turned and sampled.
        colors: Of each run's pairs; empty: by class where there are some.
    """

    runs: tuple[TimelineRun, ...]
    frame: tuple[float, float, float, float]
    placement: PointPlacement
    note: str
    colors: tuple[PointColors, ...] = ()

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
    progress: Progress | None = None,
) -> TimelineChart:
    """Return the maps and curves of the runs over their snapshots of one split.

    Args:
        workspace: Where the runs are.
        runs: Ids or names; their order decides the colors, and the first one's last step the frame of PCA.
        dataset: Of the snapshots; None takes each run's first.
        split: Of the snapshots; None takes the held-out split.
        placement: How points are placed; None is PCA.
        layouts: Places points by any other method; gets the folders of each run.
        curves: Whether to measure too; False leaves that to `measured`.
        progress: Told a share and a note; what it raises ends the computation.

    Raises:
        ChartError: A run has no such snapshots.
        StoreError: No such run.
    """
    tell, placement = progress or silent, placement or PointPlacement()
    rows = [workspace.runs.get(run) for run in runs]
    chosen = [snapshots_of(workspace, row, dataset=dataset, split=split) for row in rows]
    folders = [[snapshot.folder for snapshot in snapshots] for snapshots in chosen]
    tell(0.0, "placing the points")
    if placement.method == "pca":
        placed, note = pca_frames(folders)
    elif layouts is None:
        raise ChartError(f"A timeline by {placement.words} has to place its points.")
    else:
        placed, note = layouts(folders), f"{placement.words}; each step initialized from the next one and aligned to it"
    made = []
    for index, (row, snapshots, points) in enumerate(zip(rows, chosen, placed, strict=True)):
        run = _run(index, row, snapshots, points)
        if curves:
            part = lambda share, words, index=index: tell(0.2 + 0.8 * (index + share) / len(rows), words)  # noqa: E731
            run.curves.update(measured(workspace, run, progress=part))
        made.append(run)
    return TimelineChart(tuple(made), frame_of([xy for run in made for xy in run.points]), placement, note)


def compared(runs: Sequence[TimelineRun]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the two snapshots (run and step) that changes refer to; None if there are not two.

    The last steps of two runs with the same pairs, or the first and the last step of one.
    """
    if len(runs) == 1 and len(runs[0].steps) > 1:
        return (runs[0].run, runs[0].steps[0]), (runs[0].run, runs[0].steps[-1])
    if len(runs) == 2 and runs[0].run != runs[1].run and _same_items(runs[0].items, runs[1].items):
        return (runs[0].run, runs[0].steps[-1]), (runs[1].run, runs[1].steps[-1])
    return None


def compared_words(runs: Sequence[TimelineRun]) -> str:
    """Return the legend text of the snapshots that changes refer to."""
    found = compared(runs)
    if found is None:
        return ""
    (a, first), (b, last) = found
    return f"A is step {first:,}, B step {last:,}" if a == b else f"A at step {first:,}, B at step {last:,}"


def what_changed(
    workspace: Workspace, runs: Sequence[TimelineRun], progress: Progress | None = None
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
    progress: Progress | None = None,
) -> tuple[PointColors, ...]:
    """Return the colors of every run's pairs with a common meaning; computed ones are of each run's last step.

    Args:
        chart: The runs.
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
    if by == AGREEMENT and (len(runs) != 2 or not _same_items(runs[0].items, runs[1].items)):
        raise ChartError("Agreement needs two runs with snapshots of the same pairs: name them, --runs A B.")
    numbers = [pair_numbers(read_snapshot(run.folders[-1])) if by in COMPUTED else None for run in runs]
    if by in COMPUTED and not any(numbers):
        raise ChartError(f"{words(by)} needs images and texts. {BOTH}")
    columns = [_column_of(run.items, by) for run in runs]
    if by in CHANGED and workspace is not None:
        changed = what_changed(workspace, runs, progress)
        if by not in changed:
            raise ChartError(f"These runs have no {by}: it needs images and texts, and for verdicts classes.")
        columns = [changed] * len(runs)
    if by not in (MODALITY, *COMPUTED) and not any(columns):
        named = ", ".join(dict.fromkeys(name for run in runs for name in run.items.metadata))
        computed = ", ".join((*COMPUTED, *CHANGED))
        raise ChartError(f"There is no column {by!r} to color by; choose modality, label, {computed}, {named}.")
    found = pair_colors(by, [ColoredMap(run.n, *made) for run, *made in zip(runs, columns, numbers, strict=True)])
    return tuple(
        PointColors(
            by,
            one.names,
            np.zeros(run.n, np.int64) if one.place is None else one.place,
            one.numbers,
            one.ordered,
            one.own_scale,
            one.ends,
            one.better,
            one.note,
        )
        for run, one in zip(runs, found, strict=True)
    )


def _column_of(items: Items, by: str) -> dict[str, MetadataColumn]:
    values = items.label if by == CLASS else items.metadata.get(by)
    found = column(values) if values is not None and by not in (MODALITY, *COMPUTED) else None
    return {} if found is None else {by: found}


def _same_items(a: Items, b: Items) -> bool:
    return np.array_equal(np.asarray(a.id), np.asarray(b.id))


def snapshots_of(
    workspace: Workspace, row: RunRow, *, dataset: str | None = None, split: str | None = None
) -> list[SnapshotRow]:
    """Return the run's snapshots of one split by step, each step once.

    Raises:
        ChartError: There are none.
    """
    last = choose_snapshot(workspace, row, dataset=dataset, split=split)
    same = [
        s
        for s in workspace.results.snapshots(row.id)
        if (s.dataset, s.split, s.n) == (last.dataset, last.split, last.n)
    ]
    return sorted({snapshot.step: snapshot for snapshot in same}.values(), key=lambda snapshot: snapshot.step)


def pca_frames(folders: Sequence[Sequence[Path]]) -> tuple[list[list[Float[np.ndarray, "m 2"]]], str]:
    """Return all points in ONE plane, the principal axes of the first run's last step, and a note.

    Every other step is turned onto the last one in the embedding space (orthogonal Procrustes about the origin, which
    keeps all distances, the gap included), and the last steps of further runs onto the first run's, where they are of
    the same items. Without the turn the axes of the last step would show little of the steps before.
    """
    reference = read_snapshot(folders[0][-1])
    basis = _vectors(reference)
    mean, axes, shares = principal_axes(basis, 2)
    placed, alone = [], 0
    for run in folders:
        last = read_snapshot(run[-1])
        aim, seen = basis, (mean, axes)
        if not _same(last, reference):
            aim, alone = _vectors(last), alone + 1
            seen = principal_axes(aim, 2)[:2]
        placed.append([_seen(_vectors(read_snapshot(folder)), aim, *seen) for folder in run])
    note = (
        f"PCA: the axes of the last step ({shares.sum():.0%} of its variance), every step aligned to it in "
        "embedding space"
    )
    return placed, note + ("; runs of other pairs have axes of their own" if alone else "")


def frame_of(layouts: Sequence[Float[np.ndarray, "m 2"]]) -> tuple[float, float, float, float]:
    """Return left, bottom, right and top of all finite points."""
    low = np.array([np.nanmin(xy, axis=0) for xy in layouts]).min(0)
    high = np.array([np.nanmax(xy, axis=0) for xy in layouts]).max(0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def measured(workspace: Workspace, run: TimelineRun, *, progress: Progress | None = None) -> dict[str, Curve]:
    """Return the curves of one run: as logged if available, else computed from its snapshots."""
    tell, found = progress or silent, {}
    prefix = "val" if run.split != "combinations" else run.split
    names = set(workspace.results.scalar_names(run.run))
    for measure in MEASURES:
        logged = next((n.format(prefix) for n in measure.logged if n.format(prefix) in names), None)
        if logged is not None:
            steps, values, _ = workspace.results.series(run.run, logged)
            y = 1 / np.maximum(values, 1e-12) if measure.key == "tau" else np.asarray(values, np.float64)
            found[measure.key] = Curve(np.asarray(steps, np.float64), y * (100 if measure.unit == "%" else 1), True)
    if "tau" not in found and (tau := fixed_tau(workspace, run.run)) is not None:
        x = np.array([min(run.steps[0], 0), run.steps[-1]], np.float64)
        found["tau"] = Curve(x, np.full(2, tau), True)
    missing = [m for m in MEASURES if m.key not in found and m.key != "tau"]
    if not missing:
        return found
    rows: list[dict[str, float]] = []
    for place, folder in enumerate(run.folders):
        tell(place / len(run.folders), f"measuring step {run.steps[place]:,} of {run.name}")
        rows.append(numbers_of(folder, folder.stat().st_mtime_ns))
    x = np.asarray(run.steps, np.float64)
    for measure in missing:
        y = np.array([row[measure.key] for row in rows]) * (100 if measure.unit == "%" else 1)
        if np.isfinite(y).any():
            found[measure.key] = Curve(x, y, False)
    return found


def fixed_tau(workspace: Workspace, run: int) -> float | None:
    """Return the temperature fixed in the run's configuration; None if it is learned or missing."""
    objective = workspace.runs.config_of(run).objective
    inv_tau = getattr(objective, "inv_tau", None)
    # `inv_tau_max` is the clamp of a learned one.
    learned = getattr(objective, "learn_inv_tau", hasattr(objective, "inv_tau_max"))
    return None if inv_tau is None or learned else 1 / float(inv_tau)


@functools.lru_cache(maxsize=4096)
def numbers_of(folder: Path, _changed: int) -> dict[str, float]:
    """Return the measures of one snapshot by key, NaN if it lacks a modality; cached per process."""
    snapshot = read_snapshot(folder)
    rows = sample_of(snapshot.n)
    image, text = (
        None if part is None else np.asarray(part[rows], np.float32) for part in (snapshot.image, snapshot.text)
    )
    seen = image if image is not None else text
    nan = float("nan")
    numbers = {"recall": nan, "gap": nan, "alignment": nan}
    if image is not None and text is not None and len(image) == len(text):
        numbers["recall"] = recall_at(question_ranks(image, text, matching_of(snapshot, rows).texts), 1)
        numbers["gap"], numbers["alignment"] = modality_gap(image, text)[1], alignment(image, text)
    return numbers | {
        "uniformity": uniformity(seen),
        "rank": effective_rank(covariance_spectrum(seen)),
        "ajne": ajne(seen) / len(seen),
    }


def sample_of(n: int) -> Int[np.ndarray, " k"]:
    """Return the pairs on which curves are measured: all, or a fixed sample of `MOST_PAIRS`."""
    return at_most(n, MOST_PAIRS)


def _run(index: int, row: RunRow, snapshots: list[SnapshotRow], points: Sequence[np.ndarray]) -> TimelineRun:
    last = read_snapshot(snapshots[-1].folder)
    return TimelineRun(
        index=index,
        run=row.id,
        name=row.name,
        objective=row.objective,
        dataset=last.dataset,
        split=last.split,
        folders=tuple(snapshot.folder for snapshot in snapshots),
        steps=tuple(snapshot.step for snapshot in snapshots),
        points=tuple(np.asarray(xy, np.float32) for xy in points),
        images=0 if last.image is None else len(last.image),
        texts=0 if last.text is None else len(last.text),
        items=last.items,
        n=last.n,
        sampled=last.sampled,
        measured=min(last.n, MOST_PAIRS),
        pictures=noted_n("val/image_to_text_R@1", last.split, row.facts)
        or len(matching_of(last, sample_of(last.n)).images),
    )


def _vectors(snapshot: Snapshot) -> Float[np.ndarray, "m d"]:
    parts = [np.asarray(part, np.float32) for part in (snapshot.image, snapshot.text) if part is not None]
    return np.concatenate(parts)


def _same(snapshot: Snapshot, other: Snapshot) -> bool:
    modalities = [(s.image is None, s.text is None) for s in (snapshot, other)]
    return modalities[0] == modalities[1] and np.array_equal(np.asarray(snapshot.items.id), np.asarray(other.items.id))


def _seen(vectors: np.ndarray, aim: np.ndarray, mean: np.ndarray, axes: np.ndarray) -> Float[np.ndarray, "m 2"]:
    turn = ProcrustesTransform(np.eye(len(mean)), 1.0, np.zeros(len(mean)), np.zeros(len(mean)))
    if vectors is not aim and len(vectors) == len(aim) and not np.array_equal(vectors, aim):
        turn = procrustes(vectors, aim, moved=False)
    return ((turn.apply(vectors) - mean) @ axes).astype(np.float32)
