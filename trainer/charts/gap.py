"""The modality gap of each run: its size over the steps, and the effect of closing it on loss and recall."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

import numpy as np
from jaxtyping import Float, Int

from trainer import config
from trainer.analysis import losses
from trainer.analysis.distinct import Matching
from trainer.analysis.gap import Way, close_gap
from trainer.analysis.geometry import modality_gap
from trainer.analysis.progress import Progress
from trainer.analysis.projection import principal_axes
from trainer.analysis.retrieval import question_ranks, recall_at
from trainer.analysis.sampling import at_most
from trainer.analysis.similarity import matched_cosines
from trainer.analysis.tiles import exact, part_of
from trainer.charts import BOTH, ChartError
from trainer.charts.marks import (
    Axis,
    Marker,
    NumberRow,
    NumberTable,
    Panel,
    Points,
    Series,
    XYPlot,
    axis_over,
    run_tone,
)
from trainer.charts.matching import matching_of
from trainer.charts.settings import setting
from trainer.charts.snapshot_label import SnapshotLabel, labels, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Chart, PerRun, Request, Target, per_run
from trainer.metrics import recall_name
from trainer.store import RunRow, SnapshotRow, Workspace
from trainer.store.snapshot_files import read_snapshot

METHOD: Final = """\
The gap is the mean image embedding minus the mean text embedding; its size is the length of that vector (Liang et \
al., Mind the Gap, 2022). 0: the modalities have one center; √2: two points at right angles; 2 at most.

Shift moves every image by −s/2 and every text by +s/2 of the gap, then makes them unit rows again; beyond 100 % \
they have changed sides. Project out takes a share of each row's own component along the gap away. At 100 % the \
centers meet before the rows are unit rows again; that separates them slightly, so a small gap remains. Neither \
involves training: it tests whether the gap carries information.

The loss is the run's own objective: CLOOB with its fixed temperature and beta for CLOOB, else symmetric InfoNCE at \
the temperature of that step. All n pairs count as one batch, so it depends on n and is not the loss of training. \
Losses of different objectives are different quantities and share no axis: compare recall.

While the slider moves, numbers are of a random sample (n is shown); when it rests, of all pairs, or of 2,000 drawn \
at random where there are more; what was measured is kept. "Measure all" measures every pair, tile by tile. The map \
shows up to 320 pairs on the two principal axes of images and texts together, as trained; the axes stay put.

Published, for comparison: Humer et al., Amumo: CLIP RN50 on 100 pairs of MS-COCO has a gap of .8186 and a loss of \
.3554; with the gap closed .0351 and 1.1248."""

LIVE: Final = 320
"""Pairs measured while the slider moves: both runs and CLOOB's four retrievals stay within a twentieth of a second."""

MOST_PAIRS: Final = 2_000
"""Pairs measured; more are sampled, and n says so: CLOOB's loss of twice as many takes four times as long."""

WAYS: Final[tuple[Literal["image_to_text", "text_to_image"], ...]] = ("image_to_text", "text_to_image")

SHARES: Final = tuple(range(0, 121, 10))
"""Percent of the gap closed in the curves: beyond 100 the modalities have changed sides."""

MEASURES: Final = (
    ("gap", "Gap", "Length of mean image − mean text.", 4),
    ("loss", "Loss", "The run's own objective of all n pairs as one batch.", 4),
    (
        "image_to_text",
        recall_name("image_to_text"),
        "Images whose own text is the most similar of the distinct texts.",
        3,
    ),
    (
        "text_to_image",
        recall_name("text_to_image"),
        "Texts whose own image is the most similar of the distinct images.",
        3,
    ),
    ("matched", "Matched cosine", "Mean over the pairs.", 3),
    ("n", "n pairs", "Pairs measured, as one batch.", 0),
)
"""Numbers of a point: field, words, hint and digits."""


@dataclass(frozen=True)
class GapSettings:
    """The settings of the chart."""

    way: Literal["shift", "project"] = setting(
        "shift",
        "Closing method",
        "Shift moves both modalities by half the gap; project takes the component along the gap away.",
        named={"shift": "Shift", "project": "Project out"},
    )
    share: int = setting(0, "Share closed (%)", "How much of the gap is closed.", low=0, high=150)
    most: int = setting(MOST_PAIRS, "Most pairs", "More pairs are sampled.", low=2, high=10**7, control=False)


@dataclass(frozen=True)
class Published:
    """Published numbers, for comparison only."""

    what: str
    gap: float
    loss: float


PUBLISHED: Final = (Published("CLIP on COCO", 0.8186, 0.3554), Published("the same, gap closed", 0.0351, 1.1248))
SOURCE: Final = "Humer et al., Amumo: CLIP RN50 on 100 MS-COCO validation pairs, https://ginihumer.github.io/Amumo"


@dataclass(frozen=True)
class Objective:
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
        self, image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], progress: Progress | None = None
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


@dataclass(frozen=True)
class GapPoint:
    """Measures with `share` of the gap closed, on `n` pairs as one batch."""

    share: float
    n: int
    gap: float
    loss: float
    image_to_text: float
    text_to_image: float
    matched: float


@dataclass(frozen=True)
class GapSample:
    """Pairs of one run in memory, for the slider.

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
        """Return loss and recall with `share` of the gap closed; `progress` may raise to cancel."""
        image, text = close_gap(self.image, self.text, share, way, gap=self.gap)
        forward = question_ranks(image, text, self.matching.texts, progress=part_of(progress, 0, 4))
        back = question_ranks(text, image, self.matching.images, progress=part_of(progress, 1, 4))
        # The loss takes about as long as both rankings together, or longer.
        loss = objective.loss(image, text, (lambda done, note: progress(0.5 + done / 2, note)) if progress else None)
        matched = float(matched_cosines(image, text).mean(dtype=np.float64)) if len(image) else float("nan")
        recalls = recall_at(forward, 1), recall_at(back, 1)
        return GapPoint(share, len(image), modality_gap(image, text)[1], loss, *recalls, matched)

    def places(self, share: float, way: Way) -> tuple[np.ndarray, np.ndarray]:
        """Return the map positions of images and texts (two n x 2 arrays, float64)."""
        moved = close_gap(self.image, self.text, share, way, gap=self.gap)
        image, text = ((rows - self.mean) @ self.axes for rows in moved)
        return image, text


@dataclass(frozen=True, eq=False)
class GapMeasures:
    """The measures of one snapshot's gap, cached so that a moving slider measures each share once.

    Attributes:
        objective: What the run minimizes.
        sample: The pairs that are measured.
        live: At most `LIVE` of them, on the map and while the slider moves.
        pairs: Pairs of the snapshot.
        steps: Of all its snapshots of this data.
        sizes: The gap at each of them, from all pairs.
        points: Way and percent closed -> what was measured.
    """

    objective: Objective
    sample: GapSample
    live: GapSample
    pairs: int
    steps: tuple[int, ...]
    sizes: tuple[float, ...]
    points: dict[tuple[Way, int], GapPoint] = field(default_factory=dict)

    def at(self, way: Way, share: int, progress: Progress | None = None) -> GapPoint:
        """Return the point of a share, measured on first use; without progress only on the live pairs."""
        known = (way, share) if share else ("shift", 0)
        if known in self.points:
            return self.points[known]
        if progress is None:
            return self.live.measure(self.objective, share / 100, way)
        self.points[known] = self.sample.measure(self.objective, share / 100, way, progress)
        return self.points[known]

    def curve(self, way: Way) -> list[GapPoint]:
        """Return the measures at `SHARES`."""
        known = ((way, share) if share else ("shift", 0) for share in SHARES)
        return [self.points[key] for key in known if key in self.points]


@dataclass(frozen=True, kw_only=True)
class GapRun(SnapshotLabel):
    """One run's gap."""

    measures: GapMeasures

    @property
    def n(self) -> int:
        """The number of pairs measured as one batch, on which the loss depends."""
        return len(self.measures.sample.rows)

    def asked(self, way: str) -> int:
        """Return the number of distinct questions of a direction of retrieval."""
        found = self.measures.sample.matching
        return len(found.images if way == "image_to_text" else found.texts)


_ALIVE: Final[WeakValueDictionary[object, GapMeasures]] = WeakValueDictionary()
"""Measures that a shown chart holds."""


def gap(workspace: Workspace, target: Target, request: Request, settings: GapSettings, progress: Progress) -> GapRun:
    """Return a run's gap over its steps and the effect of closing shares of it; at most `most` pairs, tiled.

    Raises:
        ChartError: The run lacks such a snapshot, or embeds one modality only.
        StoreError: No such run.
    """
    run = workspace.runs.get(target.run)
    chosen = choose_snapshot(workspace, run, step=target.step, dataset=request.dataset, split=request.split)
    rows = [row for row in workspace.results.snapshots(run.id) if row.key == chosen.key]
    written = (chosen.folder / "snapshot.json").stat().st_mtime_ns
    key = (run.name, chosen, written, len(rows), settings.most)
    if (measures := _ALIVE.get(key)) is None:
        measures = _ALIVE[key] = _read(workspace, run, chosen, rows, settings.most, progress)
    shares = (*SHARES, settings.share)
    for place, share in enumerate(shares):
        measures.at(settings.way, share, part_of(progress, place, len(shares)))
    return GapRun(**shown(run, chosen), measures=measures)


def _read(
    workspace: Workspace, run: RunRow, chosen: SnapshotRow, rows: Sequence[SnapshotRow], most: int, progress: Progress
) -> GapMeasures:
    snapshot = read_snapshot(chosen.folder)
    if snapshot.image is None or snapshot.text is None:
        raise ChartError(f"Run {run.name} embeds only one modality; the gap needs images and texts. {BOTH}")
    vector = modality_gap(snapshot.image, snapshot.text)[0]
    drawn = at_most(snapshot.n, most)
    few = drawn[at_most(len(drawn), LIVE)]
    spanning = [exact(part[few]) for part in (snapshot.image, snapshot.text)]
    mean, axes, _ = principal_axes(np.concatenate(spanning), 2)
    sample, live = (
        GapSample(
            exact(snapshot.image[at]), exact(snapshot.text[at]), matching_of(snapshot, at), vector, at, mean, axes
        )
        for at in (drawn, few)
    )
    sizes = _over_steps(rows, progress)
    return GapMeasures(
        objective_of(workspace, run, chosen.step), sample, live, snapshot.n, tuple(sizes), tuple(sizes.values())
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
    for place, row in enumerate(sorted(rows, key=lambda r: r.step)):
        progress(0.02 * place / len(rows), "measuring each checkpoint")
        snapshot = read_snapshot(row.folder)
        if snapshot.image is not None and snapshot.text is not None:
            by_step[row.step] = modality_gap(snapshot.image, snapshot.text)[1]
    return by_step


def draw(data: PerRun[GapRun], settings: GapSettings) -> Panel:
    """Draw each run's clouds, its gap over the steps, recall and loss over the closed share, and the numbers."""
    runs, names = list(zip(data.found, data.places, strict=True)), labels(data.found)
    return Panel(
        title="Modality gap",
        rows=(
            tuple(_clouds(run, place, name, settings) for (run, place), name in zip(runs, names, strict=True)),
            tuple(_table(data.found, names, settings.way, share) for share in dict.fromkeys((0, settings.share))),
            (_sizes(runs), _recalls(runs, names, settings)),
            tuple(_losses(run, place, name, settings) for (run, place), name in zip(runs, names, strict=True)),
        ),
        notes=tuple(_notes(data.found)),
    )


def _clouds(run: GapRun, place: int, name: str, settings: GapSettings) -> XYPlot:
    live = run.measures.live
    both = np.concatenate(live.places(0.0, "shift"))
    image, text = live.places(settings.share / 100, settings.way)
    means = np.stack([image.mean(0), text.mean(0)])
    # The frame is that of the snapshot: the eye sees what moves.
    x, y = (axis_over("", [both[:, side]]) for side in (0, 1))
    tone = run_tone(place)
    return XYPlot(
        f"clouds-{place}",
        name,
        x,
        y,
        (Series("", "quiet", means[:, 0], means[:, 1]),),
        dots=(
            Marker("mean image", tone, float(means[0, 0]), float(means[0, 1]), 11),
            Marker("mean text", "quiet", float(means[1, 0]), float(means[1, 1]), 11, "diamond"),
        ),
        points=(Points("texts", "quiet", text, live.rows), Points("images", tone, image, live.rows)),
        equal=True,
        note=f"{len(image):,} of {run.measures.pairs:,} pairs",
        tone=tone,
    )


def _sizes(runs: Sequence[tuple[GapRun, int]]) -> XYPlot:
    # The course of a run that is shown at two steps is one.
    once = {run.run: (run, place) for run, place in reversed(runs)}
    curves = tuple(
        Series(
            run.name,
            run_tone(place),
            np.array(run.measures.steps, float),
            np.array(run.measures.sizes),
            marked=True,
        )
        for run, place in sorted(once.values(), key=lambda one: one[1])
    )
    dots = tuple(
        Marker("", run_tone(place), run.step, run.measures.sizes[run.measures.steps.index(run.step)], 11, "ring")
        for run, place in runs
    )
    x, y = axis_over("step", [c.x for c in curves]), axis_over("size of the gap", [c.y for c in curves], include=(0,))
    return XYPlot("sizes", "Size of the gap over training", x, y, curves, dots=dots)


def _recalls(runs: Sequence[tuple[GapRun, int]], names: list[str], settings: GapSettings) -> XYPlot:
    curves = []
    for (run, place), name in zip(runs, names, strict=True):
        points = run.measures.curve(settings.way)
        x = np.array([100 * point.share for point in points])
        for way, attribute in (("image to text", "image_to_text"), ("text to image", "text_to_image")):
            y = np.array([getattr(point, attribute) for point in points])
            curves.append(Series(f"{name}, {way}", run_tone(place), x, y, dashed=way == "text to image"))
    y_axis = axis_over("recall", [curve.y for curve in curves], include=(0,))
    title = recall_name(
        "both", split=[run.split for run, _ in runs], n=[run.asked(way) for run, _ in runs for way in WAYS]
    )
    return XYPlot("recall", title, _closed(), y_axis, tuple(curves), cursor=settings.share)


def _losses(run: GapRun, place: int, name: str, settings: GapSettings) -> XYPlot:
    points = run.measures.curve(settings.way)
    x, y = np.array([100 * point.share for point in points]), np.array([point.loss for point in points])
    words = f"{run.measures.objective.words}, n = {run.n:,}"
    curve = Series("loss", run_tone(place), x, y)
    title = f"Loss of {name}"
    return XYPlot(
        f"loss-{place}", title, _closed(), axis_over("loss", [y]), (curve,), cursor=settings.share, note=words
    )


def _closed() -> Axis:
    return Axis("gap closed (% of its length)", 0.0, 150.0)


def _table(runs: Sequence[GapRun], names: list[str], way: Way, share: int) -> NumberTable:
    points = [run.measures.at(way, share) for run in runs]
    lines = tuple(
        NumberRow(_words(runs, name, words), hint, tuple(float(getattr(point, name)) for point in points), digits)
        for name, words, hint, digits in MEASURES
    )
    key, title = ("now", f"{share} % closed") if share else ("open", "As trained")
    return NumberTable(key, title, tuple(names), lines)


def _words(runs: Sequence[GapRun], name: str, words: str) -> str:
    splits = [run.split for run in runs]
    recalls: dict[str, str] = {way: recall_name(way, split=splits, n=[run.asked(way) for run in runs]) for way in WAYS}
    return recalls.get(name, words)


def _notes(runs: Sequence[GapRun]) -> Iterator[str]:
    yield "The clouds lie on the two principal axes of images and texts."
    yield "The loss is that of all n pairs as one batch, so it grows with n."
    if len({run.measures.objective.kind for run in runs}) > 1:
        yield "Losses of different objectives are different quantities: compare recall."
    if any(run.n < run.measures.pairs for run in runs):
        yield f"At most {max(run.n for run in runs):,} pairs are measured, drawn at random."
    published = "; ".join(f"{p.what}: gap {p.gap:.4f}, loss {p.loss:.4f}" for p in PUBLISHED)
    yield f"For comparison, {published}. {SOURCE}"


def values(data: PerRun[GapRun], settings: GapSettings) -> list[dict[str, Any]]:
    """Return facts, the gap over the steps, and the measures at every closed share."""
    facts = ("run", "name", "objective", "step", "dataset", "split", "n")
    found = []
    for run in data.found:
        row = {name: getattr(run, name) for name in facts} | {"pairs": run.measures.pairs}
        row["objective_words"] = run.measures.objective.words
        row |= {f"gap at step {at}": size for at, size in zip(run.measures.steps, run.measures.sizes, strict=True)}
        points = {point.share: point for point in run.measures.curve(settings.way)}
        points.setdefault(settings.share / 100, run.measures.at(settings.way, settings.share))
        for share, point in sorted(points.items()):
            measured = {name: getattr(point, name) for name, *_ in MEASURES if name != "n"}
            row |= {f"{name} at {share:g}": value for name, value in measured.items()}
        found.append(row)
    names = list(dict.fromkeys(name for row in found for name in row))
    return [{name: row.get(name, float("nan")) for name in names} for row in found]


CHART: Final = Chart(
    name="gap",
    view="gap",
    label="Modality gap",
    question="How far apart are image and text embeddings, and what is the effect of closing the gap?",
    method=METHOD,
    settings=GapSettings,
    compute=per_run(gap),
    draw=draw,
    preview=draw,
    values=values,
)
