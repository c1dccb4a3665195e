"""Small multiples: the map, the cosines or the spectrum of up to twelve runs, in plots with the same axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.procrustes import procrustes
from trainer.analysis.progress import Progress
from trainer.analysis.spectra import covariance_spectrum, effective_rank, shares_of
from trainer.analysis.units import Units
from trainer.charts import ChartError
from trainer.charts.common_pairs import common_ids, rows_of_ids
from trainer.charts.marks import Axis, Panel, Points, Series, XYPlot, axis_over
from trainer.charts.opened_snapshot import open_targets
from trainer.charts.snapshot_label import SnapshotLabel, labels
from trainer.charts.spec import Chart, Request
from trainer.config.fields import option
from trainer.store import Workspace

METHOD: Final = """\
One plot per run, all of the same pairs and with the same axes.

Map: the two main directions (PCA) of images and texts together, each run's rotated to the first one's by Procrustes, \
so that runs that learned the same look the same; the share of the variance that the plane holds is written next to it.

Cosines: of each image with its own caption (matched) and with 20 distinct captions that are not its own \
(unmatched), as shares of all. Each picture, and each caption, counts once.

Spectrum: share of the variance of the images along each direction, on a logarithmic axis; the effective rank is \
written next to it."""
MOST_RUNS: Final = 12
BESIDE: Final = 3
MOST_POINTS: Final = 500
MOST_PICTURES: Final = 20_000
"""Of more, so many are drawn with all their captions: rows are turned in double precision."""
OTHERS: Final = 20
BINS: Final = np.linspace(-1.0, 1.0, 61)
LEAST_SHARE: Final = 1e-6
KINDS: Final[dict[str, str]] = {"map": "Map", "cosines": "Cosines", "spectrum": "Spectrum"}


@dataclass(frozen=True)
class MultiplesSettings:
    """What each plot shows."""

    shows: Literal["map", "cosines", "spectrum"] = option(
        "map", "Show", "What each plot shows.", named=KINDS, redraws=True
    )


@dataclass(frozen=True, kw_only=True)
class Multiple(SnapshotLabel):
    """One run.

    Attributes:
        images, texts: Places of the drawn pairs in the plane.
        held: Share of the variance in the plane.
        matched, unmatched: Shares of cosines in `BINS`.
        spectrum: Shares of the images' variance, largest first.
    """

    images: Float[np.ndarray, "m 2"]
    texts: Float[np.ndarray, "m 2"]
    held: float
    matched: Float[np.ndarray, " bins"]
    unmatched: Float[np.ndarray, " bins"]
    spectrum: Float[np.ndarray, " d"]
    rank: float


class SmallMultiples(Struct, frozen=True):
    """The runs in their order, the number of pairs they are measured on, and of those that all of them hold."""

    runs: tuple[Multiple, ...]
    n: int
    whole: int


def compute(workspace: Workspace, request: Request, _settings: MultiplesSettings, progress: Progress) -> SmallMultiples:
    """Measure every run on the pairs that all of them hold.

    Raises:
        ChartError: There are more than twelve runs, one has no such snapshot, or an objective has one tower only.
    """
    targets = request.targets
    if len(targets) > MOST_RUNS:
        raise ChartError(f"{len(targets)} runs do not fit; choose at most {MOST_RUNS}.")
    chosen = open_targets(workspace, request)
    sides = [opened.both("small multiples are of") for opened in chosen]
    ids = common_ids([opened.snapshot.items for opened in chosen])
    if len(ids) < 3:
        raise ChartError(f"These runs have {len(ids)} pairs in common; at least 3 are needed.")
    every = chosen[0].units.taken(rows_of_ids(chosen[0].snapshot.items.id, ids))
    measured = every.whole("picture", MOST_PICTURES)
    ids, units = ids[measured], every.taken(measured)
    pictures, pairs = units.rows("picture"), units.rows("pair")
    drawn = units.rows("pair", MOST_POINTS)
    made: list[Multiple] = []
    onto: np.ndarray | None = None
    for index, (opened, both) in enumerate(zip(chosen, sides, strict=True)):
        progress(index / len(chosen), opened.run.short_name)
        rows = rows_of_ids(opened.snapshot.items.id, ids)
        image, text = (np.asarray(side[rows], np.float64) for side in both)
        plane, held = _plane(image, text, units)
        points = np.concatenate([plane[: len(ids)][drawn], plane[len(ids) :][drawn]])
        if onto is None:
            onto = points
        else:
            points = procrustes(points, onto).apply(points)
        spectrum = covariance_spectrum(image[pictures])
        made.append(
            Multiple(
                images=points[: len(drawn)],
                texts=points[len(drawn) :],
                held=held,
                matched=_shares((image[pairs] * text[pairs]).sum(1)),
                unmatched=_shares(unmatched_cosines(image, text, units)),
                spectrum=np.sort(shares_of(spectrum))[::-1],
                rank=effective_rank(spectrum),
                **(opened.label | {"counted": units.counted}),
            )
        )
    return SmallMultiples(tuple(made), len(ids), len(every))


def unmatched_cosines(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], units: Units
) -> Float[np.ndarray, " m"]:
    """Return the cosines of each distinct picture with the next `OTHERS` distinct captions, without right answers."""
    pictures, captions = units.rows("picture"), units.rows("caption")
    start, cosines = units.caption[pictures], []
    for by in range(1, min(OTHERS, len(captions) - 1) + 1):
        other = captions[(start + by) % len(captions)]
        cosines.append((image[pictures] * text[other]).sum(1)[~units.right_pairs(pictures, other)])
    return np.concatenate(cosines) if cosines else np.zeros(0)


def _shares(cosines: Float[np.ndarray, " m"]) -> Float[np.ndarray, " bins"]:
    counts, _ = np.histogram(np.clip(cosines, -1.0, 1.0), BINS)
    return counts / max(len(cosines), 1)


def _plane(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], units: Units
) -> tuple[Float[np.ndarray, "2n 2"], float]:
    """Return the places of all rows on the main directions of the distinct pictures and captions."""
    distinct = np.concatenate([image[units.rows("picture")], text[units.rows("caption")]])
    centered = np.concatenate([image, text]) - distinct.mean(0)
    deviations = distinct - distinct.mean(0)
    values, directions = np.linalg.eigh(deviations.T @ deviations)
    total = float(values.sum())
    return centered @ directions[:, ::-1][:, :2], float(values[-2:].sum()) / total if total > 0 else 0.0


def draw(data: SmallMultiples, settings: MultiplesSettings) -> Panel:
    """Draw one plot per run, three in a row."""
    plots = {"map": _maps, "cosines": _cosines, "spectrum": _spectra}[settings.shows](data)
    rows = tuple(tuple(plots[at : at + BESIDE]) for at in range(0, len(plots), BESIDE))
    sampled = f" of {data.whole:,}" * (data.n < data.whole)
    note = f"The same {data.n:,}{sampled} pairs of {data.runs[0].dataset}, {data.runs[0].split}, in every run."
    drawn = min(data.n, MOST_POINTS)
    if settings.shows == "map" and drawn < data.n:
        note += f" {drawn} of them are drawn."
    return Panel(title=f"{KINDS[settings.shows]} of {len(data.runs)} runs", rows=rows, notes=(note,))


def _maps(data: SmallMultiples) -> list[XYPlot]:
    every = np.concatenate([side for run in data.runs for side in (run.images, run.texts)])
    x, y = (axis_over("", [every[:, at]]) for at in (0, 1))
    clouds = [(Points("images", "first", run.images), Points("texts", "second", run.texts, mark="diamond"))
              for run in data.runs]  # fmt: skip
    notes = [f"{100 * run.held:.0f} % of the variance" for run in data.runs]
    return [replace(plot, points=cloud, equal=True) for plot, cloud in zip(_plots(data, x, y, notes), clouds)]


def _cosines(data: SmallMultiples) -> list[XYPlot]:
    shares = [100 * side for run in data.runs for side in (run.matched, run.unmatched)]
    used = np.flatnonzero(np.sum(shares, axis=0) > 0)
    low, high = (BINS[used[0]], BINS[used[-1] + 1]) if len(used) else (-1.0, 1.0)
    x, y = Axis("cosine", float(low), float(high)), axis_over("%", shares, include=(0.0,), percent=True)
    plots = []
    for plot, run in zip(_plots(data, x, y), data.runs, strict=True):
        unmatched = Series("unmatched", "second", BINS, 100 * run.unmatched, stepped=True)
        matched = Series("matched", "first", BINS, 100 * run.matched, stepped=True)
        plots.append(replace(plot, curves=(unmatched, matched)))
    return plots


def _spectra(data: SmallMultiples) -> list[XYPlot]:
    longest = max(len(run.spectrum) for run in data.runs)
    x = Axis("direction", 1.0, float(max(longest, 2)))
    y = Axis("share of variance", LEAST_SHARE, 1.0, log=True)
    curves = [
        Series("images", "first", np.arange(1, len(run.spectrum) + 1.0), np.maximum(run.spectrum, LEAST_SHARE))
        for run in data.runs
    ]
    notes = [f"effective rank {run.rank:.1f}" for run in data.runs]
    return [replace(plot, curves=(curve,)) for plot, curve in zip(_plots(data, x, y, notes), curves, strict=True)]


def _plots(data: SmallMultiples, x: Axis, y: Axis, notes: Sequence[str] = ()) -> list[XYPlot]:
    """Return an empty plot per run, all with these axes."""
    return [
        XYPlot(f"run-{at}", title, x, y, note=notes[at] if notes else "") for at, title in enumerate(labels(data.runs))
    ]


def values(data: SmallMultiples, _settings: MultiplesSettings) -> list[dict[str, Any]]:
    """Return one column per run."""
    middles = (BINS[:-1] + BINS[1:]) / 2
    return [
        {"run": run.run, "name": run.name, "step": run.step, "n": data.n, "effective_rank": run.rank}
        | {"plane_share": run.held, "matched_mean_bin": float(middles @ run.matched)}
        | {"unmatched_mean_bin": float(middles @ run.unmatched), "spectrum": run.spectrum.tolist()}
        for run in data.runs
    ]


CHART: Final = Chart(
    view="run_comparison",
    label="Small multiples",
    question="How do the maps, cosines or spectra of up to twelve runs differ?",
    cost="Grows with the runs, at most 12; each is measured on the pairs of at most 20,000 pictures, 500 are points.",
    method=METHOD,
    settings=MultiplesSettings,
    compute=compute,
    draw=draw,
    values=values,
)
