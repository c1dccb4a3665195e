"""Pairs along two axes that texts define, in the embedding space of each run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.leave_one_word_out import along, text_axis
from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.charts import ChartError
from trainer.charts.marks import Panel, Points, XYPlot, axis_over, run_tone
from trainer.charts.measure import facts_of
from trainer.charts.opened_snapshot import open_target
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.spec import Chart, PerRun, Records, Request, Target, per_run
from trainer.config.fields import option
from trainer.store import Workspace

METHOD: Final = """\
An axis is the direction from the mean embedding of the texts after “ - ” to that of the texts before it, as a unit \
vector; several texts are separated by “;”. Without “ - ” it is the direction of the texts. Each run's model embeds \
the texts. A point is the inner product of an image or a text with both directions. Ranges are not comparable across \
runs."""

MOST_CLASSES: Final = 12
"""More classes than these share one color."""
MOST_POINTS: Final = 5_000
"""Pairs drawn of a run; a fixed random sample of more. Records hold all."""


@dataclass(frozen=True)
class AxesSettings:
    """The settings of the chart."""

    x: str = option("a red circle - a blue circle", "x axis", "Texts, then “ - ” and opposite texts.", control=False)
    y: str = option("a circle - a star", "y axis", "Texts, then “ - ” and opposite texts.", control=False)


class AxisText(Struct, frozen=True):
    """An axis from the texts `minus` to the texts `plus`; without `minus` it is the direction of `plus`."""

    plus: tuple[str, ...]
    minus: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """An axis label: `a red ring − a blue ring`."""
        return " + ".join(self.plus) + (f" − {' + '.join(self.minus)}" if self.minus else "")

    @property
    def texts(self) -> tuple[str, ...]:
        """All of its sentences."""
        return (*self.plus, *self.minus)

    @classmethod
    def parse(cls, text: str) -> AxisText:
        """Parse `a red ring; a red disc - a blue ring`: sentences separated by `;`, negative ones after ` - `.

        Raises:
            ChartError: There is no positive sentence.
        """
        plus, _, minus = text.replace(" − ", " - ").partition(" - ")
        sides = [tuple(s.strip() for s in side.split(";") if s.strip()) for side in (plus, minus)]
        if not sides[0]:
            raise ChartError("An axis needs a sentence, and after “ - ” the one it leads away from.")
        return cls(*sides)


@dataclass(frozen=True, kw_only=True)
class AxesRun(SnapshotLabel):
    """One run's pairs along both axes: inner products with unit directions, images and texts (n x 2)."""

    n: int
    images: Float[np.ndarray, "n 2"] | None
    texts: Float[np.ndarray, "n 2"] | None
    labels: tuple[str, ...]

    @property
    def parts(self) -> dict[str, Float[np.ndarray, "n 2"]]:
        """Modality -> points, of the modalities that there are."""
        both = {"image": self.images, "text": self.texts}
        return {name: points for name, points in both.items() if points is not None}

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes if there are few enough for distinct colors; else none."""
        names = tuple(sorted({*self.labels}))
        return names if 1 < len(names) <= MOST_CLASSES else ()


def sentences(_workspace: Workspace, _request: Request, settings: AxesSettings) -> tuple[str, ...]:
    """Return the texts of the x axis, then those of the y axis.

    Raises:
        ChartError: An axis has no positive sentence.
    """
    return (*AxisText.parse(settings.x).texts, *AxisText.parse(settings.y).texts)


def axes(
    workspace: Workspace, target: Target, request: Request, settings: AxesSettings, _progress: Progress
) -> AxesRun:
    """Return the pairs of one target along both axes.

    Raises:
        ChartError: There is no such snapshot, its model could not embed the texts, or both sides of an axis are equal.
    """
    vectors = request.vectors_of(target)
    opened = open_target(workspace, target, request)
    row, chosen, snapshot = opened.run, opened.row, opened.snapshot
    directions, start = [], 0
    for axis in (AxisText.parse(settings.x), AxisText.parse(settings.y)):
        middle, end = start + len(axis.plus), start + len(axis.texts)
        directions.append(text_axis(vectors[start:middle], vectors[middle:end]))
        start = end
        if not directions[-1].any():
            raise ChartError(f"To run {row.short_name} both sides of “{axis.words}” are the same. Choose other words.")
    positions = [
        None if rows is None else np.stack([along(rows, d) for d in directions], axis=1)
        for rows in (snapshot.image, snapshot.text)
    ]
    label = tuple(snapshot.items.label)
    return AxesRun(**shown(row, chosen), n=snapshot.n, images=positions[0], texts=positions[1], labels=label)


def draw(data: PerRun[AxesRun], settings: AxesSettings) -> Panel:
    """Draw one scatter plot per run: images as discs, texts as diamonds, colored by class if there are few."""
    x, y = AxisText.parse(settings.x), AxisText.parse(settings.y)
    plots = []
    for run, index, name in data.named:
        rows = at_most(np.arange(run.n), MOST_POINTS)
        sides = [
            axis_over(axis.words, [points[:, at] for points in run.parts.values()]) for at, axis in enumerate((x, y))
        ]
        of = f"{len(rows):,} of {run.n:,} pairs" if len(rows) < run.n else f"{run.n:,} pairs"
        drawn: dict[str, Any] = {"points": tuple(_clouds(run, index, rows)), "note": of, "tone": run_tone(index)}
        plots.append(XYPlot(f"axes-{index}", name, sides[0], sides[1], brushes="xy", **drawn))
    notes = ("Inner products with unit directions. Images are discs, texts are diamonds.",)
    return Panel(
        title="Axes of texts", rows=tuple(tuple(plots[at : at + 2]) for at in range(0, len(plots), 2)), notes=notes
    )


def _clouds(run: AxesRun, index: int, rows: Int[np.ndarray, " k"]) -> Iterator[Points]:
    """Yield the points of each class and modality; only those of the first modality are in the legend."""
    label = np.array(run.labels)[rows]
    for number, (modality, points) in enumerate(run.parts.items()):
        for at, name in enumerate(run.classes or ("",)):
            of_class = rows[label == name] if run.classes else rows
            legend = name if number == 0 else ""
            cloud = Points(legend, run_tone(index), points[of_class], of_class, 6.0, classes=run.classes, at=at)
            # A diamond covers less than a disc of the same size.
            yield cloud if modality == "image" else replace(cloud, mark="diamond", size=8.0)


def pairs_inside(data: PerRun[AxesRun], key: str, box: tuple[float, float, float, float]) -> Int[np.ndarray, " k"]:
    """Return the pairs with a point in a rectangle (x from, x to, y from, y to) of the plot with this key."""
    run = data.found[data.places.index(int(key.rpartition("-")[2]))]
    inside = np.zeros(run.n, dtype=bool)
    for points in run.parts.values():
        x, y = points.T
        inside |= (x >= box[0]) & (x <= box[1]) & (y >= box[2]) & (y <= box[3])
    return np.flatnonzero(inside)


def values(data: PerRun[AxesRun], settings: AxesSettings) -> list[dict[str, Any]]:
    """Return facts, and the mean of each modality along each axis."""
    return [
        facts_of(run, "n")
        | {"x": settings.x, "y": settings.y}
        | {
            f"mean_{name}_{side}": float(points[:, at].mean())
            for name, points in run.parts.items()
            for at, side in enumerate("xy")
        }
        for run in data.found
    ]


def records(data: PerRun[AxesRun], _settings: AxesSettings) -> Records:
    """Return both coordinates of every image and text."""
    facts = ("run", "name", "step", "dataset", "split")
    return (*facts, "pair", "modality", "label", "x", "y"), [
        (*(getattr(run, name) for name in facts), pair, modality, run.labels[pair], *point)
        for run in data.found
        for modality, points in run.parts.items()
        for pair, point in enumerate(points.tolist())
    ]


CHART: Final = Chart(
    view="similarity",
    label="Axes",
    question="Where do pairs lie along axes that texts define?",
    cost="Grows with n; 5,000 pairs are drawn as points.",
    method=METHOD,
    settings=AxesSettings,
    compute=per_run(axes),
    draw=draw,
    values=values,
    records=records,
    sentences=sentences,
)
