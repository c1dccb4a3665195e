"""The modality gap of each run: its size over the steps, and the effect of closing it on loss and recall."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct

from trainer.analysis.gap import Way
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
from trainer.charts.measure import facts_of, filled
from trainer.charts.measures.gap import GapRun, GapSettings, gap
from trainer.charts.spec import Chart, PerRun, per_run
from trainer.metrics import measured_name, recall_name

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


WAYS: Final[tuple[Literal["image_to_text", "text_to_image"], ...]] = ("image_to_text", "text_to_image")


MEASURES: Final = (
    ("gap", "Gap", "Length of mean image − mean text.", 4),
    ("n", "n pairs", "Pairs measured, as one batch.", 0),
    ("loss", "Loss", "The run's own objective of all n pairs as one batch.", 4),
    ("image_to_text", "", "Images whose own text is the most similar of the distinct texts.", 3),
    ("text_to_image", "", "Texts whose own image is the most similar of the distinct images.", 3),
    ("matched", "Matched cosine", "Mean over the pairs.", 3),
)
"""Numbers of a point: field, words (those of a recall name the split), hint and digits."""


class Published(Struct, frozen=True):
    """Published numbers, for comparison only."""

    what: str
    gap: float
    loss: float


PUBLISHED: Final = (
    Published("CLIP on COCO", 0.8186, 0.3554),
    Published("the same, gap closed", 0.0351, 1.1248),
)
CLOSED: Final = Axis("gap closed (% of its length)", 0.0, 150.0)
SOURCE: Final = "Humer et al., Amumo: CLIP RN50 on 100 MS-COCO validation pairs, https://ginihumer.github.io/Amumo"


def draw(data: PerRun[GapRun], settings: GapSettings) -> Panel:
    """Draw each run's clouds, its gap over the steps, recall and loss over the closed share, and the numbers."""
    runs, names = data.named, data.labels
    clouds, losses = ([plot(*run, settings) for run in runs] for plot in (_clouds, _losses))
    sizes, recalls = _sizes(runs), _recalls(runs, settings)
    # Of two runs, all fits on a small screen.
    plots = ((*clouds, sizes), (recalls, *losses)) if len(runs) <= 2 else ((*clouds,), (sizes, recalls), (*losses,))
    tables = tuple(_table(data.found, names, settings.way, share) for share in dict.fromkeys((0, settings.share)))
    return Panel(title="Modality gap", rows=(*plots, tables), notes=tuple(_notes(data.found)), table_notes=1)


def _clouds(run: GapRun, index: int, name: str, settings: GapSettings) -> XYPlot:
    live = run.measures.live
    both = np.concatenate(live.places(0.0, "shift"))
    image, text = live.places(settings.share / 100, settings.way)
    means = np.stack([image.mean(0), text.mean(0)])
    # The frame is that of the snapshot: the eye sees what moves.
    x, y = (axis_over("", [both[:, side]]) for side in (0, 1))
    tone = run_tone(index)
    label = "" if settings.share else f"gap {run.measures.at(settings.way, 0).gap:.3f}"
    return XYPlot(
        f"clouds-{index}",
        name,
        x,
        y,
        (Series("", "quiet", means[:, 0], means[:, 1]),),
        dots=(
            Marker("mean image", tone, float(means[0, 0]), float(means[0, 1]), 15, "ring", label=label),
            Marker("mean text", tone, float(means[1, 0]), float(means[1, 1]), 9, "diamond"),
        ),
        points=(Points("texts", "quiet", text, live.rows), Points("images", tone, image, live.rows)),
        equal=True,
        note=f"{len(image):,} of {run.measures.pairs:,} pairs, two principal axes",
        tone=tone,
    )


def _sizes(runs: Sequence[tuple[GapRun, int, str]]) -> XYPlot:
    # The course of a run that is shown at two steps is one.
    once = {run.run: (run, index) for run, index, _ in reversed(runs)}
    curves = tuple(
        Series(
            run.name, run_tone(index), np.array(run.measures.steps, float), np.array(run.measures.sizes), marked=True
        )
        for run, index in sorted(once.values(), key=lambda run_index: run_index[1])
    )
    dots = tuple(
        Marker("", run_tone(index), run.step, run.measures.sizes[run.measures.steps.index(run.step)], 11, "ring")
        for run, index, _ in runs
    )
    title = measured_name("Size of the gap over training", n=[run.measures.pairs for run, *_ in runs])
    x = axis_over("step", [c.x for c in curves], integer=True)
    y = axis_over("size of the gap", [c.y for c in curves], include=(0,))
    return XYPlot("sizes", title, x, y, curves, dots=dots)


def _recalls(runs: Sequence[tuple[GapRun, int, str]], settings: GapSettings) -> XYPlot:
    curves = []
    for run, index, name in runs:
        points = run.measures.curve(settings.way)
        x = np.array([100 * point.share for point in points])
        for direction, attribute in (("image to text", "image_to_text"), ("text to image", "text_to_image")):
            y = 100 * np.array([getattr(point, attribute) for point in points])
            curves.append(Series(f"{name}, {direction}", run_tone(index), x, y, dashed=direction == "text to image"))
    y_axis = axis_over("recall (%)", [curve.y for curve in curves], percent=True)
    question_counts = [run.asked(direction) for run, *_ in runs for direction in WAYS]
    title = recall_name("both", split=[run.split for run, *_ in runs], n=question_counts)
    return XYPlot("recall", title, CLOSED, y_axis, tuple(curves), cursor=settings.share)


def _losses(run: GapRun, index: int, name: str, settings: GapSettings) -> XYPlot:
    points = run.measures.curve(settings.way)
    x, y = np.array([100 * point.share for point in points]), np.array([point.loss for point in points])
    note = f"{run.measures.objective.words}, n = {run.n:,}"
    curve, title, y_axis = Series("loss", run_tone(index), x, y), f"Loss of {name}", axis_over("loss", [y])
    return XYPlot(f"loss-{index}", title, CLOSED, y_axis, (curve,), cursor=settings.share, note=note)


def _table(runs: Sequence[GapRun], names: list[str], method: Way, share: int) -> NumberTable:
    points = [run.measures.at(method, share) for run in runs]
    lines = tuple(
        NumberRow(_words(runs, name, label), hint, tuple(float(getattr(point, name)) for point in points), digits)
        for name, label, hint, digits in MEASURES
    )
    key, title = ("now", f"{share} % closed") if share else ("open", "As trained")
    return NumberTable(key, title, tuple(names), lines)


def _words(runs: Sequence[GapRun], name: str, label: str) -> str:
    direction = next((each for each in WAYS if each == name), None)
    if direction is None:
        return label
    return recall_name(direction, split=[run.split for run in runs], n=[run.asked(name) for run in runs])


def _notes(runs: Sequence[GapRun]) -> Iterator[str]:
    published = "; ".join(f"{p.what}: gap {p.gap:.4f}, loss {p.loss:.4f}" for p in PUBLISHED)
    yield f"For comparison, {published}. {SOURCE}"
    yield "The loss is that of n pairs as one batch, of which no two share a picture or caption, so it grows with n."
    if len({run.measures.objective.kind for run in runs}) > 1:
        yield "Losses of different objectives are different quantities: compare recall."
    if any(len(run.measures.sample.pairs) < run.measures.pairs for run in runs):
        yield f"At most {max(len(run.measures.sample.pairs) for run in runs):,} pairs are measured, drawn at random."


def values(data: PerRun[GapRun], settings: GapSettings) -> list[dict[str, Any]]:
    """Return facts, the gap over the steps, and the measures at every closed share."""
    rows = []
    for run in data.found:
        row = facts_of(run, "n") | {"pairs": run.measures.pairs}
        row["objective_words"] = run.measures.objective.words
        row |= {f"gap at step {at}": size for at, size in zip(run.measures.steps, run.measures.sizes, strict=True)}
        points = {point.share: point for point in run.measures.curve(settings.way)}
        points.setdefault(settings.share / 100, run.measures.at(settings.way, settings.share))
        for share, point in sorted(points.items()):
            measured = {name: getattr(point, name) for name, *_ in MEASURES if name != "n"}
            row |= {f"{name} at {share:g}": value for name, value in measured.items()}
        rows.append(row)
    return filled(rows)


CHART: Final = Chart(
    view="gap",
    label="Modality gap",
    question="The gap between image and text embeddings, and the effect of closing it.",
    cost="Grows with n for the gap itself; recall and loss are of at most 2,000 pairs (a setting), and with "
    "their square.",
    method=METHOD,
    settings=GapSettings,
    compute=per_run(gap),
    draw=draw,
    preview=True,
    values=values,
)
