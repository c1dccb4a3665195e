"""What the panels of the diagnosis share: what is asked, which snapshots, at which temperatures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from trainer.charts import BOTH, SAME, ChartError
from trainer.charts.marks import Axis, Marker, Series, XYPlot
from trainer.charts.snapshot_label import told_apart
from trainer.charts.snapshots import BATCH, choose_snapshot
from trainer.store import RunRow, SnapshotRow, Workspace, read_snapshot
from trainer.store.snapshot_files import Snapshot

TITLES: Final = {
    "spectrum": "in how many directions do the embeddings vary?",
    "saturation": "how much of the gradient is left?",
    "batch": "one batch in detail",
    "attributes": "which attributes does each run encode?",
}

MOST_PAIRS: Final = 20_000
"""More pairs than this are sampled where a whole snapshot is measured."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is looked at.

    Attributes:
        step, dataset, split: Of the snapshots; None is chosen as for every chart.
        step_b: Of the second run, where it is another.
        size: Pairs of the batch under the glass.
        number: Which batch, in an order drawn from a fixed seed.
        anchor: Place of the anchor in the batch whose negatives are shown.
        ablation: Whether the attributes of all runs of the ablation are shown, too.
        independent: Whether attributes are probed on the Scenes of `trainer independent`, the same for every run,
            and not on each run's own held-out pairs.
        heldout: Whether batches are drawn from the snapshot itself, also where a training batch was embedded beside it.
    """

    step: int | None = None
    dataset: str | None = None
    split: str | None = None
    size: int = 32
    number: int = 0
    anchor: int = 0
    ablation: bool = True
    independent: bool = False
    heldout: bool = False
    step_b: int | None = SAME

    def step_at(self, place: int) -> int | None:
        """The step of the first run (0), the second or a further one."""
        return self.step_b if place == 1 and self.step_b != SAME else self.step


@dataclass(frozen=True)
class Temperatures:
    """What the run compared with at a step: 1/tau, and beta where there is a retrieval."""

    inv_tau: float
    beta: float | None


def temperatures(workspace: Workspace, run: RunRow, step: int) -> Temperatures:
    """1/tau as it was logged at the step (learned ones move), and the beta of the retrieval."""
    objective = workspace.runs.config_of(run.id).objective
    steps, values, _ = workspace.results.series(run.id, "train/inv_tau")
    before = np.flatnonzero((steps <= step) & np.isfinite(values))
    default = float(getattr(objective, "inv_tau", 1 / 0.07))
    inv_tau = float(values[before[-1]]) if len(before) else default
    beta = getattr(objective, "scale_hopfield", None)
    return Temperatures(inv_tau, None if beta is None else float(beta))


def steps_plot(key: str, title: str, label: str, curves: Sequence[Series]) -> XYPlot:
    """Values over training; solid for images, dashed for texts."""
    last = max((float(c.x.max()) for c in curves), default=1.0)
    top = max((float(np.nanmax(c.y)) for c in curves), default=1.0)
    dots = tuple(Marker("", c.tone, float(x), float(y), size=5) for c in curves for x, y in zip(c.x, c.y, strict=True))
    return XYPlot(
        key,
        title,
        Axis("step", 0, max(last, 1) * 1.02),
        Axis(label, 0, max(top, 1e-6) * 1.08),
        tuple(curves),
        dots=dots,
    )


Chosen = tuple[int, RunRow, SnapshotRow]
"""Place of a run among those asked for, the run by the name it has there, and its snapshot."""


def choose_each(
    workspace: Workspace,
    runs: Sequence[RunRow],
    asked: Asked,
    choose: Callable[[Workspace, RunRow, Asked, int], SnapshotRow] | None = None,
) -> list[Chosen]:
    """Every run's snapshot that is asked for; runs at different steps are named with them."""
    rows = [(choose or choose_at)(workspace, run, asked, place) for place, run in enumerate(runs)]
    names = told_apart([run.name for run in runs], [row.step for row in rows])
    named = [replace(run, name=name) for run, name in zip(runs, names, strict=True)]
    return list(zip(range(len(rows)), named, rows, strict=True))


def courses_of(workspace: Workspace, chosen: Sequence[Chosen]) -> list[Chosen]:
    """The runs whose course over the steps is drawn: by their names alone, and each once, however many steps it has."""
    first = {run.id: (place, run, row) for place, run, row in reversed(chosen)}
    return [(place, workspace.runs.get(run.id), row) for place, run, row in chosen if first[run.id][0] == place]


def choose_at(workspace: Workspace, run: RunRow, asked: Asked, place: int = 0) -> SnapshotRow:
    """The snapshot that is asked for of the run at a place."""
    return choose_snapshot(workspace, run, step=asked.step_at(place), dataset=asked.dataset, split=asked.split)


def choose_batch(workspace: Workspace, run: RunRow, asked: Asked, place: int = 0) -> SnapshotRow:
    """The training batch that was embedded beside the snapshot asked for; the snapshot itself where there is none."""
    row = choose_at(workspace, run, asked, place)
    beside = [
        s for s in workspace.results.snapshots(run.id) if (s.step, s.dataset, s.split) == (row.step, row.dataset, BATCH)
    ]
    return row if asked.heldout or not beside else beside[0]


def kind_of(row: SnapshotRow) -> str:
    """What the pairs of a batch are, in words."""
    return "training" if row.split == BATCH else "held-out"


def choose_last(workspace: Workspace, run: RunRow, asked: Asked) -> SnapshotRow | None:
    """The last snapshot of such data of a run that is shown beside those looked at, None without any."""
    try:
        return choose_snapshot(workspace, run, dataset=asked.dataset, split=asked.split)
    except ChartError:
        return None


def pairs_of(row: SnapshotRow, run: RunRow) -> Snapshot:
    """The snapshot, with images and texts that are numbers.

    Raises:
        ChartError: It has not.
    """
    snapshot = read_snapshot(row.folder)
    if snapshot.image is None or snapshot.text is None:
        raise ChartError(f"Run {run.name} embeds only one modality; this panel needs images and texts. {BOTH}")
    if snapshot.n < 2:
        raise ChartError(f"The snapshot of {run.name} has a single pair; a batch needs at least 2.")
    if not (np.isfinite(snapshot.image).all() and np.isfinite(snapshot.text).all()):
        raise ChartError(
            f"The embeddings of {run.name} are not numbers: training has diverged. Choose an earlier step."
        )
    return snapshot


def sides_of(snapshot: Snapshot) -> list[tuple[Literal["image", "text"], Any]]:
    """Each modality there is, with its embeddings."""
    return [(side, part) for side, part in (("image", snapshot.image), ("text", snapshot.text)) if part is not None]


def finite(vectors: np.ndarray, run: RunRow) -> np.ndarray:
    """The vectors.

    Raises:
        ChartError: They are no numbers.
    """
    if not np.isfinite(vectors).all():
        raise ChartError(
            f"The embeddings of {run.name} are not numbers: training has diverged. Choose an earlier step."
        )
    return vectors


def sampled_note(chosen: Sequence[tuple[int, RunRow, SnapshotRow]], most: int) -> list[str]:
    """A sentence for every run that is sampled."""
    return [f"{run.name}: {most:,} of {row.n:,} rows, drawn at random." for _, run, row in chosen if row.n > most]


def title(panel: str) -> str:
    """Over an exported figure."""
    return f"Explaining away: {TITLES[panel]}"


def head_of(chosen: Sequence[tuple[int, RunRow, SnapshotRow]]) -> tuple[str, ...]:
    """Which runs and snapshots, in words."""
    return ("; ".join(f"{run.name}, step {row.step:,}, {row.dataset} {row.split}" for _, run, row in chosen[:4]),)
