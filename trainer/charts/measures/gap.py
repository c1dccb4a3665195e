"""The modality gap of a run and the effect of closing it: what the chart `gap` draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal
from weakref import WeakValueDictionary

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer import config
from trainer.analysis import losses
from trainer.analysis.distinct import Matching
from trainer.analysis.gap import Way, close_gap
from trainer.analysis.geometry import modality_gap
from trainer.analysis.progress import Progress, part_of, silent
from trainer.analysis.projection import principal_axes
from trainer.analysis.retrieval import both_question_ranks, recall_at
from trainer.analysis.similarity import matched_cosines
from trainer.analysis.tiles import exact
from trainer.analysis.units import Units
from trainer.charts.matching import matching_of
from trainer.charts.opened_snapshot import OpenedSnapshot, open_target
from trainer.charts.snapshot_label import SnapshotLabel
from trainer.charts.snapshots import course_of
from trainer.charts.spec import Request, Target
from trainer.config.fields import option
from trainer.store import RunRow, SnapshotRow, Workspace
from trainer.store.snapshot_files import read_snapshot

LIVE: Final = 320
"""Pairs measured while the slider moves: both runs and CLOOB's four retrievals stay within a twentieth of a second."""


MOST_PAIRS: Final = 2_000
"""Pairs measured; more are sampled, and n says so: CLOOB's loss of twice as many takes four times as long."""


SHARES: Final = tuple(range(0, 121, 10))
"""Percent of the gap closed in the curves: beyond 100 the modalities have changed sides."""


@dataclass(frozen=True)
class GapSettings:
    """The settings of the chart."""

    way: Literal["shift", "project"] = option(
        "shift",
        "Closing method",
        "Shift moves both modalities by half the gap; project takes the component along the gap away.",
        named={"shift": "Shift", "project": "Project out"},
    )
    share: int = option(0, "Share closed (%)", "How much of the gap is closed.", low=0, high=150)
    most: int = option(MOST_PAIRS, "Most pairs", "More pairs are sampled.", low=2, high=10**7, control=False)


class Objective(Struct, frozen=True):
    """The loss of a run as computed from a snapshot: `cloob` or the symmetric `info_nce`."""

    kind: str
    inv_tau: float
    beta: float = 0.0
    share: float = 1.0
    residual: bool = False

    @property
    def words(self) -> str:
        """A label: `InfoNCE, 1/τ 17.5`."""
        if self.kind == "cloob":
            share = "" if self.share == 1 else f", retrieval share {self.share:g}"
            return f"CLOOB, 1/τ {self.inv_tau:.3g}, β {self.beta:.3g}{share}{', residual' if self.residual else ''}"
        return f"InfoNCE, 1/τ {self.inv_tau:.3g}"

    def loss(
        self, image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], progress: Progress = silent
    ) -> float:
        """Return the loss of all these pairs as one batch; NaN with fewer than two."""
        if len(image) < 2:
            return float("nan")
        if self.kind == "cloob":
            temperatures = self.inv_tau, self.beta
            return losses.cloob(
                image, text, *temperatures, retrieval_share=self.share, residual=self.residual, progress=progress
            )
        return losses.info_nce(image, text, self.inv_tau, progress=progress)


class GapPoint(Struct, frozen=True):
    """Measures with `share` of the gap closed; the loss on `n` pairs as one batch, without false negatives."""

    share: float
    n: int
    gap: float
    loss: float
    image_to_text: float
    text_to_image: float
    matched: float


@dataclass(frozen=True)
class GapSample:
    """Pairs of one run in memory, for the slider."""

    image: Float[np.ndarray, "n d"]  # Unit rows.
    text: Float[np.ndarray, "n d"]  # Unit rows.
    units: Units  # Which captions and which pictures are one.
    gap: Float[np.ndarray, " d"]  # Mean image minus mean text of the whole snapshot.
    rows: Int[np.ndarray, " n"]  # The pairs of the snapshot that these are.
    mean: Float[np.ndarray, " d"]  # Of both modalities together; the origin of the map.
    axes: Float[np.ndarray, "d 2"]  # The two directions of the map: principal axes of both modalities together.

    @property
    def matching(self) -> Matching:
        """The right answers in both directions."""
        return self.units.matching

    @cached_property
    def batch(self) -> Int[np.ndarray, " b"]:
        """Places of the pairs of the loss: none has another's picture or caption, which would be a false negative."""
        return self.units.alike()

    @cached_property
    def pairs(self) -> Int[np.ndarray, " p"]:
        """Places of the distinct pairs."""
        return self.units.rows("pair")

    def measure(self, objective: Objective, share: float, method: Way, progress: Progress = silent) -> GapPoint:
        """Return loss and recall with `share` of the gap closed; `progress` may raise to cancel."""
        image, text = close_gap(self.image, self.text, share, method, gap=self.gap)
        forward, back = both_question_ranks(image, text, self.matching, progress=part_of(progress, 0, 2))
        # The loss takes about as long as both rankings together, or longer.
        loss = objective.loss(image[self.batch], text[self.batch], part_of(progress, 1, 2))
        cosines = matched_cosines(image[self.pairs], text[self.pairs])
        matched = float(cosines.mean(dtype=np.float64)) if len(cosines) else float("nan")
        recalls = recall_at(forward, 1), recall_at(back, 1)
        return GapPoint(share, len(self.batch), modality_gap(image, text, self.matching)[1], loss, *recalls, matched)

    def places(self, share: float, method: Way) -> tuple[np.ndarray, np.ndarray]:
        """Return the map positions of images and texts (two n x 2 arrays, float64)."""
        moved = close_gap(self.image, self.text, share, method, gap=self.gap)
        image, text = ((rows - self.mean) @ self.axes for rows in moved)
        return image, text


@dataclass(frozen=True, eq=False)
class GapMeasures:
    """The measures of one snapshot's gap, cached so that a moving slider measures each share once."""

    objective: Objective
    sample: GapSample
    live: GapSample  # At most `LIVE` of them, on the map and while the slider moves.
    pairs: int
    steps: tuple[int, ...]  # Of all its snapshots of this data.
    sizes: tuple[float, ...]  # The gap at each of them, from all pairs.
    # Way and percent closed -> what was measured.
    points: dict[tuple[Way, int], GapPoint] = field(default_factory=dict)

    def at(self, method: Way, share: int, progress: Progress | None = None) -> GapPoint:
        """Return the point of a share, measured on first use; without progress only on the live pairs."""
        key = (method, share) if share else ("shift", 0)
        if key in self.points:
            return self.points[key]
        if progress is None:
            return self.live.measure(self.objective, share / 100, method)
        self.points[key] = self.sample.measure(self.objective, share / 100, method, progress)
        return self.points[key]

    def curve(self, method: Way) -> list[GapPoint]:
        """Return the measures at `SHARES`."""
        keys = ((method, share) if share else ("shift", 0) for share in SHARES)
        return [self.points[key] for key in keys if key in self.points]


@dataclass(frozen=True, kw_only=True)
class GapRun(SnapshotLabel):
    """One run's gap."""

    measures: GapMeasures

    @property
    def n(self) -> int:
        """The number of pairs measured as one batch, on which the loss depends."""
        return len(self.measures.sample.batch)

    def asked(self, direction: str) -> int:
        """Return the number of distinct questions of a direction of retrieval."""
        matching = self.measures.sample.matching
        return len(matching.images if direction == "image_to_text" else matching.texts)


_ALIVE: Final[WeakValueDictionary[object, GapMeasures]] = WeakValueDictionary()
"""Measures that a shown chart holds."""


def gap(workspace: Workspace, target: Target, request: Request, settings: GapSettings, progress: Progress) -> GapRun:
    """Return a run's gap over its steps and the effect of closing shares of it; at most `most` pairs, tiled.

    Raises:
        ChartError: The run lacks such a snapshot, or embeds one modality only.
    """
    opened = open_target(workspace, target, request)
    rows = course_of(workspace, opened.row)
    key = (*opened.key, len(rows), settings.most)
    if (measures := _ALIVE.get(key)) is None:
        measures = _ALIVE[key] = _read(workspace, opened, rows, settings.most, progress)
    shares = (*SHARES, settings.share)
    for index, share in enumerate(shares):
        measures.at(settings.way, share, part_of(progress, index, len(shares)))
    return GapRun(**opened.label, measures=measures)


def _read(
    workspace: Workspace, opened: OpenedSnapshot, rows: Sequence[SnapshotRow], most: int, progress: Progress
) -> GapMeasures:
    image, text = opened.both("the gap needs")
    units = opened.units
    vector = modality_gap(image, text, units.matching)[0]
    drawn = units.sample(most, "picture")
    few = drawn[units.taken(drawn).sample(LIVE, "picture")]
    spanning = [exact(part[few]) for part in (image, text)]
    mean, axes, _ = principal_axes(np.concatenate(spanning), 2)
    sample, live = (
        GapSample(exact(image[at]), exact(text[at]), units.taken(at), vector, at, mean, axes) for at in (drawn, few)
    )
    sizes = _over_steps(rows, progress)
    return GapMeasures(
        objective_of(workspace, opened.run, opened.row.step),
        sample,
        live,
        units.count("pair"),
        tuple(sizes),
        tuple(sizes.values()),
    )


def objective_of(workspace: Workspace, run: RunRow, step: int) -> Objective:
    """Return the loss to compute for a run at a step: CLOOB for CLOOB, else InfoNCE at its temperature."""
    chosen = workspace.runs.config_of(run.id).objective
    steps, values, _ = workspace.results.series(run.id, "train/inv_tau")
    before = np.flatnonzero(np.asarray(steps) <= step)
    inv_tau = float(values[before[-1]]) if len(before) else float(getattr(chosen, "inv_tau", 1 / 0.07))
    if not np.isfinite(inv_tau) or inv_tau <= 0:
        inv_tau = float(getattr(chosen, "inv_tau", 1 / 0.07))
    if isinstance(chosen, config.Cloob):
        return Objective("cloob", inv_tau, chosen.scale_hopfield, chosen.retrieval_share, chosen.residual)
    return Objective("info_nce", inv_tau)


def _over_steps(rows: Sequence[SnapshotRow], progress: Progress) -> dict[int, float]:
    by_step = {}
    for index, row in enumerate(rows):
        progress(0.02 * index / len(rows), "measuring each checkpoint")
        snapshot = read_snapshot(row.folder)
        if snapshot.image is not None and snapshot.text is not None:
            by_step[row.step] = modality_gap(snapshot.image, snapshot.text, matching_of(snapshot))[1]
    return by_step
