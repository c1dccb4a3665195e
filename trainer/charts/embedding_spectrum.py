"""The effective dimension of embeddings: at this step, and over training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float

from trainer.analysis.spectra import (
    covariance_spectrum,
    effective_directions,
    effective_rank,
    is_collapsed,
    share_in_first,
    shares_of,
)
from trainer.analysis.units import UNIT_OF
from trainer.charts.marks import Axis, NumberRow, NumberTable, Panel, Series, XYPlot, run_tone
from trainer.charts.matching import units_of
from trainer.charts.measure import Measure
from trainer.charts.opened_snapshot import open_target
from trainer.charts.settings import NoSettings
from trainer.charts.snapshot_label import SnapshotLabel
from trainer.charts.snapshot_measures import (
    MOST_PAIRS,
    alike_snapshots,
    course,
    finite,
    head_of,
    modalities_of,
    spectrum_measures,
    steps_plot,
)
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.store import Workspace, read_snapshot

Modality = Literal["image", "text"]
MODALITIES: Final[tuple[Modality, ...]] = ("image", "text")

_LINES: Final = spectrum_measures(
    "Variance in the first (%)",
    Measure("Total variance", "1 would be spread all over the sphere.", np.sum),
    Measure("Width d", "Directions there are.", len, 0),
)
_STEPS: Final = (
    ("rank", "Effective rank", "effective rank"),
    ("directions", "Effective directions (99 %)", "directions"),
    ("first", "Variance in the first 10", "share (%)"),
)


@dataclass(frozen=True, kw_only=True)
class EmbeddingSpectra(SnapshotLabel):
    """One run's covariance spectra."""

    n: dict[Modality, int]  # Of each modality, distinct pictures or captions measured, of `rows`.
    rows: dict[Modality, int]
    eigenvalues: dict[Modality, Float[np.ndarray, " d"]]  # Of each modality, descending.
    # Of each modality, a row a step: the step, effective rank, effective directions, percent in the first 10.
    steps: dict[Modality, Float[np.ndarray, "s 4"]]


def spectra(
    workspace: Workspace, target: Target, request: Request, settings: NoSettings, progress: Progress
) -> EmbeddingSpectra:
    """Return the spectra of the snapshot, and measures of all snapshots of the same data.

    Raises:
        ChartError: No such snapshot, or embeddings that are not numbers.
    """
    opened = open_target(workspace, target, request)
    run, units, parts = opened.run, opened.units, modalities_of(opened.snapshot)
    rows = {side: units.rows(UNIT_OF[side], MOST_PAIRS) for side, _ in parts}
    eigenvalues = {side: covariance_spectrum(finite(part[rows[side]], run), progress) for side, part in parts}
    others = alike_snapshots(workspace, request, target, opened.row)
    points: dict[Modality, list[tuple[float, ...]]] = {side: [] for side, _ in parts}
    for index, other in enumerate(others):
        progress(index / len(others), f"Spectra of {run.short_name}")
        earlier = read_snapshot(other.folder)
        for side, vectors in modalities_of(earlier):
            if side in points and np.isfinite(vectors[:1]).all():
                unit_rows = units_of(earlier).rows(UNIT_OF[side], MOST_PAIRS)
                points[side].append((other.step, *_measures(vectors[unit_rows])))
    steps = {side: np.array(measures, dtype=np.float64).reshape(-1, 4) for side, measures in points.items()}
    return EmbeddingSpectra(
        **opened.label,
        n={side: len(unit_rows) for side, unit_rows in rows.items()},
        rows={side: units.count(UNIT_OF[side]) for side in rows},
        eigenvalues=eigenvalues,
        steps=steps,
    )


def _measures(vectors: np.ndarray) -> tuple[float, float, float]:
    eigenvalues = covariance_spectrum(vectors)
    return effective_rank(eigenvalues), effective_directions(eigenvalues), 100 * share_in_first(eigenvalues, 10)


def draw(data: PerRun[EmbeddingSpectra], settings: NoSettings) -> Panel:
    """Draw spectra of both modalities, three measures over the steps, and the table."""
    each = [
        (f"{name}, {side}s", run.n[side], run.eigenvalues[side])
        for run, _, name in data.named
        for side in MODALITIES
        if side in run.eigenvalues
    ]
    meaning = "Distinct pictures or captions measured; a centered cloud spans n − 1 directions at most."
    sizes = NumberRow("n", meaning, tuple(float(n) for _, n, _ in each), 0)
    when = "At these steps" if len({run.step for run in data.found}) > 1 else "At this step"
    lines = (*(line.row(spectrum for *_, spectrum in each) for line in _LINES), sizes)
    numbers = NumberTable("spectra", when, tuple(name for name, *_ in each), lines, badges=False)
    plots = tuple(_plot(side, data) for side in MODALITIES if any(side in run.eigenvalues for run in data.found))
    return Panel(
        title="In how many directions do the embeddings vary?",
        head=head_of(data.found),
        rows=(plots, tuple(_over_steps(data, measure) for measure in range(len(_STEPS))), (numbers,)),
        notes=("Spectrum of the covariance of the centered unit embeddings.", *_sampled(data)),
        warnings=tuple(_collapsed(data)),
    )


def _plot(side: Modality, data: PerRun[EmbeddingSpectra]) -> XYPlot:
    curves = []
    for run, index, name in data.named:
        if side in run.eigenvalues:
            shares = np.maximum(shares_of(run.eigenvalues[side]), 1e-9)
            curves.append(Series(name, run_tone(index), np.arange(1, len(shares) + 1, dtype=float), shares))
    d = max(len(curve.x) for curve in curves)
    x, y = Axis("direction", 1, d, log=True), Axis("share of variance", 1e-6, 1.0, log=True)
    return XYPlot(f"spectrum-{side}", f"Spectrum of the {side}s", x, y, tuple(curves))


def _over_steps(data: PerRun[EmbeddingSpectra], measure: int) -> XYPlot:
    key, title, label = _STEPS[measure]
    curves = [
        course(f"{run.name}, {side}s", run_tone(index), points[:, [0, measure + 1]], dashed=side == "text")
        for run, index in zip(data.found, data.places, strict=True)
        for side, points in run.steps.items()
        if len(points)
    ]
    return steps_plot(f"steps-{key}", title, label, curves, percent=key == "first")


def _collapsed(data: PerRun[EmbeddingSpectra]) -> Iterator[str]:
    for run, _, name in data.named:
        for side, eigenvalues in run.eigenvalues.items():
            if is_collapsed(eigenvalues, run.n[side]):
                number, possible = effective_directions(eigenvalues), min(len(eigenvalues), max(run.n[side] - 1, 1))
                text = f"the {side}s of {name} vary in {number} of {possible} directions only"
                yield f"Dimensional collapse: {text}."


def _sampled(data: PerRun[EmbeddingSpectra]) -> Iterator[str]:
    for run, _, name in data.named:
        for side, n in run.n.items():
            if run.rows[side] > n:
                yield f"{name}: {n:,} of {run.rows[side]:,} {side}s, drawn at random."


CHART: Final = Chart(
    view="explaining",
    label="Embedding spectrum",
    question="In how many directions do the embeddings vary?",
    cost="Grows with the rows that are drawn, at most 20,000 of each side and step.",
    compute=per_run(spectra),
    draw=draw,
)
