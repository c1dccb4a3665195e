"""The remaining gradient of InfoNCE, compared to that of InfoLOOB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis import batches
from trainer.analysis.units import Units
from trainer.charts.marks import Axis, NumberTable, Panel, Series, XYPlot, run_tone
from trainer.charts.matching import units_of
from trainer.charts.measure import Measure, measure_table
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshot_measures import (
    MASK_WORDS,
    Temperatures,
    alike_snapshots,
    choose_batch,
    course,
    head_of,
    held_out_setting,
    kind_of,
    masks_duplicates,
    pairs_of,
    steps_plot,
    temperatures,
)
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.store import Workspace, read_snapshot
from trainer.store.snapshot_files import Snapshot

NOTES: Final = (
    "InfoNCE keeps the match in its own denominator, so its gradient is 1 − p times that of InfoLOOB: it saturates "
    "as p nears 1. InfoLOOB's factor is 1 for every anchor. Pull: length of tau times the gradient on an anchor.",
    "Batches are the run's first training batch at this step, or as large ones drawn from held-out pairs.",
)


@dataclass(frozen=True)
class SaturationSettings:
    """The pairs of the batches."""

    held_out: bool = held_out_setting()


@dataclass(frozen=True, kw_only=True)
class Saturation(SnapshotLabel):
    """One run's anchors.

    Attributes:
        size: Pairs of a batch.
        left: 1 - p of every anchor.
        infonce, infoloob: Length of the pull of both bounds on every anchor.
        steps: A row a snapshot of the same data: its step, and the mean of 1 - p.
        masked: Whether captions that are right answers are no negatives, as in the run's updates.
    """

    warm: Temperatures
    size: int
    left: Float[np.ndarray, " m"]
    infonce: Float[np.ndarray, " m"]
    infoloob: Float[np.ndarray, " m"]
    steps: Float[np.ndarray, "s 2"]
    masked: bool = False


def saturation(
    workspace: Workspace, target: Target, request: Request, settings: SaturationSettings, progress: Progress
) -> Saturation:
    """Return the remaining gradient of the anchors in the run's own batches.

    Raises:
        ChartError: No such snapshot, or one without pairs.
    """
    run = workspace.runs.get(target.run)
    row = choose_batch(workspace, run, target, request, held_out=settings.held_out)
    snapshot, warm = pairs_of(row, run), temperatures(workspace, run, row.step)
    size = max(2, min(workspace.runs.config_of(run.id).optimizer.batch_size, snapshot.n, 1024))
    progress(0.0, f"Saturation of {run.short_name}")
    masked, units = masks_duplicates(workspace, run), units_of(snapshot)
    left, infonce, infoloob = unsaturated(snapshot, units, warm, size, masked=masked)
    others, steps = alike_snapshots(workspace, request, target, row), []
    for index, other in enumerate(others):
        progress(index / len(others), f"Saturation of {run.short_name}")
        then = temperatures(workspace, run, other.step)
        earlier = read_snapshot(other.folder)
        remaining, _, _ = unsaturated(earlier, units_of(earlier), then, size, masked=masked, most=size)
        steps.append((other.step, float(remaining.mean())))
    points = np.array(steps, dtype=np.float64).reshape(-1, 2)
    label = shown(run, row, units) | {"left": left, "infonce": infonce, "infoloob": infoloob}
    return Saturation(**label, warm=warm, size=size, steps=points, masked=masked)


def unsaturated(
    snapshot: Snapshot, units: Units, warm: Temperatures, size: int, *, masked: bool, most: int = 2048
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Return 1 - p and both pulls of all anchors, both directions, in whole batches of at most `most` pairs in all.

    Batches are of distinct pairs. Where right answers are `masked`, they are no negatives, as in the run's updates.
    """
    order = units.order(0)
    size = min(size, len(order))
    lefts, ours, loobs = [], [], []
    sides: tuple[batches.Side, ...] = ("pairs",) if warm.beta is None else ("images", "texts")
    for start in range(0, max(min(len(order), most) - size + 1, 1), size):
        rows = np.sort(order[start : start + size])
        image, text = snapshot.image[rows], snapshot.text[rows]
        right = units.right(rows, rows) if masked else np.eye(len(rows), dtype=bool)
        for side in sides:
            anchors, samples = batches.seen_by(image, text, warm.beta, side)
            # CLOOB asks one way only on each side; CLIP asks both ways.
            ways = [(anchors, samples, right.T if side == "texts" else right)]
            ways += [(samples, anchors, right.T)] if warm.beta is None else []
            for x, y, answers in ways:
                batch = batches.batch(x, y, warm.inv_tau, answers)
                left, (ours_here, loob_here) = batch.unsaturated, batches.pull_lengths(batch, y)
                lefts.append(left)
                ours.append(ours_here)
                loobs.append(loob_here)
    return np.concatenate(lefts), np.concatenate(ours), np.concatenate(loobs)


def draw(data: PerRun[Saturation], settings: SaturationSettings) -> Panel:
    """Draw the remaining gradient over anchors and over training, the pulls of both bounds, and the table."""
    drawn = data.named
    curves = [course(run.name, run_tone(index), run.steps) for run, index, _ in drawn if len(run.steps)]
    over = steps_plot("steps-left", "Mean of 1 − p over training", "mean of 1 − p", curves)
    pulls = tuple(_pull_plot(*each) for each in drawn)
    return Panel(
        title="How much of the gradient is left?",
        head=head_of(data.found),
        rows=((_factor_plot(drawn), over), pulls, (_table(data),)),
        notes=(*NOTES, *(_note(run, name) for run, _, name in drawn)),
    )


def _note(run: Saturation, name: str) -> str:
    seen = "of image and text" if run.warm.beta is None else f"after its retrieval, beta = {run.warm.beta:g}"
    return (
        f"{name}: batches of {run.size:,} {kind_of(run.split)} pairs, {len(run.left):,} anchors, "
        f"1/tau = {run.warm.inv_tau:.3g}, cosines {seen}{MASK_WORDS[run.masked]}."
    )


def _below(limit: float) -> Measure[Saturation]:
    return Measure(f"Anchors below {limit:g} (%)", "", lambda run: 100 * float(np.mean(run.left < limit)), 1)


def _table(data: PerRun[Saturation]) -> NumberTable:
    measures = (
        Measure[Saturation]("Mean of 1 − p", "", lambda run: run.left.mean(), 4, strong=True),
        Measure[Saturation]("Median of 1 − p", "", lambda run: np.median(run.left), 4),
        *map(_below, (0.1, 0.01, 0.001)),
        Measure[Saturation]("Mean pull, InfoNCE", "", lambda run: run.infonce.mean(), 4),
        Measure[Saturation]("Mean pull, InfoLOOB", "", lambda run: run.infoloob.mean(), 4),
        Measure[Saturation]("1/tau", "", lambda run: run.warm.inv_tau, 4),
        Measure[Saturation]("Anchors", "", lambda run: len(run.left), 0),
    )
    return measure_table("saturation", "Of one update", data.labels, measures, data.found)


def _factor_plot(drawn: Sequence[tuple[Saturation, int, str]]) -> XYPlot:
    edges = np.linspace(-6, 0, 49)
    curves = []
    for run, index, name in drawn:
        share = 100 * np.histogram(np.log10(np.clip(run.left, 1e-6, 1)), edges)[0] / len(run.left)
        curves.append(Series(name, run_tone(index), 10.0**edges, share, stepped=True))
    top = max(float(c.y.max()) for c in curves)
    curves.append(Series("InfoLOOB: always 1", "quiet", np.array([1.0, 1.0]), np.array([0, 1.08 * top]), width=3))
    x = Axis("1 − p: share of the gradient that is left", 1e-6, 1.3, log=True)
    y = Axis("anchors (%)", 0, 1.08 * top, percent=True)
    note = "smaller ones in the first bar"
    return XYPlot("factor", "Gradient that InfoNCE has left", x, y, tuple(curves), note=note)


def _pull_plot(run: Saturation, index: int, name: str) -> XYPlot:
    edges = np.linspace(0, max(float(run.infoloob.max()), 0.1) * 1.001, 41)
    shares = [100 * np.histogram(values, edges)[0] / len(values) for values in (run.infonce, run.infoloob)]
    curves = (
        Series(f"InfoNCE, mean {run.infonce.mean():.3f}", run_tone(index), edges, shares[0], stepped=True),
        Series(f"InfoLOOB, mean {run.infoloob.mean():.3f}", "quiet", edges, shares[1], stepped=True),
    )
    # The first bar of a saturated run towers over all others: the axis would show nothing else.
    top = max(float(np.sort(s)[-2]) if s.max() > 60 else float(s.max()) for s in shares)
    x, y = Axis("pull on an anchor", 0, float(edges[-1])), Axis("anchors (%)", 0, max(1.1 * top, 5), percent=True)
    return XYPlot(f"pull-{index}", f"Pull of both bounds on {name}", x, y, curves, tone=run_tone(index))


CHART: Final = Chart(
    view="explaining",
    label="Gradient saturation",
    question="How much of the gradient is left once matches are recognized?",
    cost="Grows with the size of the batch, not of the data.",
    settings=SaturationSettings,
    compute=per_run(saturation),
    draw=draw,
)
