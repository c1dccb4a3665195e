"""Hubness: items that are neighbors of many queries, and recall with and without CSLS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from jaxtyping import Int
from msgspec import Struct

from trainer.analysis.hubness import CslsVectors, csls_queries, k_occurrence, mean_of_nearest, skewness
from trainer.analysis.progress import Progress
from trainer.analysis.retrieval import ranks, recall_at
from trainer.analysis.sampling import at_most, most_asking
from trainer.charts.marks import Axis, NumberTable, Panel, Rug, Series, XYPlot, axis_over, run_tone
from trainer.charts.matching import matching_of
from trainer.charts.measure import Measure, facts_of
from trainer.charts.opened_snapshot import open_target
from trainer.charts.snapshot_label import SnapshotLabel
from trainer.charts.spec import Chart, PerRun, Records, Request, Target, per_run
from trainer.config.fields import option
from trainer.metrics import data_label, recall_name
from trainer.store import Workspace

METHOD: Final = """\
k-occurrence: how many texts find an image among their first k hits. A few images that are found by nearly \
everything are hubs, and an image that no text finds cannot be retrieved at all; the skewness of the counts measures \
it (Radovanović et al., 2010).

CSLS: the cosine minus half the mean cosine of the hit to its 10 nearest captions, which reduces hubness (Conneau et \
al., 2018).

Texts and images are distinct: identical captions count as one query, identical images as one item. Recall is of \
texts that find an image of their own among the first 1, 5 or 10 of all distinct images."""

MOST_BARS: Final = 60


@dataclass(frozen=True)
class HubSettings:
    """The settings of the chart."""

    k: int = option(
        10, "Hits per text", "An image is found by a text if it is among its first k hits.", low=1, high=100
    )
    csls: bool = option(True, "CSLS", "Show the counts by CSLS as an outline.", redraws=True)
    exact: bool = option(False, "All texts", "Search by every text, not by a sample: the cost grows with n squared.")


class HitCounts(Struct, frozen=True):
    """How often a search finds each image."""

    occurrences: Int[np.ndarray, " i"]  # How many texts find each distinct image among their first k.
    recall: dict[int, float]  # k -> share of texts that find their own image among the first k.
    skewness: float  # Of `occurrences`.

    @property
    def greatest(self) -> int:
        """How many texts find the most frequent hit."""
        return int(self.occurrences.max(initial=0))

    @property
    def never(self) -> int:
        """How many images no text finds."""
        return int((self.occurrences == 0).sum())


@dataclass(frozen=True, kw_only=True)
class Hubness(SnapshotLabel):
    """One run's images as hits of its texts."""

    k: int  # Hits of each text.
    n: int  # Distinct texts that ask.
    texts: int  # Distinct texts of the snapshot; more than `n` where they were sampled.
    images: int  # Distinct images of the snapshot.
    pairs: int
    rows: Int[np.ndarray, " i"]  # Of each distinct image the first pair that has it.
    image_of: Int[np.ndarray, " n"]  # Of each pair its distinct image.
    cosine: HitCounts  # When searched by the cosine.
    csls: HitCounts


def hubness(
    workspace: Workspace, target: Target, request: Request, settings: HubSettings, progress: Progress
) -> Hubness:
    """Return the k-occurrence of a snapshot's images among its texts' hits, with and without CSLS.

    Raises:
        ChartError: The run lacks such a snapshot, or it has no texts or no images.
    """
    opened = open_target(workspace, target, request)
    snapshot, (image, text) = opened.snapshot, opened.both("hubs of a search need")
    matching = matching_of(snapshot)
    drawn = matching.texts.rows
    if not settings.exact:
        drawn = at_most(drawn, most_asking(len(matching.images)))
    image, text = matching.images.gallery(image), text[drawn]
    offsets = mean_of_nearest(image, text, settings.k, _part(progress, 0, "scale of every image"))
    wide, asks = CslsVectors(image, offsets), csls_queries(text)
    # Both sides are distinct already: questions are numbered by the captions, the images in their own order.
    answers = replace(matching.images, question=matching.images.question[drawn], rows=np.arange(len(image)))
    searches: tuple[tuple[Any, Any], ...] = ((text, image), (asks, wide))
    counts = []
    for number, (queries, stored) in enumerate(searches):
        hits = k_occurrence(queries, stored, settings.k, _part(progress, 1 + 2 * number, "who finds whom"))
        ranking = ranks(queries, stored, answers, progress=_part(progress, 2 + 2 * number, "ranking"))
        counts.append(HitCounts(hits, {at: recall_at(ranking, at) for at in (1, 5, 10)}, skewness(hits)))
    return Hubness(
        **opened.label,
        k=min(settings.k, len(image)),
        n=len(drawn),
        texts=len(matching.texts),
        images=len(image),
        pairs=snapshot.n,
        rows=matching.images.rows,
        image_of=matching.images.place,
        cosine=counts[0],
        csls=counts[1],
    )


def draw(data: PerRun[Hubness], settings: HubSettings) -> Panel:
    """Draw one histogram per run on a common axis, and recall with and without CSLS."""
    top = max(1, *(counts.greatest for run in data.found for counts in (run.cosine, run.csls)))
    edges = np.linspace(-0.5, top + 0.5, min(top + 2, MOST_BARS))
    parts = [_series(run, edges, index, settings) for run, index in zip(data.found, data.places, strict=True)]
    x = Axis(f"texts that find an image (first {max(run.k for run in data.found)})", -0.5, top + 0.5)
    y = axis_over("share of images (%)", [curve.y for part in parts for curve in part], include=(0,), percent=True)
    plots = []
    for (run, index, name), part in zip(data.named, parts, strict=True):
        rug = Rug(np.arange(len(run.image_of)), run.cosine.occurrences[run.image_of].astype(np.float64))
        key, tone, note = f"hubs-{index}", run_tone(index), _asked(run)
        plots.append(XYPlot(key, name, x, y, part, note=note, tone=tone, brushes="x", rug=rug))
    notes = ("k-occurrence: Radovanović et al., 2010. CSLS: Conneau et al., 2018.",)
    return Panel(title="Hubs", rows=(tuple(plots), (_table(data),)), notes=notes)


def _series(run: Hubness, edges: np.ndarray, index: int, settings: HubSettings) -> tuple[Series, ...]:
    shares = [100 * np.histogram(c, edges)[0] / run.images for c in (run.cosine.occurrences, run.csls.occurrences)]
    cosine = Series("cosine", run_tone(index), edges, shares[0], stepped=True, filled=True, width=1)
    return (cosine, Series("CSLS", "quiet", edges, shares[1], stepped=True)) if settings.csls else (cosine,)


def _recall(data: PerRun[Hubness], k: int) -> Measure[HitCounts]:
    name = recall_name("text_to_image", k, split=[run.split for run in data.found], n=[run.n for run in data.found])
    return Measure(name, f"Texts that find an image of their own among the first {k}.", lambda counts: counts.recall[k])


def _table(data: PerRun[Hubness]) -> NumberTable:
    few = "Of how often an image is found: large where few images are hubs."
    measures = (
        Measure[HitCounts]("Skewness", few, lambda counts: counts.skewness, 2),
        Measure[HitCounts]("Largest hub", "Number of texts that find the most frequent hit.", lambda c: c.greatest, 0),
        Measure[HitCounts](
            "Never found (%)", "Images that no text finds.", lambda c: 100 * (c.occurrences == 0).mean(), 1
        ),
        *(_recall(data, k) for k in (1, 5, 10)),
    )
    searches = {"cosine": [run.cosine for run in data.found], "CSLS": [run.csls for run in data.found]}
    lines = tuple(
        replace(measure.row(counts), words=f"{measure.words}, {search}")
        for measure in measures
        for search, counts in searches.items()
    )
    return NumberTable("numbers", "Text to image", tuple(data.labels), lines)


def _asked(run: Hubness) -> str:
    sampled = f" of {run.texts:,}" if run.n < run.texts else ""
    return f"{data_label(run)}, {run.n:,}{sampled} distinct texts, {run.images:,} images"


def values(data: PerRun[Hubness], _settings: HubSettings) -> list[dict[str, Any]]:
    """Return facts, skewness, the largest hub, images without hits, and recall, each for cosine and CSLS."""
    return [_values(run) for run in data.found]


def _values(run: Hubness) -> dict[str, Any]:
    facts = facts_of(run, "k", "n", "texts", "images", "pairs")
    for end, counts in (("", run.cosine), ("_csls", run.csls)):
        facts |= {f"skewness{end}": counts.skewness, f"greatest_hub{end}": counts.greatest}
        facts |= {f"never_found{end}": counts.never}
        facts |= {f"recall_at_{k}{end}": share for k, share in counts.recall.items()}
    return facts


def records(data: PerRun[Hubness], _settings: HubSettings) -> Records:
    """Return one row per image: its number of hits, for cosine and CSLS."""
    header = ("run", "name", "step", "dataset", "split", "k", "n", "row", "occurrence", "occurrence_csls")
    return header, [
        (c.run, c.name, c.step, c.dataset, c.split, c.k, c.n, row, a, b)
        for c in data.found
        for row, a, b in zip(
            *(part.tolist() for part in (c.rows, c.cosine.occurrences, c.csls.occurrences)), strict=True
        )
    ]


def _part(progress: Progress, start: int, note: str) -> Progress:
    return lambda share, _note: progress((start + share) / 5, note)


CHART: Final = Chart(
    view="search",
    label="Hubs",
    question="Which images are hits of too many texts?",
    cost="Grows with n: texts that are drawn ask all images, 20,000 up to 20,000, 4,000 of 100,000, 1,000 from 400,000 "
    "on. All texts: with n squared.",
    method=METHOD,
    settings=HubSettings,
    compute=per_run(hubness),
    draw=draw,
    values=values,
    records=records,
)
