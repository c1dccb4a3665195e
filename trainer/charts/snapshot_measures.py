"""Shared by the Explaining away charts: choice of batch and temperature, and measures over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.spectra import effective_directions, effective_rank, share_in_first
from trainer.charts import BOTH, ChartError
from trainer.charts.marks import Axis, Series, XYPlot
from trainer.charts.measure import Measure
from trainer.charts.snapshot_label import SnapshotLabel
from trainer.charts.snapshots import BATCH, choose_snapshot, course_of
from trainer.charts.spec import Request, Target
from trainer.config.fields import option
from trainer.metrics import data_label
from trainer.store import RunRow, SnapshotRow, Workspace, read_snapshot
from trainer.store.snapshot_files import Snapshot

MOST_PAIRS: Final = 20_000
"""More pairs than this are sampled where a whole snapshot is measured."""


class Temperatures(Struct, frozen=True):
    """The run's temperatures at a step: 1/tau, and beta if it uses Hopfield retrieval."""

    inv_tau: float
    beta: float | None


def held_out_setting() -> Any:
    """Return the field that selects the pairs of the batches."""
    meaning = "Draw the batches from the snapshot, even where the first training batch was embedded at the same step."
    return option(False, "Batches of held-out pairs", meaning)


def temperatures(workspace: Workspace, run: RunRow, step: int) -> Temperatures:
    """Return 1/tau as logged at the step (it may be learned), and the beta of the retrieval."""
    objective = workspace.runs.config_of(run.id).objective
    steps, values, _ = workspace.results.series(run.id, "train/inv_tau")
    before = np.flatnonzero((steps <= step) & np.isfinite(values))
    default = float(getattr(objective, "inv_tau", 1 / 0.07))
    inv_tau = float(values[before[-1]]) if len(before) else default
    beta = getattr(objective, "scale_hopfield", None)
    return Temperatures(inv_tau, None if beta is None else float(beta))


def choose_batch(
    workspace: Workspace, run: RunRow, target: Target, request: Request, *, held_out: bool = False
) -> SnapshotRow:
    """Return the training batch embedded along with the snapshot, or the snapshot itself if there is none."""
    row = choose_snapshot(workspace, run, step=target.step, dataset=request.dataset, split=request.split)
    beside = [
        s for s in workspace.results.snapshots(run.id) if (s.step, s.dataset, s.split) == (row.step, row.dataset, BATCH)
    ]
    return row if held_out or not beside else beside[0]


MASK_WORDS: Final = {True: ", right answers masked as in the run's updates", False: ""}


def masks_duplicates(workspace: Workspace, run: RunRow) -> bool:
    """Return whether the run's updates leave captions that are right answers out of the negatives."""
    return bool(getattr(workspace.runs.config_of(run.id).objective, "mask_duplicates", False))


def kind_of(split: str) -> str:
    """Describe the pairs of a batch."""
    return "training" if split == BATCH else "held-out"


def pairs_of(row: SnapshotRow, run: RunRow) -> Snapshot:
    """Return the snapshot, checked for finite images and texts.

    Raises:
        ChartError: It has not.
    """
    snapshot = read_snapshot(row.folder)
    if snapshot.image is None or snapshot.text is None:
        raise ChartError(f"Run {run.short_name} embeds only one modality; this chart needs images and texts. {BOTH}")
    if snapshot.n < 2:
        raise ChartError(f"The snapshot of {run.short_name} has a single pair; a batch needs at least 2.")
    finite(snapshot.image, run)
    finite(snapshot.text, run)
    return snapshot


def modalities_of(snapshot: Snapshot) -> list[tuple[Literal["image", "text"], Any]]:
    """Return each existing modality with its embeddings."""
    return [(side, part) for side, part in (("image", snapshot.image), ("text", snapshot.text)) if part is not None]


def finite(vectors: np.ndarray, run: RunRow) -> np.ndarray:
    """Return the vectors if all are finite, else raise ChartError.

    Raises:
        ChartError: They are not numbers.
    """
    if not np.isfinite(vectors).all():
        raise ChartError(
            f"The embeddings of {run.short_name} are not numbers: training has diverged. Choose an earlier step."
        )
    return vectors


def alike_snapshots(workspace: Workspace, request: Request, target: Target, row: SnapshotRow) -> list[SnapshotRow]:
    """Return the run's snapshots of the same data by step; empty if an earlier target is of the same run."""
    if target != next(earlier for earlier in request.targets if earlier.run == target.run):
        return []
    return course_of(workspace, row)


def steps_plot(key: str, title: str, label: str, curves: Sequence[Series], *, percent: bool = False) -> XYPlot:
    """Return a plot of values over training, starting at 0."""
    last = max((float(c.x.max()) for c in curves if len(c.x)), default=1.0)
    top = max((float(np.nanmax(c.y)) for c in curves if len(c.x)), default=1.0)
    x = Axis("step", 0, max(last, 1) * 1.02, integer=True)
    y = Axis(label, 0, max(top, 1e-6) * 1.08, percent=percent)
    return XYPlot(key, title, x, y, tuple(curves))


def course(name: str, tone: Any, points: Float[np.ndarray, "n 2"], *, dashed: bool = False) -> Series:
    """Return a series of a measure at every step, with markers."""
    return Series(name, tone, points[:, 0], points[:, 1], dashed=dashed, marked=True)


def spectrum_measures(in_first: str, *more: Measure[np.ndarray]) -> tuple[Measure[np.ndarray], ...]:
    """Return the measures of eigenvalues; `in_first` is what the share of the first one is called."""
    return (
        Measure("Effective directions (99 %)", "Directions that hold 99 % of the variance.", effective_directions, 0),
        Measure("Effective rank", "Exp of the entropy of the spectrum (Roy & Vetterli, 2007).", effective_rank, 2),
        Measure(in_first, "", lambda eigenvalues: 100 * share_in_first(eigenvalues, 1), 1),
        Measure("Variance in the first 10 (%)", "", lambda eigenvalues: 100 * share_in_first(eigenvalues, 10), 1),
        *more,
    )


def head_of(runs: Sequence[SnapshotLabel]) -> tuple[str, ...]:
    """Describe the runs and snapshots."""
    return ("; ".join(f"{run.name}, step {run.step:,}, {data_label(run)}" for run in runs),)
