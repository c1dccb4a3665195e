"""A map of an embedding space: images and texts of one snapshot as points in the plane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.pair_ranks import agreement
from trainer.analysis.progress import Progress, silent
from trainer.analysis.projection import percent, total_variance
from trainer.charts import BOTH, ChartError, objective_label
from trainer.charts.colored_points import ColoredPoints
from trainer.charts.common_pairs import same_pairs
from trainer.charts.marks import FEW_LIT, PairMap, Panel, run_tone
from trainer.charts.metadata_columns import MetadataColumn, column, is_scale
from trainer.charts.opened_snapshot import open_target
from trainer.charts.pair_changes import changes
from trainer.charts.pair_colors import (
    AGREEMENT,
    CHANGED,
    COMPUTED,
    MODALITY,
    ColoredMap,
    PairNumbers,
    changed_columns,
    color_notes,
    compares,
    pair_colors,
    pair_numbers,
    words,
)
from trainer.charts.point_placement import few_points
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.spec import Request
from trainer.metrics import data_label
from trainer.store import Workspace
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot

_BUILT_IN: Final = ("label", "split", "caption")
_MOST_CLASSES: Final = 256
_CAUTION: Final = "; distances between clusters are not meaningful"
_METHODS: Final = {
    "pca": ("First two principal components of images and texts together", ""),
    "umap": ("UMAP of images and texts together", _CAUTION),
    "umap-learn": ("UMAP of images and texts together", _CAUTION),
    "tsne": ("t-SNE of images and texts together", _CAUTION),
    "pacmap": ("PaCMAP of images and texts together", _CAUTION),
    "file": ("Coordinates of a file, shown as they are", ""),
}


@dataclass(frozen=True, kw_only=True)
class MapChart(SnapshotLabel):
    """Point i of `images` and point i of `texts` are pair i."""

    n: int
    sampled: bool  # The snapshot holds a sample of its split.
    method: str  # How the points were placed: `pca` or `umap`.
    parameters: str  # What else decided their places, for the note under the map.
    images: Float[np.ndarray, "n 2"] | None
    texts: Float[np.ndarray, "n 2"] | None
    captions: tuple[str, ...]
    paths: tuple[str, ...]
    colors: ColoredPoints  # What the pairs are colored by, with one meaning in all maps of a figure.
    # Azimuth and elevation, in degrees, from which a cloud in space is seen; None for a map in the plane.
    side: tuple[float, float] | None = None
    near: Float[np.ndarray, " m"] | None = None  # How near each point is to the eye, images first; None in the plane.
    lit: Bool[np.ndarray, " n"] | None = None  # Pairs in color while the others are gray; None: all.
    lit_note: str = ""  # Why only some are, in words.
    # Of the variance of all points that each axis shows, in [0, 1]; None where the axes are no components.
    shares: tuple[float, float] | None = None
    neighborhood: int = 0  # As of `PointPlacement`.

    @property
    def lit_n(self) -> int:
        """The number of pairs in color."""
        return self.n if self.lit is None else int(self.lit.sum())


@dataclass(frozen=True)
class Placed:
    """A snapshot and the positions of its points: first its images, then its texts."""

    folder: Path  # Folder of the snapshot, inside the run's folder.
    # Places of all points, as `trainer.projection.layout` returns them, or as seen from `side`.
    layout: Float[np.ndarray, "m 2"]
    method: str = "pca"  # How the points were placed.
    parameters: str = ""  # What else decided their places, for people.
    side: tuple[float, float] | None = None  # As in `MapChart`.
    near: Float[np.ndarray, " m"] | None = None  # As in `MapChart`.
    neighborhood: int = 0  # As in `MapChart`.


def embedding_maps(
    workspace: Workspace,
    placed: Sequence[Placed],
    *,
    color: str = MODALITY,
    isolate: Sequence[str] = (),
    pairs: Int[np.ndarray, " k"] | None = None,
    progress: Progress = silent,
) -> list[MapChart]:
    """Return the maps of some snapshots with common colors.

    Args:
        placed: The snapshots and their points; of the first two, A and B, `agreement` tells.
        color: `modality`, `agreement`, `rank`, `cosine`, what changed (`CHANGED`), or a column of the items (see
            `color_columns`).
        isolate: Classes of the coloring that stay in color; none: all.
        pairs: Selected pairs, which alone stay in color where maps show the same pairs as the first; None: all.
        progress: Called with the share done and a note while ranks are computed.

    Raises:
        ChartError: A layout is of another snapshot, there is no such column, or the runs cannot be compared.
    """
    snapshots = [read_snapshot(each.folder) for each in placed]
    if color in CHANGED:
        colored = _changed(color, workspace, placed, snapshots, progress)
    elif color in COMPUTED:
        colored = _computed(color, snapshots, progress)
    else:
        colored = pair_colors(color, [ColoredMap(s.n, _columns(s.items, color)) for s in snapshots])
    charts = [
        _chart(workspace, each, snapshot, colors)
        for each, snapshot, colors in zip(placed, snapshots, colored, strict=True)
    ]
    charts = [_isolated(chart, isolate) for chart in charts] if isolate else charts
    if pairs is None:
        return charts
    return [
        _selected(chart, pairs) if same_pairs(snapshot.items, snapshots[0].items) else chart
        for chart, snapshot in zip(charts, snapshots, strict=True)
    ]


def draw(charts: Sequence[MapChart]) -> Panel:
    """Return the maps of one or several runs, two in a row, with common notes."""
    maps = [
        _mark(chart, index, bar=chart.colors.own_scale or index == len(charts) - 1)
        for index, chart in enumerate(charts)
    ]
    rows = tuple(tuple(maps[at : at + 2]) for at in range(0, len(maps), 2))
    return Panel(title="Embedding maps", rows=rows, notes=(_note(charts),), letters=compares(charts[0].colors))


def _mark(chart: MapChart, index: int, *, bar: bool) -> PairMap:
    names = [""] * 2
    if chart.method == "pca" and chart.side is None:
        of_variance = [f", {percent(share)} of variance" for share in chart.shares or ()] or [""] * 2
        names = [f"PC {number}{share}" for number, share in enumerate(of_variance, start=1)]
    objective = objective_label(chart.objective)
    trained = "" if chart.name.startswith(objective) else f"{objective}, "
    detail = f"{trained}step {chart.step:,}, {data_label(chart)}"
    count = f"n = {chart.n:,} pairs{' (sampled)' if chart.sampled else ''}"
    drawn = {name: getattr(chart, name) for name in ("images", "texts", "colors", "lit", "near")}
    return PairMap(
        f"map-{index}",
        chart.name,
        tone=run_tone(index),
        notes=(detail, count),
        x_label=names[0],
        y_label=names[1],
        bar=bar,
        bar_label=words(chart.colors.by),
        **drawn,
    )


def _note(charts: Sequence[MapChart]) -> str:
    first = charts[0]
    what, caution = _METHODS.get(first.method, (first.method, ""))
    if first.side is not None:
        what = "First three principal components of images and texts together, paler where farther away"
    notes = [what + (f" ({first.parameters})" if first.parameters else "") + caution]
    points = min(sum(part is not None for part in (chart.images, chart.texts)) * chart.n for chart in charts)
    if few := few_points(first.method, first.neighborhood, points):
        notes.append(few)
    if len(charts) > 1 and first.side is None and first.method != "file":
        notes.append("Maps of the same pairs are aligned to the first")
    highlighted = next((chart for chart in charts if chart.lit is not None), None)
    if highlighted is not None:
        lit, look = highlighted.lit_note, "pale" if highlighted.lit_n <= FEW_LIT else "gray"
        notes.append(f"{lit[0].upper()}{lit[1:]}, n = {highlighted.lit_n:,}; the others {look}")
    missing = "; gray where it is missing" if any(chart.colors.has_missing for chart in charts) else ""
    notes += color_notes(first.colors, missing)
    return ". ".join(notes) + "."


def point_rows(charts: Sequence[MapChart]) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
    """Return a header and a row of every point: run, modality, class or number, place, caption and path."""
    header = ("run", "name", "step", "dataset", "split", "method", "pair", "modality", "class", "x", "y")
    lit = ("in color",) if any(chart.lit is not None for chart in charts) else ()
    return (*header, *lit, "caption", "path"), _rows(charts, with_lit=bool(lit))


def _rows(charts: Sequence[MapChart], *, with_lit: bool) -> Iterator[tuple[Any, ...]]:
    for chart in charts:
        facts = (chart.run, chart.name, chart.step, chart.dataset, chart.split, chart.method)
        for modality, points in (("image", chart.images), ("text", chart.texts)):
            for pair, (x, y) in enumerate([] if points is None else points.tolist()):
                lit = (int(chart.lit is None or chart.lit[pair]),) if with_lit else ()
                color = chart.colors.value(pair)
                yield *facts, pair, modality, color, x, y, *lit, chart.captions[pair], chart.paths[pair]


def _isolated(chart: MapChart, names: Sequence[str]) -> MapChart:
    classes = chart.colors.names
    unknown = [name for name in names if name not in classes]
    if unknown:
        offered = ", ".join(classes) or "none"
        raise ChartError(f"{words(chart.colors.by)} has no class {unknown[0]!r} to isolate; there are: {offered}.")
    in_classes = np.isin(np.asarray(chart.colors.place), [classes.index(name) for name in names])
    return replace(chart, lit=in_classes, lit_note=f"only {', '.join(names)} in color")


def _selected(chart: MapChart, pairs: Int[np.ndarray, " k"]) -> MapChart:
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= chart.n):
        raise ChartError(f"There is no pair {int(pairs.max())}: the snapshot has {chart.n:,}, the first one is 0.")
    selected = np.zeros(chart.n, bool)
    selected[pairs] = True
    lit = selected if chart.lit is None else selected & chart.lit
    said = f"{len(pairs):,} selected pair{'s' * (len(pairs) != 1)} in color"
    return replace(chart, lit=lit, lit_note=f"{chart.lit_note}; {said}" if chart.lit_note else said)


def _chart(workspace: Workspace, placed: Placed, snapshot: Snapshot, colors: ColoredPoints) -> MapChart:
    images, texts = _points(snapshot, placed.layout)
    return MapChart(
        **shown(workspace.runs.get(Path(placed.folder).parent.parent), snapshot),
        n=snapshot.n,
        sampled=snapshot.sampled,
        method=placed.method,
        parameters=placed.parameters,
        neighborhood=placed.neighborhood,
        images=images,
        texts=texts,
        captions=tuple(snapshot.items.caption),
        paths=tuple(snapshot.items.path),
        colors=colors,
        side=placed.side,
        near=placed.near,
        shares=_shares(snapshot, placed) if placed.method == "pca" and placed.side is None else None,
    )


def _shares(snapshot: Snapshot, placed: Placed) -> tuple[float, float] | None:
    """Return the share of total variance along both map axes; None if the map is not a projection."""
    total = total_variance([part for part in (snapshot.image, snapshot.text) if part is not None])
    along = placed.layout[:, :2].var(axis=0, dtype=np.float64)
    if not total > 0 or along.sum() > 1.001 * total:
        return None
    return float(along[0] / total), float(along[1] / total)


def _computed(by: str, snapshots: Sequence[Snapshot], progress: Progress) -> list[ColoredPoints]:
    if by == AGREEMENT and (len(snapshots) < 2 or not same_pairs(snapshots[0].items, snapshots[1].items)):
        raise ChartError("Agreement needs two runs with snapshots of the same pairs: name them, --runs A B.")
    compared = snapshots[:2] if by == AGREEMENT else snapshots
    numbers = _numbers(by, compared, progress)
    maps = [ColoredMap(s.n, {}, pair_ranks) for s, pair_ranks in zip(compared, numbers, strict=True)]
    return pair_colors(by, maps) + [ColoredPoints(MODALITY) for _ in snapshots[len(compared) :]]


@dataclass(frozen=True, kw_only=True)
class RankedPairs(SnapshotLabel):
    """A run's cosine and rank of each pair of a snapshot."""

    numbers: PairNumbers
    # Place in `AGREEMENTS` of each pair, of two runs that hold the same pairs; else None.
    agreement: Int[np.ndarray, " n"] | None = None


def ranked_pairs(workspace: Workspace, request: Request, *, progress: Progress = silent) -> list[RankedPairs]:
    """Return cosine and rank of each pair in each run and, for the first two, their agreement.

    Raises:
        ChartError: There is no such snapshot, or it has one modality only.
    """
    opened = [open_target(workspace, target, request) for target in request.targets]
    snapshots = [each.snapshot for each in opened]
    numbers = _numbers("ranks", snapshots, progress)
    same = len(snapshots) > 1 and same_pairs(snapshots[0].items, snapshots[1].items)
    verdicts = agreement(numbers[0].rank, numbers[1].rank) if same else None
    return [
        RankedPairs(**shown(each.run, each.row), numbers=run_numbers, agreement=verdicts if index < 2 else None)
        for index, (each, run_numbers) in enumerate(zip(opened, numbers, strict=True))
    ]


def _numbers(what: str, snapshots: Sequence[Snapshot], progress: Progress) -> list[PairNumbers]:
    numbers = []
    for snapshot in snapshots:
        of_snapshot = pair_numbers(snapshot, progress)
        if of_snapshot is None:
            raise ChartError(f"Run {snapshot.model} embeds only one modality; {what} needs images and texts. {BOTH}")
        numbers.append(of_snapshot)
    return numbers


def _changed(
    by: str, workspace: Workspace, placed: Sequence[Placed], snapshots: Sequence[Snapshot], progress: Progress
) -> list[ColoredPoints]:
    if len(snapshots) < 2 or not same_pairs(snapshots[0].items, snapshots[1].items):
        raise ChartError("What changed needs two runs with snapshots of the same pairs: name them, --runs A B.")
    (a, b), first = snapshots[:2], placed[0]
    runs = [workspace.runs.get(Path(snapshot.folder).parent.parent).id for snapshot in (first, placed[1])]
    refs = ((runs[0], a.step), (runs[1], b.step))
    compared = changes(workspace, *refs, dataset=a.dataset, split=a.split, progress=progress)
    columns = changed_columns(compared)
    if by not in columns:
        raise ChartError(f"These runs have no {by}: it needs images and texts, and for predictions classes.")
    maps = [ColoredMap(snapshot.n, columns) for snapshot in (a, b)]
    return pair_colors(by, maps) + [ColoredPoints(MODALITY) for _ in snapshots[2:]]


def color_columns(items: Items) -> tuple[str, ...]:
    """Return columns that can color a map: numbers, and those with 2 to 256 values; captions last."""
    columns = {name: _column(items, name) for name in (*_BUILT_IN[:2], *items.metadata, _BUILT_IN[2])}
    counts = range(2, _MOST_CLASSES + 1)
    return tuple(name for name, of in columns.items() if is_scale(of) or len(set(map(str, of))) in counts)


def _points(snapshot: Snapshot, layout: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    counts = [0 if part is None else len(part) for part in (snapshot.image, snapshot.text)]
    if layout.shape != (sum(counts), 2):
        raise ChartError(
            f"The layout has {len(layout)} points and the snapshot {sum(counts)}: they do not belong together. "
            "Project the snapshot again."
        )
    images, texts = layout[: counts[0]], layout[counts[0] :]
    return (images if counts[0] else None), (texts if counts[1] else None)


def _columns(items: Items, color: str) -> dict[str, MetadataColumn]:
    if color == MODALITY:
        return {}
    if color not in (*_BUILT_IN, *items.metadata):
        raise ChartError(f"There is no column {color!r} to color by; choose one of {_choices(items)}.")
    prepared = column(_column(items, color))
    if prepared is None:
        raise ChartError(f"Column {color!r} holds no words and no numbers; choose one of {_choices(items)}.")
    if len(prepared.names) > _MOST_CLASSES:
        raise ChartError(
            f"Column {color!r} has {len(prepared.names)} different values, too many for colors; "
            f"choose one of {_choices(items)}."
        )
    return {color: prepared}


def _choices(items: Items) -> str:
    return ", ".join((MODALITY, *color_columns(items), *COMPUTED, *CHANGED))


def _column(items: Items, name: str) -> list:
    return items.metadata[name] if name in items.metadata else list(getattr(items, name))
