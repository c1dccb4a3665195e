"""A map of models: every snapshot of every run is a point, near to those whose embeddings are alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.embedding_similarity import compare_spaces
from trainer.analysis.model_distances import apartness, plane_of, procrustes_distances
from trainer.analysis.number_text import signed
from trainer.analysis.progress import Progress
from trainer.analysis.units import UNIT_OF
from trainer.charts import ChartError
from trainer.charts.common_pairs import common_ids, rows_of_ids
from trainer.charts.marks import Marker, NumberRow, NumberTable, Panel, Series, XYPlot, axis_over, run_tone
from trainer.charts.representation_similarity import Space, common_units, snapshots_of
from trainer.charts.snapshot_label import shown
from trainer.charts.spec import Chart, Request
from trainer.config.fields import option
from trainer.metrics import data_label
from trainer.store import Workspace

METHOD: Final = """\
Each point is a snapshot: what a run's model made of the same held-out pairs at one step. Points are as near as their \
embeddings are alike: 1 - linear CKA (Kornblith et al. 2019), 1 - the mean Jaccard overlap of the nearest neighbors, \
or the Procrustes distance sqrt(1 - s^2) (what rotation, shift and scaling leave apart). Distances of images and texts \
are averaged. The plane is metric multidimensional scaling (SMACOF); its stress says how much of the distances it \
loses: below .1 it may be trusted, above .2 hardly. Lines join the steps of a run.

Outlier runs: the mean distance of a run to the others at its last step, and how far that is from the median in \
robust deviations (MAD); above 3.5 is usually called an outlier. It needs four runs, and says nothing about who is \
right."""
MEASURES: Final[dict[str, str]] = {
    "cka": "1 − CKA",
    "neighbors": "1 − shared neighbors",
    "procrustes": "Procrustes distance",
}
MOST_PAIRS: Final = 1_500
"""More pictures or captions are sampled: every two spaces are compared."""
MOST_SNAPSHOTS: Final = 80
ODD: Final = 3.5
MOST_NAMED: Final = 6


@dataclass(frozen=True)
class ModelMapSettings:
    """What is compared."""

    measure: Literal["cka", "neighbors", "procrustes"] = option(
        "cka", "Distance", "How two snapshots are compared.", named=MEASURES
    )
    modality: Literal["both", "image", "text"] = option(
        "both",
        "Modality",
        "Images, texts, or the mean of both.",
        named={"both": "Images and texts", "image": "Images", "text": "Texts"},
    )
    steps: int = option(4, "Steps", "Snapshots of each run at most, evenly spread.", low=1, high=20)
    k: int = option(10, "Neighbors", "Neighbors of each pair that are compared.", low=1, high=100)


class ModelMap(Struct, frozen=True):
    """The snapshots in the plane.

    Attributes:
        spaces: A snapshot each, run by run, by step.
        distances: Between every two snapshots.
        stress: Kruskal's stress-1 of the plane.
        last: Of each run, in their order: the place of its last snapshot among `spaces`.
        mean, unusual: Of each run at its last snapshot, as `apartness` returns them.
        n: Modality -> distinct pictures or captions compared.
        pairs: Pairs that all snapshots hold.
    """

    spaces: tuple[Space, ...]
    distances: Float[np.ndarray, "m m"]
    places: Float[np.ndarray, "m 2"]
    stress: float
    last: tuple[int, ...]
    mean: Float[np.ndarray, " r"]
    unusual: Float[np.ndarray, " r"]
    n: dict[str, int]
    pairs: int


def compute(workspace: Workspace, request: Request, settings: ModelMapSettings, progress: Progress) -> ModelMap:
    """Compare all snapshots and place them.

    Raises:
        ChartError: A run has no snapshot, they have too few pairs in common, or they are too many.
    """
    chosen = snapshots_of(workspace, request, settings.steps)
    if len(chosen) > MOST_SNAPSHOTS:
        raise ChartError(f"{len(chosen)} snapshots are too many; take fewer steps or runs ({MOST_SNAPSHOTS}).")
    ids = common_ids([snapshot.items for _, snapshot in chosen])
    if len(ids) < 3:
        raise ChartError(f"These runs have {len(ids)} pairs in common; at least 3 are compared.")
    units = common_units(chosen, ids)
    parts, n = [], {}
    for modality in ("image", "text") if settings.modality == "both" else (settings.modality,):
        arrays = [getattr(snapshot, modality) for _, snapshot in chosen]
        if any(array is None for array in arrays):
            continue
        drawn = ids[units.rows(UNIT_OF[modality], MOST_PAIRS)]
        if len(drawn) < 3:
            raise ChartError(f"These runs have {len(drawn)} distinct {modality}s in common; at least 3 are compared.")
        n[modality] = len(drawn)
        vectors = [
            np.asarray(array[rows_of_ids(snapshot.items.id, drawn)], np.float32)
            for array, (_, snapshot) in zip(arrays, chosen, strict=True)
        ]
        parts.append(_distances(vectors, settings, progress))
    if not parts:
        raise ChartError("Not every run has this tower: choose images or texts that all of them embed.")
    distances = np.mean(parts, axis=0)
    if not np.isfinite(distances).all():
        raise ChartError("A snapshot does not vary at all, so it resembles nothing. Leave that run or step out.")
    spaces = tuple(Space(modality=settings.modality, **shown(row, snapshot, units)) for row, snapshot in chosen)
    positions, stress = plane_of(distances)
    ends = {space.run: index for index, space in enumerate(spaces)}
    last = tuple(ends.values())
    mean, unusual = apartness(distances[np.ix_(last, last)])
    return ModelMap(spaces, distances, positions, stress, last, mean, unusual, n, len(ids))


def _distances(vectors: list[np.ndarray], settings: ModelMapSettings, progress: Progress) -> np.ndarray:
    if settings.measure == "procrustes":
        return procrustes_distances(vectors)
    alike = compare_spaces(vectors, min(settings.k, len(vectors[0]) - 1), 3, progress)[settings.measure]
    distances = np.clip(1.0 - alike, 0.0, None)
    np.fill_diagonal(distances, 0.0)
    return distances


def draw(data: ModelMap, settings: ModelMapSettings) -> Panel:
    """Draw a path per run, and the run that differs most."""
    first = data.spaces[0]
    sampled = f" of {data.pairs:,}, drawn at random (seed 0)" if MOST_PAIRS in data.n.values() else ""
    counts = dict.fromkeys(f"{n:,} {'pictures' if name == 'image' else 'captions'}" for name, n in data.n.items())
    question = f"{' and '.join(counts)}{sampled} of {data_label(first)}"
    notes = (f"{MEASURES[settings.measure]} on {question}.",)
    return Panel(title="Map of models", rows=((_plane(data),), (_apart(data, settings),)), notes=notes)


def _plane(data: ModelMap) -> XYPlot:
    curves, dots = [], []
    runs = list(dict.fromkeys(space.run for space in data.spaces))
    for index, run in enumerate(runs):
        of_run = [at for at, space in enumerate(data.spaces) if space.run == run]
        path, tone = data.places[of_run], run_tone(index)
        name = data.spaces[of_run[0]].name
        curves.append(Series(name if len(runs) <= 12 else "", tone, path[:, 0], path[:, 1], width=1.0, marked=True))
        end = data.spaces[of_run[-1]]
        odd = data.unusual[index] > ODD
        # A few can all be named; of many, those that are chosen or odd: names over names cannot be read.
        named = odd or index < 2 or len(runs) <= MOST_NAMED
        label = f"{name}, step {end.step:,}" + (", outlier" if odd else "")
        x, y = path[-1]
        dots.append(Marker("", tone, float(x), float(y), 9.0, "diamond", label if named else "", hint=label))
    half = 0.55 * float(max(np.ptp(data.places, axis=0).max(), 1e-9))
    middle = (data.places.max(0) + data.places.min(0)) / 2
    axes = [axis_over("", [np.array([at - half, at + half])], margin=0.05) for at in middle]
    return XYPlot(
        "map", "Snapshots: closer = more similar; diamond = last snapshot", axes[0], axes[1], tuple(curves),
        dots=tuple(dots), equal=True, note=f"stress {data.stress:.3f}",
    )  # fmt: skip


def _apart(data: ModelMap, settings: ModelMapSettings) -> NumberTable:
    order = np.argsort(-data.mean, kind="stable")
    lines = []
    for index in order.tolist():
        space = data.spaces[data.last[index]]
        unusual = float(data.unusual[index])
        says = "outlier" if unusual > ODD else "" if math.isfinite(unusual) else "–"
        values = (f"{data.mean[index]:.3f}", signed(unusual) if math.isfinite(unusual) else "–", says)
        label = f"{space.name}, step {space.step:,}"
        lines.append(NumberRow(label, "", values, strong=says == "outlier"))
    columns = (f"Mean {MEASURES[settings.measure]} to the others", "Robust deviations from the median", "")
    note = "" if len(lines) >= 4 else "Outliers need at least four runs."
    return NumberTable("apart", "Outlier runs", columns, tuple(lines), badges=False, note=note)


def values(data: ModelMap, _settings: ModelMapSettings) -> list[dict[str, Any]]:
    """Return one column per snapshot: its place and distances."""
    apart = {index: at for at, index in enumerate(data.last)}
    columns = []
    for index, space in enumerate(data.spaces):
        column: dict[str, Any] = {"run": space.run, "name": space.name, "step": space.step}
        column |= {"x": float(data.places[index, 0]), "y": float(data.places[index, 1]), "stress": data.stress}
        column |= {f"n_{name}": count for name, count in data.n.items()}
        column |= {"distances": data.distances[index].tolist()}
        if index in apart:
            unusual = float(data.unusual[apart[index]])
            column |= {"mean": float(data.mean[apart[index]]), "unusual": unusual if math.isfinite(unusual) else None}
        columns.append(column)
    return columns


CHART: Final = Chart(
    view="run_comparison",
    label="Map of models",
    question="Which runs have similar representations, and which are outliers?",
    cost="Grows with the square of the snapshots, at most 80; each is measured on at most 1,500 pictures or captions.",
    method=METHOD,
    settings=ModelMapSettings,
    compute=compute,
    draw=draw,
    values=values,
)
