"""How much of the gradient of InfoNCE is left, against that of InfoLOOB."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from trainer.charts.diagnosis.shared import (
    Asked,
    Temperatures,
    choose_batch,
    choose_each,
    courses_of,
    head_of,
    kind_of,
    pairs_of,
    steps_plot,
    temperatures,
    title,
)

from trainer.analysis import batches
from trainer.analysis.progress import Progress
from trainer.charts.marks import RUN_TONES, Axis, Mark, NumberRow, NumberTable, Panel, Series, XYPlot
from trainer.store import RunRow, SnapshotRow, Workspace, read_snapshot
from trainer.store.snapshot_files import Snapshot


def saturation(workspace: Workspace, runs: Sequence[RunRow], asked: Asked, progress: Progress | None) -> Panel:
    """The panel."""
    chosen = choose_each(workspace, runs, asked, choose_batch)
    factors, pulls, steps, lines, notes = [], [], [], [], []
    for i, run, row in chosen:
        snapshot = pairs_of(row, run)
        warm = temperatures(workspace, run, row.step)
        size = batch_size(workspace, run, snapshot.n)
        left, ours, loob = unsaturated(snapshot, warm, size)
        factors.append((i, run, left))
        pulls.append(_pull_plot(i, run, ours, loob))
        seen = "after its retrieval" if warm.beta is not None else "of image and text"
        notes.append(
            f"{run.name}: batches of {size:,} {kind_of(row)} pairs, {len(left):,} anchors, 1/tau = {warm.inv_tau:.3g}, "
            f"cosines {seen}" + (f", beta = {warm.beta:g}." if warm.beta is not None else ".")
        )
        share = [float(np.mean(left < 10.0**-k)) for k in (1, 2, 3)]
        lines.append(
            {
                "Mean of 1 − p": float(left.mean()),
                "Median of 1 − p": float(np.median(left)),
                "Anchors below 0.1 (%)": 100 * share[0],
                "Anchors below 0.01 (%)": 100 * share[1],
                "Anchors below 0.001 (%)": 100 * share[2],
                "Mean pull, InfoNCE": float(ours.mean()),
                "Mean pull, InfoLOOB": float(loob.mean()),
                "1/tau": warm.inv_tau,
                "Anchors": float(len(left)),
            }
        )
    for i, run, row in courses_of(workspace, chosen):
        size = batch_size(workspace, run, row.n)
        steps.append(_left_over_steps(workspace, i, run, row, size, progress))
    table = NumberTable(
        "saturation",
        "Of one update",
        tuple(run.name for _, run, _ in chosen),
        tuple(
            NumberRow(
                words,
                "",
                tuple(line[words] for line in lines),
                0 if words == "Anchors" else 1 if "%" in words else 4,
                words.startswith("Mean of"),
            )
            for words in lines[0]
        ),
    )
    notes = [
        "InfoNCE keeps the match in its own denominator, so its gradient is 1 − p times that of InfoLOOB: it saturates "
        "as p nears 1. InfoLOOB's factor is 1 for every anchor. Pull: length of tau times the gradient on an anchor.",
        "Batches are the run's first training batch at this step, or as large ones drawn from held-out pairs.",
        *notes,
    ]
    over = steps_plot("steps-left", "Mean of 1 − p over training", "mean of 1 − p", steps)
    rows: tuple[tuple[Mark, ...], ...] = ((_factor_plot(factors), over), tuple(pulls), (table,))
    return Panel(title=title("saturation"), head=head_of(chosen), rows=rows, notes=tuple(notes))


def batch_size(workspace: Workspace, run: RunRow, n: int) -> int:
    """The run's own batch size, as far as there are pairs."""
    return max(2, min(workspace.runs.config_of(run.id).optimizer.batch_size, n, 1024))


def unsaturated(
    snapshot: Snapshot, warm: Temperatures, size: int, *, most: int = 2048
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """1 - p and both pulls of every anchor of as many whole batches as fit into `most` pairs, both ways round."""
    order = np.random.default_rng(0).permutation(snapshot.n)
    lefts, ours, loobs = [], [], []
    sides: tuple[batches.Side, ...] = ("pairs",) if warm.beta is None else ("images", "texts")
    for start in range(0, max(min(len(order), most) - size + 1, 1), size):
        rows = np.sort(order[start : start + size])
        image, text = snapshot.image[rows], snapshot.text[rows]
        for side in sides:
            anchors, samples = batches.seen_by(image, text, warm.beta, side)
            # CLOOB asks one way only on each side; CLIP asks both ways.
            for x, y in ((anchors, samples), (samples, anchors)) if warm.beta is None else ((anchors, samples),):
                found = batches.batch(x, y, warm.inv_tau)
                left, (ours_here, loob_here) = found.unsaturated, batches.pull_lengths(found, y)
                lefts.append(left)
                ours.append(ours_here)
                loobs.append(loob_here)
    return np.concatenate(lefts), np.concatenate(ours), np.concatenate(loobs)


def _factor_plot(factors: Sequence[tuple[int, RunRow, np.ndarray]]) -> XYPlot:
    edges = np.linspace(-6, 0, 49)
    curves = []
    for i, run, left in factors:
        share = 100 * np.histogram(np.log10(np.clip(left, 1e-6, 1)), edges)[0] / len(left)
        curves.append(Series(run.name, RUN_TONES[i % 2], 10.0**edges, share, stepped=True))
    top = max(float(c.y.max()) for c in curves)
    curves.append(Series("InfoLOOB: always 1", "first", np.array([1.0, 1.0]), np.array([0, 1.08 * top]), width=3))
    x, y = Axis("1 − p: share of the gradient that is left", 1e-6, 1.3, log=True), Axis("anchors (%)", 0, 1.08 * top)
    return XYPlot(
        "factor", "What saturation leaves of InfoNCE", x, y, tuple(curves), note="smaller ones in the first bar"
    )


def _pull_plot(i: int, run: RunRow, ours: np.ndarray, loob: np.ndarray) -> XYPlot:
    edges = np.linspace(0, max(float(loob.max()), 0.1) * 1.001, 41)
    tone = RUN_TONES[i % 2]
    shares = [100 * np.histogram(values, edges)[0] / len(values) for values in (ours, loob)]
    curves = (
        Series(f"InfoNCE, mean {ours.mean():.3f}", tone, edges, shares[0], stepped=True),
        Series(f"InfoLOOB, mean {loob.mean():.3f}", "first", edges, shares[1], stepped=True),
    )
    # The first bar of a saturated run towers over all others: the axis would show nothing else.
    top = max(float(np.sort(s)[-2]) if s.max() > 60 else float(s.max()) for s in shares)
    x, y = Axis("pull on an anchor", 0, float(edges[-1])), Axis("anchors (%)", 0, max(1.1 * top, 5))
    return XYPlot(f"pull-{i}", f"Pull of both bounds on {run.name}", x, y, curves)


def _left_over_steps(
    workspace: Workspace, i: int, run: RunRow, row: SnapshotRow, size: int, progress: Progress | None
) -> Series:
    rows = [s for s in workspace.results.snapshots(run.id) if (s.dataset, s.split) == (row.dataset, row.split)]
    points = []
    for place, at in enumerate(sorted(rows, key=lambda s: s.step)):
        left, _, _ = unsaturated(read_snapshot(at.folder), temperatures(workspace, run, at.step), size, most=size)
        points.append((at.step, float(left.mean())))
        if progress:
            progress((place + 1) / len(rows), f"Saturation of {run.name}")
    steps, values = np.array(points, dtype=float).T
    return Series(run.name, RUN_TONES[i % 2], steps, values)
