"""In how many directions the embeddings vary: now, and over training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from trainer.charts.diagnosis.shared import (
    MOST_PAIRS,
    Asked,
    choose_each,
    courses_of,
    finite,
    head_of,
    sampled_note,
    sides_of,
    steps_plot,
    title,
)

from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.analysis.spectra import (
    covariance_spectrum,
    effective_directions,
    effective_rank,
    is_collapsed,
    share_in_first,
    shares_of,
)
from trainer.charts.marks import RUN_TONES, Axis, NumberRow, NumberTable, Panel, Series, XYPlot
from trainer.store import RunRow, SnapshotRow, Workspace, read_snapshot


def spectrum(workspace: Workspace, runs: Sequence[RunRow], asked: Asked, progress: Progress | None) -> Panel:
    """The panel."""
    chosen = choose_each(workspace, runs, asked)
    spectra: dict[tuple[int, str], np.ndarray] = {}
    warnings: list[str] = []
    measured: list[tuple[int, RunRow, int]] = []
    for i, run, row in chosen:
        snapshot = read_snapshot(row.folder)
        for side, vectors in sides_of(snapshot):
            rows = vectors[at_most(len(vectors), MOST_PAIRS)]
            spectra[i, side] = covariance_spectrum(finite(rows, run), progress)
            measured.append((i, run, len(rows)))
            if is_collapsed(spectra[i, side], len(rows)):
                number = effective_directions(spectra[i, side])
                possible = min(snapshot.d, max(len(rows) - 1, 1))
                warnings.append(
                    f"Dimensional collapse: the {side}s of {run.name} vary in {number} of {possible} directions only."
                )
    plots = [_spectrum_plot(side, chosen, spectra) for side in ("image", "text") if any(s == side for _, s in spectra)]
    over = _over_steps(workspace, chosen, progress)
    columns = tuple(
        f"{run.name}, {side}s" for i, run, _ in chosen for side in ("image", "text") if (i, side) in spectra
    )
    ordered = [spectra[i, side] for i, _, _ in chosen for side in ("image", "text") if (i, side) in spectra]
    counts = [n for i, _, _ in chosen for j, _, n in measured if i == j]
    table = (
        ("Effective directions (99 %)", "Directions that hold 99 % of the variance.", effective_directions, 0),
        ("Effective rank", "Exp of the entropy of the spectrum (Roy & Vetterli, 2007).", effective_rank, 2),
        ("Variance in the first (%)", "", lambda e: 100 * share_in_first(e, 1), 1),
        ("Variance in the first 10 (%)", "", lambda e: 100 * share_in_first(e, 10), 1),
        ("Total variance", "1 would be spread all over the sphere.", lambda e: float(e.sum()), 3),
    )
    written = [NumberRow(w, h, tuple(float(read(e)) for e in ordered), digits) for w, h, read, digits in table]
    written += [
        NumberRow("Width d", "Directions there are.", tuple(float(len(e)) for e in ordered), 0),
        NumberRow("n", "Rows measured; a centerd cloud spans n − 1 directions at most.", tuple(map(float, counts)), 0),
    ]
    notes = (
        "Spectrum of the covariance of the unit rows, their mean taken off. Solid: images; dashed: texts.",
        *sampled_note(chosen, MOST_PAIRS),
    )
    when = "At these steps" if len({row.step for *_, row in chosen}) > 1 else "At this step"
    numbers = NumberTable("spectra", when, columns, tuple(written), badges=False)
    return Panel(
        title=title("spectrum"),
        head=head_of(chosen),
        rows=(tuple(plots), over, (numbers,)),
        notes=notes,
        warnings=tuple(warnings),
    )


def _spectrum_plot(side: str, chosen: Sequence[tuple[int, RunRow, SnapshotRow]], spectra: dict) -> XYPlot:
    there = [(i, run, spectra[i, side]) for i, run, _ in chosen if (i, side) in spectra]
    curves = tuple(
        Series(
            run.name,
            RUN_TONES[i % 2],
            np.arange(1, len(spectrum) + 1, dtype=float),
            np.maximum(shares_of(spectrum), 1e-9),
        )
        for i, run, spectrum in there
    )
    d = max(len(spectrum) for *_, spectrum in there)
    x, y = Axis("direction", 1, d, log=True), Axis("share of the variance", 1e-6, 1.0, log=True)
    return XYPlot(f"spectrum-{side}", f"Spectrum of the {side}s", x, y, curves)


def _over_steps(
    workspace: Workspace, chosen: Sequence[tuple[int, RunRow, SnapshotRow]], progress: Progress | None
) -> tuple[XYPlot, ...]:
    curves: dict[str, list[Series]] = {"rank": [], "directions": [], "first": []}
    for i, run, row in courses_of(workspace, chosen):
        rows = [s for s in workspace.results.snapshots(run.id) if (s.dataset, s.split) == (row.dataset, row.split)]
        for side in ("image", "text"):
            points = []
            for place, snapshot_row in enumerate(sorted(rows, key=lambda s: s.step)):
                vectors = getattr(read_snapshot(snapshot_row.folder), side)
                if vectors is None or not np.isfinite(vectors[:1]).all():
                    continue
                spectrum = covariance_spectrum(vectors[at_most(len(vectors), MOST_PAIRS)])
                points.append(
                    (
                        snapshot_row.step,
                        effective_rank(spectrum),
                        effective_directions(spectrum),
                        100 * share_in_first(spectrum, 10),
                    )
                )
                if progress:
                    progress((place + 1) / len(rows), f"Spectra of {run.name}")
            if points:
                steps, *values = np.array(points, dtype=float).T
                for key, series in zip(("rank", "directions", "first"), values[:3], strict=True):
                    name = f"{run.name}, {side}s"
                    curves[key].append(Series(name, RUN_TONES[i % 2], steps, series, dashed=side == "text"))
    titles = {
        "rank": ("Effective rank", "effective rank"),
        "directions": ("Effective directions (99 %)", "directions"),
        "first": ("Variance in the first 10", "share (%)"),
    }
    return tuple(steps_plot(f"steps-{key}", *titles[key], series) for key, series in curves.items())
