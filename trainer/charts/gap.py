"""The gap between the modalities of each run: its size over the steps, and what closing it does to loss and recall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer import config
from trainer.analysis import losses
from trainer.analysis.distinct import Matching
from trainer.analysis.gap import Way, close_gap
from trainer.analysis.geometry import modality_gap
from trainer.analysis.progress import Progress
from trainer.analysis.projection import principal_axes
from trainer.analysis.retrieval import ranks, recall_at
from trainer.analysis.sampling import at_most
from trainer.analysis.similarity import matched_cosines
from trainer.analysis.tiles import exact, part_of
from trainer.charts import BOTH, SAME, ChartError
from trainer.charts.matching import matching_of
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshots import choose_snapshot, sides
from trainer.store import RunRow, Workspace
from trainer.store.snapshot_files import read_snapshot

LIVE: Final = 320
"""Pairs measured while the slider moves: both runs and CLOOB's four retrievals stay within a twentieth of a second."""

MOST_PAIRS: Final = 8_000
"""Pairs measured exactly; more are sampled, and n says so: CLOOB's loss of twice as many takes four times as long."""

MAP_POINTS: Final = 600
SHARES: Final = tuple(i / 10 for i in range(13))
"""How much of the gap is closed in the figure: beyond 1 the modalities have changed sides."""


@dataclass(frozen=True)
class Published:
    """Figures of others, to compare with; never ours."""

    what: str
    gap: float
    loss: float


PUBLISHED: Final = (Published("CLIP on COCO", 0.8186, 0.3554), Published("the same, gap closed", 0.0351, 1.1248))
SOURCE: Final = "Humer et al., Amumo: CLIP RN50 on 100 MS-COCO validation pairs, https://ginihumer.github.io/Amumo"


@dataclass(frozen=True)
class Objective:
    """What a run minimizes, as far as it can be computed of a snapshot: `cloob` or the symmetric `info_nce`."""

    kind: str
    inv_tau: float
    beta: float = 0.0

    @property
    def words(self) -> str:
        """For people: `InfoNCE, 1/τ 17.5`."""
        if self.kind == "cloob":
            return f"CLOOB, 1/τ {self.inv_tau:.3g}, β {self.beta:.3g}"
        return f"InfoNCE, 1/τ {self.inv_tau:.3g}"

    def loss(
        self, image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], progress: Progress | None = None
    ) -> float:
        """Of all these pairs as one batch; NaN with fewer than two."""
        if len(image) < 2:
            return float("nan")
        if self.kind == "cloob":
            return losses.cloob(image, text, self.inv_tau, self.beta, progress=progress)
        return losses.info_nce(image, text, self.inv_tau, progress=progress)


@dataclass(frozen=True)
class GapPoint:
    """What holds when `share` of the gap is closed; `n` pairs were measured, as one batch."""

    share: float
    n: int
    gap: float
    loss: float
    image_to_text: float
    text_to_image: float
    matched: float


@dataclass(frozen=True)
class GapSample:
    """Pairs of one run in memory: what a moving slider is answered from.

    Attributes:
        image: Unit rows.
        text: Unit rows.
        matching: Which captions and which pictures are one.
        gap: Mean image minus mean text of the whole snapshot.
        rows: The pairs of the snapshot that these are.
        mean: Of both modalities together; the origin of the map.
        axes: The two directions of the map: principal axes of both modalities together.
    """

    image: Float[np.ndarray, "n d"]
    text: Float[np.ndarray, "n d"]
    matching: Matching
    gap: Float[np.ndarray, " d"]
    rows: Int[np.ndarray, " n"]
    mean: Float[np.ndarray, " d"]
    axes: Float[np.ndarray, "d 2"]

    def measure(self, objective: Objective, share: float, way: Way, progress: Progress | None = None) -> GapPoint:
        """Loss and recall with `share` of the gap closed; `progress` may raise to cancel."""
        image, text = close_gap(self.image, self.text, share, way, gap=self.gap)
        forward = ranks(image, text, self.matching.texts, progress=part_of(progress, 0, 4))
        back = ranks(text, image, self.matching.images, progress=part_of(progress, 1, 4))
        # The loss takes about as long as both rankings together, or longer.
        loss = objective.loss(image, text, (lambda done, note: progress(0.5 + done / 2, note)) if progress else None)
        matched = float(matched_cosines(image, text).mean(dtype=np.float64)) if len(image) else float("nan")
        recalls = recall_at(forward, 1), recall_at(back, 1)
        return GapPoint(share, len(image), modality_gap(image, text)[1], loss, *recalls, matched)

    def places(self, share: float, way: Way, most: int = MAP_POINTS) -> tuple[np.ndarray, np.ndarray]:
        """Where images and texts stand on the map (two n x 2, float64), the first `most` of them."""
        moved = close_gap(self.image[:most], self.text[:most], share, way, gap=self.gap)
        image, text = ((rows - self.mean) @ self.axes for rows in moved)
        return image, text


@dataclass(frozen=True, kw_only=True)
class GapRun(SnapshotLabel):
    """One run's gap.

    Attributes:
        n: Pairs measured, as one batch: the loss depends on it.
        pairs: Pairs of the snapshot.
        steps: Of all its snapshots of this data.
        sizes: The gap at each of them, from all pairs.
        points: Loss and recall at some shares closed.
        vector: The gap itself.
    """

    index: int
    n: int
    pairs: int
    objective_words: str
    steps: tuple[int, ...]
    sizes: tuple[float, ...]
    vector: Float[np.ndarray, " d"]
    points: tuple[GapPoint, ...] = ()


@dataclass(frozen=True)
class GapChart:
    """The gaps of several runs; losses of different objectives are different quantities and share no axis."""

    way: Way
    runs: tuple[GapRun, ...]
    note: str


def gap(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    way: Way = "shift",
    shares: Sequence[float] = SHARES,
    most: int = MOST_PAIRS,
    step_b: int | None = SAME,
    progress: Progress | None = None,
) -> GapChart:
    """The gap of each run over its steps, and what closing shares of it does at the chosen one.

    `step_b` is the second run's where that is another, None its last. At most `most` pairs are measured, tile by tile.

    Raises:
        ChartError: A run lacks such a snapshot, or embeds one modality only.
        StoreError: No such run.
    """
    made = []
    shown_at = sides(runs, step, step_b)
    for index, (ref, at) in enumerate(shown_at):
        run, sample = read_gap(workspace, ref, index, step=at, dataset=dataset, split=split, most=most)
        objective, points = objective_of(workspace, workspace.runs.get(ref), run.step), []
        for place, share in enumerate(shares):
            part = part_of(part_of(progress, index, len(shown_at)), place, len(shares))
            points.append(sample.measure(objective, share, way, part))
        made.append(GapRun(**{**vars(run), "points": tuple(points)}))
    return GapChart(way, tuple(made), note(made))


def read_gap(
    workspace: Workspace,
    ref: int | str,
    index: int,
    *,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    most: int = LIVE,
    progress: Progress | None = None,
) -> tuple[GapRun, GapSample]:
    """A run's gap over its steps, and at most `most` of its pairs in memory; `progress` may raise to cancel.

    Raises:
        ChartError: The run lacks such a snapshot, or embeds one modality only.
    """
    run = workspace.runs.get(ref)
    chosen = choose_snapshot(workspace, run, step=step, dataset=dataset, split=split)
    snapshot = read_snapshot(chosen.folder)
    if snapshot.image is None or snapshot.text is None:
        raise ChartError(f"Run {run.name} embeds only one modality; the gap needs images and texts. {BOTH}")
    rows = at_most(snapshot.n, most)
    image, text = exact(snapshot.image[rows]), exact(snapshot.text[rows])
    vector = modality_gap(snapshot.image, snapshot.text)[0]
    mean, axes, _ = principal_axes(np.concatenate([image, text]), 2)
    sample = GapSample(image, text, matching_of(snapshot, rows), vector, rows, mean, axes)
    steps, sizes = _over_steps(workspace, run, chosen.dataset, chosen.split, progress)
    words = objective_of(workspace, run, chosen.step).words
    facts = {"index": index, "n": len(rows), "pairs": snapshot.n, "objective_words": words}
    return GapRun(**shown(run, chosen), **facts, steps=steps, sizes=sizes, vector=vector), sample


def objective_of(workspace: Workspace, run: RunRow, step: int) -> Objective:
    """What to compute as the run's loss at a step: CLOOB for CLOOB, else InfoNCE at the temperature it had."""
    chosen = workspace.runs.config_of(run.id).objective
    steps, values, _ = workspace.results.series(run.id, "train/inv_tau")
    before = np.flatnonzero(np.asarray(steps) <= max(step, steps[0] if len(steps) else 0))
    inv_tau = float(values[before[-1]]) if len(before) else float(getattr(chosen, "inv_tau", 1 / 0.07))
    if not np.isfinite(inv_tau) or inv_tau <= 0:
        inv_tau = float(getattr(chosen, "inv_tau", 1 / 0.07))
    if isinstance(chosen, config.Cloob):
        return Objective("cloob", inv_tau, chosen.scale_hopfield)
    return Objective("info_nce", inv_tau)


def note(runs: Sequence[GapRun]) -> str:
    """What has to be said beside the numbers."""
    words = ["The loss is that of all n pairs as one batch, so it grows with n."]
    if len({run.objective_words.partition(",")[0] for run in runs}) > 1:
        words.append("Losses of different objectives are different quantities: compare recall.")
    if any(run.n < run.pairs for run in runs):
        words.append(f"At most {max(run.n for run in runs):,} pairs are measured, drawn at random.")
    return " ".join(words)


def _over_steps(
    workspace: Workspace, run: RunRow, dataset: str, split: str, progress: Progress | None
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    rows = [r for r in workspace.results.snapshots(run.id) if (r.dataset, r.split) == (dataset, split)]
    by_step = {}
    for place, row in enumerate(sorted(rows, key=lambda r: r.step)):
        if progress:
            progress(place / len(rows), "following the steps")
        snapshot = read_snapshot(row.folder)
        if snapshot.image is not None and snapshot.text is not None:
            by_step[row.step] = modality_gap(snapshot.image, snapshot.text)[1]
    return tuple(by_step), tuple(by_step.values())
