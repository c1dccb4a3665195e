"""What changes over the snapshots of one split of a run: its measures, logged or computed from the snapshots."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.geometry import ajne, alignment, modality_gap, uniformity
from trainer.analysis.progress import Progress, silent
from trainer.analysis.retrieval import question_ranks, recall_at
from trainer.analysis.spectra import covariance_spectrum, effective_rank
from trainer.analysis.units import UNIT_OF
from trainer.charts.matching import units_of
from trainer.charts.snapshots import choose_snapshot, course_of
from trainer.metrics import measured_name, noted_n, recall_name
from trainer.store import RunRow, SnapshotRow, Workspace
from trainer.store.snapshot_files import Items, read_snapshot

MOST_PAIRS: Final = 4_000
"""More pairs than this are sampled for the curves: recall, uniformity and Ajne compare everything with everything."""


class TimelineMeasure(Struct, frozen=True):
    """One curve of the timeline."""

    key: str  # Tells it from the others.
    label: str  # For people.
    unit: str = ""  # `%`, or empty.
    digits: int = 3  # Decimals shown.
    # Names under which runs may have logged it, the first that is there wins; `{}` is the split's prefix.
    logged: tuple[str, ...] = ()
    hint: str = ""  # A sentence about what the name does not say.


MEASURES: Final = (
    TimelineMeasure("recall", recall_name("image_to_text"), "%", 1, ("{}/image_to_text_R@1",)),
    TimelineMeasure("gap", "Modality gap", logged=("{}/modality_gap",)),
    TimelineMeasure("alignment", "Alignment", logged=("{}/alignment",)),
    TimelineMeasure("uniformity", "Uniformity, images", logged=("{}/uniformity_image",)),
    TimelineMeasure("rank", "Effective rank, images", digits=1, logged=("{}/effective_rank_image",)),
    TimelineMeasure(
        "ajne", "Ajne / n, images", digits=4, hint="Test of uniformity: from 0 (uniform) to 0.25 (all equal)."
    ),
    TimelineMeasure(
        "tau", "Temperature", digits=4, logged=("train/inv_tau",), hint="τ, by which the loss divides the cosines."
    ),
)


def measure_name(measure: TimelineMeasure, runs: Sequence[TimelineRun]) -> str:
    """Return the label of a measure of these runs with n; that of a recall names the split, too."""
    split = [run.split for run in runs] if measure.key == "recall" else ""
    return measured_name(measure.label, split, [run.curves[measure.key].n for run in runs if measure.key in run.curves])


class MeasureCurve(Struct, frozen=True):
    """A measure of one run over its steps."""

    x: Float[np.ndarray, " s"]  # Steps, ascending.
    y: Float[np.ndarray, " s"]  # Values; percent where the measure's unit is %.
    logged: bool  # Whether the run logged it or fixed it from the start; else it is computed from the snapshots.
    # Pairs that it was measured on, of recall distinct questions; None of what is no measure of pairs.
    n: int | None = None


@dataclass(frozen=True)
class TimelineRun:
    """One run's snapshots; in each, point i of the images and point i of the texts are pair i."""

    index: int  # Place among the runs asked for; decides its color.
    run: int
    name: str
    objective: str
    dataset: str
    split: str
    folders: tuple[Path, ...]  # Of the snapshots, in the order of their steps.
    steps: tuple[int, ...]  # Ascending.
    points: tuple[Float[np.ndarray, "m 2"], ...]  # Where the points stand at each step: images, then texts.
    images: int
    texts: int
    items: Items
    n: int  # Pairs.
    sampled: bool  # The snapshots hold a sample of their split.
    measured: int  # Pairs the computed curves are measured on; fewer than `n` when sampled.
    pictures: int = 0  # Distinct pictures that the computed recall asks with.
    counted: str = ""  # As of a `SnapshotLabel`.
    # By the key of their measure; those that cannot be had are missing.
    curves: dict[str, MeasureCurve] = field(default_factory=dict)

    @functools.cached_property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top of all finite points of every step."""
        low = np.array([np.nanmin(xy, axis=0) for xy in self.points]).min(0)
        high = np.array([np.nanmax(xy, axis=0) for xy in self.points]).max(0)
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    def at(self, step: float) -> int:
        """Return the place of the last snapshot at or before `step`; the first if there is none."""
        return max(int(np.searchsorted(self.steps, step, side="right")) - 1, 0)


def snapshots_of(
    workspace: Workspace, row: RunRow, *, dataset: str | None = None, split: str | None = None
) -> list[SnapshotRow]:
    """Return the run's snapshots of one split by step, each step once.

    Raises:
        ChartError: There are none.
    """
    last = choose_snapshot(workspace, row, dataset=dataset, split=split)
    return [snapshot for snapshot in course_of(workspace, last) if snapshot.n == last.n]


def measured(workspace: Workspace, run: TimelineRun, *, progress: Progress = silent) -> dict[str, MeasureCurve]:
    """Return the curves of one run: as logged if available, else computed from its snapshots."""
    curves: dict[str, MeasureCurve] = {}
    prefix = "val" if run.split != "combinations" else run.split
    names, facts = set(workspace.results.scalar_names(run.run)), workspace.runs.get(run.run).facts
    for measure in MEASURES:
        logged = next((n.format(prefix) for n in measure.logged if n.format(prefix) in names), None)
        if logged is not None:
            steps, values, _ = workspace.results.series(run.run, logged)
            y = 1 / np.maximum(values, 1e-12) if measure.key == "tau" else np.asarray(values, np.float64)
            scale = 100 if measure.unit == "%" else 1
            n = None if measure.key == "tau" else noted_n(logged, run.split, facts)
            curves[measure.key] = MeasureCurve(np.asarray(steps, np.float64), y * scale, True, n)
    if "tau" not in curves and (tau := fixed_tau(workspace, run.run)) is not None:
        x = np.array([min(run.steps[0], 0), run.steps[-1]], np.float64)
        curves["tau"] = MeasureCurve(x, np.full(2, tau), True)
    missing = [m for m in MEASURES if m.key not in curves and m.key != "tau"]
    if not missing:
        return curves
    rows: list[dict[str, float]] = []
    for index, folder in enumerate(run.folders):
        progress(index / len(run.folders), f"measuring step {run.steps[index]:,} of {run.name}")
        rows.append(numbers_of(folder, folder.stat().st_mtime_ns))
    x = np.asarray(run.steps, np.float64)
    for measure in missing:
        y = np.array([row[measure.key] for row in rows]) * (100 if measure.unit == "%" else 1)
        if np.isfinite(y).any():
            n = run.pictures if measure.key == "recall" else run.measured
            curves[measure.key] = MeasureCurve(x, y, False, n)
    return curves


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
    units = units_of(snapshot)
    rows = units.sample(MOST_PAIRS, UNIT_OF["image" if snapshot.image is not None else "text"])
    units = units.taken(rows)
    image, text = (
        None if part is None else np.asarray(part[rows], np.float32) for part in (snapshot.image, snapshot.text)
    )
    assert image is not None or text is not None, "a snapshot has images or texts"
    seen = image[units.rows("picture")] if image is not None else text[units.rows("caption")]  # type: ignore[index]
    nan = float("nan")
    numbers = {"recall": nan, "gap": nan, "alignment": nan}
    if image is not None and text is not None and len(image) == len(text):
        pairs = units.rows("pair")
        numbers["recall"] = recall_at(question_ranks(image, text, units.matching.texts), 1)
        numbers["gap"] = modality_gap(image, text, units.matching)[1]
        numbers["alignment"] = alignment(image[pairs], text[pairs])
    return numbers | {
        "uniformity": uniformity(seen),
        "rank": effective_rank(covariance_spectrum(seen)),
        "ajne": ajne(seen) / len(seen),
    }


def timeline_run(
    index: int, row: RunRow, snapshots: Sequence[SnapshotRow], points: Sequence[np.ndarray] = ()
) -> TimelineRun:
    """Return the run over these snapshots; without points it has only curves."""
    last = read_snapshot(snapshots[-1].folder)
    units = units_of(last)
    return TimelineRun(
        counted=units.counted,
        index=index,
        run=row.id,
        name=row.short_name,
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
        measured=len(units.sample(MOST_PAIRS, UNIT_OF["image" if last.image is not None else "text"])),
        pictures=min(units.count("picture"), MOST_PAIRS),
    )
