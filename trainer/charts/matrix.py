"""The matrix of all image-text cosines, in a chosen order and at any zoom level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.progress import Progress, silent
from trainer.analysis.similarity_matrix import block_means, seriate, spans
from trainer.charts import ChartError
from trainer.charts.common_pairs import same_pairs
from trainer.charts.facets import LABEL, column_values, facet_columns
from trainer.charts.marks import HeatMap, Panel, run_tone
from trainer.charts.opened_snapshot import OpenedSnapshot, open_target
from trainer.charts.snapshot_label import SnapshotLabel, labels, shown
from trainer.charts.spec import Chart, Records, Request, Target
from trainer.config.fields import option
from trainer.store import Workspace
from trainer.store.snapshot_files import Snapshot

BLOCKS: Final = 240
"""Most rows and columns of a picture of the matrix; more pairs are averaged in blocks."""

AS_STORED: Final = "stored"
CLUSTERED: Final = "clusters"


class MatrixWindow(Struct, frozen=True):
    """Part of the matrix: places in the order, ends exclusive; rows are images, columns are texts."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def cells(self) -> int:
        """The number of cosines shown."""
        return (self.bottom - self.top) * (self.right - self.left)


class MatrixTile(Struct, frozen=True):
    """A window as an image."""

    window: MatrixWindow
    means: Float[np.ndarray, "r c"]  # Mean cosine of each block.
    rows: tuple[Int[np.ndarray, " k"], ...]  # The pairs whose images each row of it averages.
    columns: tuple[Int[np.ndarray, " k"], ...]  # The pairs whose texts each column averages.

    @property
    def single(self) -> bool:
        """Whether every cell is one cosine and not a mean."""
        return len(self.rows) == self.window.bottom - self.window.top and (
            len(self.columns) == self.window.right - self.window.left
        )


@dataclass(frozen=True, kw_only=True)
class MatrixRun(SnapshotLabel):
    """One run's tile."""

    n: int
    tile: MatrixTile


class MatrixChart(Struct, frozen=True):
    """The same window and order in all runs; `order` is a permutation of the pairs."""

    order: Int[np.ndarray, " n"]
    runs: tuple[MatrixRun, ...]
    captions: tuple[str, ...]
    note: str


@dataclass(frozen=True)
class MatrixSettings:
    """The order of the pairs and the part of the matrix."""

    by: str = option(LABEL, "Order", "A column of the items, clusters or stored.")
    window: tuple[int, ...] = option((), "Part", "Places of the order: top, bottom, left and right; none: all.")
    blocks: int = option(BLOCKS, "Blocks", "Most rows and columns; more pairs are averaged in blocks.", low=1)


def matrix(workspace: Workspace, request: Request, settings: MatrixSettings, progress: Progress) -> MatrixChart:
    """Return the cosines of all images and texts in one snapshot of each run, ordered by the first run.

    Raises:
        ChartError: A run lacks such a snapshot, has only one modality, or other pairs than the first run; or the
            window has not four ends.
    """
    if len(settings.window) not in (0, 4):
        raise ChartError("A part of the matrix has four places: --window TOP BOTTOM LEFT RIGHT.")
    opened = [open_matrix(workspace, target, request) for target in request.targets]
    first = opened[0].snapshot
    order = ordering(first, settings.by, progress=progress)
    window = MatrixWindow(*settings.window) if settings.window else MatrixWindow(0, first.n, 0, first.n)
    runs = []
    for each in opened:
        if not same_pairs(first.items, each.snapshot.items):
            raise ChartError(f"{each.run.short_name} was embedded on other pairs; the matrices have no common order.")
        tile = read_tile(each.snapshot, order, window, blocks=settings.blocks)
        runs.append(MatrixRun(**shown(each.run, each.row), n=each.snapshot.n, tile=tile))
    block = f"{len(tile.rows[0]):,} × {len(tile.columns[0]):,}"
    cells = "Each cell is one cosine" if tile.single else f"Cells are means of blocks: {block} cosines"
    note = f"{cells}. Ordered by {settings.by} as run {labels(runs)[0]} sees it."
    return MatrixChart(order, tuple(runs), tuple(first.items.caption), note)


def open_matrix(workspace: Workspace, target: Target, request: Request) -> OpenedSnapshot:
    """Open a run's snapshot, with memory-mapped arrays.

    Raises:
        ChartError: There is none such, or it has one modality only.
    """
    opened = open_target(workspace, target, request)
    opened.both("the matrix needs")
    return opened


def ordering(snapshot: Snapshot, by: str, *, progress: Progress = silent) -> Int[np.ndarray, " n"]:
    """Return the pairs in the requested order; similar images are adjacent.

    Raises:
        ChartError: There is no such column.
    """
    if by == AS_STORED:
        return np.arange(snapshot.n)
    labels = None if by == CLUSTERED else column_values(snapshot.items, by).tolist()
    if by == LABEL and labels is not None and len(set(labels)) < 2:
        labels = None
    return seriate(snapshot.image, labels, progress=progress)


def orders(snapshot: Snapshot) -> tuple[str, ...]:
    """Return all orders available for the pairs of a snapshot."""
    return (*facet_columns(snapshot.items), CLUSTERED, AS_STORED)


def read_tile(
    snapshot: Snapshot,
    order: Int[np.ndarray, " n"],
    window: MatrixWindow,
    *,
    blocks: int = BLOCKS,
    progress: Progress = silent,
) -> MatrixTile:
    """Return a window of the matrix as cells or block means, reading only the rows it shows."""
    rows = spans(order, window.top, window.bottom, blocks)
    columns = spans(order, window.left, window.right, blocks)
    means = block_means(snapshot.image, snapshot.text, rows, columns, progress=progress)
    return MatrixTile(window, means, tuple(rows), tuple(columns))


def color_range(means: Float[np.ndarray, "r c"]) -> tuple[float, float]:
    """Return the range of the color scale: without the most extreme half percent at each end."""
    finite = means[np.isfinite(means)]
    if not len(finite):
        return 0.0, 1.0
    low, high = np.quantile(finite, (0.005, 0.995)) if finite.size > 400 else (finite.min(), finite.max())
    return float(low), float(max(high, low + 1e-3))


MOST_NAMED: Final = 24
"""Captions below the columns if there are no more than this."""


def draw(chart: MatrixChart, _settings: MatrixSettings) -> Panel:
    """Draw one heat map per run, each with its own scale: images in rows, texts in columns."""
    marks = tuple(_heat_map(chart, index, run) for index, run in enumerate(chart.runs))
    rows = tuple(marks[at : at + 2] for at in range(0, len(marks), 2))
    return Panel(title="Similarity matrix", rows=rows, notes=(chart.note,))


def _heat_map(chart: MatrixChart, index: int, run: MatrixRun) -> HeatMap:
    """Return the map of a run, with captions if every cell is one cosine and there is space."""
    window = run.tile.window
    named = run.tile.single and len(run.tile.rows) <= MOST_NAMED
    x_ticks = _ticks(window.left, window.right, len(run.tile.columns))
    if named:
        x_ticks = tuple((float(at), chart.captions[int(pairs[0])]) for at, pairs in enumerate(run.tile.columns))
    return HeatMap(
        f"matrix-{index}",
        run.name,
        run.tile.means,
        "texts, in order",
        "images, in order",
        x_ticks,
        () if named else _ticks(window.top, window.bottom, len(run.tile.rows)),
        *color_range(run.tile.means),
        "cosine" if run.tile.single else "mean cosine",
        note=f"step {run.step:,}, n = {run.n:,}",
        named=named,
        tone=run_tone(index),
    )


def _ticks(first: int, end: int, cells: int) -> tuple[tuple[float, str], ...]:
    """Return round positions of the order, where they stand among the cells."""
    step = 10 ** max(0, len(str(end - first)) - 1)
    step = step // 2 if (end - first) / step < 3 and step > 1 else step
    marked = range(-(-first // step) * step, end + 1, step)
    return tuple(((at - first) * cells / (end - first) - 0.5, f"{at:,}") for at in marked)


def records(chart: MatrixChart, _settings: MatrixSettings) -> Records:
    """Return every cell of the maps: its range of the order, and its mean cosine."""
    header = ("run", "name", "step", "dataset", "split", "row_from", "row_to", "column_from", "column_to", "images")
    return (*header, "texts", "mean_cosine"), list(_records(chart))


def _records(chart: MatrixChart) -> Iterator[tuple[Any, ...]]:
    for run in chart.runs:
        facts = (run.run, run.name, run.step, run.dataset, run.split)
        top = run.tile.window.top
        for group, means in zip(run.tile.rows, run.tile.means.tolist()):
            left = run.tile.window.left
            for others, value in zip(run.tile.columns, means):
                names = (" ".join(map(str, g.tolist())) if len(g) <= 8 else None for g in (group, others))
                yield *facts, top, top + len(group), left, left + len(others), *names, value
                left += len(others)
            top += len(group)


CHART: Final = Chart(
    view="similarity",
    label="Matrix",
    question="All cosines of images with texts, ordered.",
    cost="Grows with n squared: every cosine is computed, and more pairs are averaged in blocks.",
    settings=MatrixSettings,
    compute=matrix,
    draw=draw,
    records=records,
)
