"""The matrix of all image-text cosines, in a chosen order and at any zoom level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.progress import Progress
from trainer.analysis.similarity_matrix import block_means, seriate, spans
from trainer.charts import BOTH, ChartError
from trainer.charts.common_pairs import same_pairs
from trainer.charts.facets import LABEL, column_values, facet_columns
from trainer.charts.marks import HeatMap, Panel, run_tone
from trainer.charts.snapshot_label import SnapshotLabel, labels, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import targets_of
from trainer.store import Workspace
from trainer.store.snapshot_files import Snapshot, read_snapshot

BLOCKS: Final = 240
"""Most rows and columns of a picture of the matrix; more pairs are averaged in blocks."""

AS_STORED: Final = "stored"
CLUSTERED: Final = "clusters"


@dataclass(frozen=True)
class MatrixWindow:
    """Part of the matrix: places in the order, ends exclusive; rows are images, columns are texts."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def cells(self) -> int:
        """The number of cosines shown."""
        return (self.bottom - self.top) * (self.right - self.left)


@dataclass(frozen=True)
class MatrixTile:
    """A window as an image.

    Attributes:
        means: Mean cosine of each block.
        rows: The pairs whose images each row of it averages.
        columns: The pairs whose texts each column averages.
    """

    window: MatrixWindow
    means: Float[np.ndarray, "r c"]
    rows: tuple[Int[np.ndarray, " k"], ...]
    columns: tuple[Int[np.ndarray, " k"], ...]

    @property
    def single(self) -> bool:
        """Whether every cell is one cosine and not a mean."""
        return len(self.rows) == self.window.bottom - self.window.top and (
            len(self.columns) == self.window.right - self.window.left
        )


@dataclass(frozen=True, kw_only=True)
class MatrixRun(SnapshotLabel):
    """One run's tile; `low` and `high` are the ends of its color scale."""

    index: int
    n: int
    tile: MatrixTile
    low: float
    high: float


@dataclass(frozen=True)
class MatrixChart:
    """The same window and order in all runs; `order` is a permutation of the pairs."""

    by: str
    order: Int[np.ndarray, " n"]
    runs: tuple[MatrixRun, ...]
    captions: tuple[str, ...]
    note: str


def matrix(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    steps: Sequence[int | None] = (),
    dataset: str | None = None,
    split: str | None = None,
    by: str = LABEL,
    window: MatrixWindow | None = None,
    blocks: int = BLOCKS,
    progress: Progress | None = None,
) -> MatrixChart:
    """Return the cosines of all images and texts in one snapshot of each run, ordered by the first run.

    Args:
        workspace: Where the runs are.
        runs: Ids or names.
        steps: Of the snapshots: one for all runs, one for each, or several of a single run; None is the last.
        dataset: Of the snapshots; None takes the run's first.
        split: Of the snapshots; None takes the held-out split that is drawn like the training pairs.
        by: How pairs are ordered: a column of the items, `clusters` or `stored`.
        window: The part of the matrix; None: all.
        blocks: Most rows and columns of the picture.
        progress: Told the share done; may raise to cancel.

    Raises:
        ChartError: A run lacks such a snapshot, has only one modality, or other pairs than the first run.
        StoreError: No such run.
    """
    opened = [
        open_matrix(workspace, target.run, step=target.step, dataset=dataset, split=split)
        for target in targets_of(runs, steps)
    ]
    first = opened[0][1]
    order = ordering(first, by, progress=progress)
    made = []
    for index, (facts, snapshot) in enumerate(opened):
        if not same_pairs(first.items, snapshot.items):
            raise ChartError(f"Run {facts['name']} was embedded on other pairs; their matrices have no common order.")
        tile = read_tile(snapshot, order, window or whole(snapshot.n), blocks=blocks)
        low, high = color_range(tile.means)
        made.append(MatrixRun(**facts, index=index, n=snapshot.n, tile=tile, low=low, high=high))
    cells_text = (
        "Each cell is one cosine."
        if made[0].tile.single
        else f"Cells are means of blocks: {_block(made[0].tile)} cosines."
    )
    return MatrixChart(
        by,
        order,
        tuple(made),
        tuple(first.items.caption),
        f"{cells_text} Ordered by {by} as run {labels(made)[0]} sees it.",
    )


def open_matrix(
    workspace: Workspace, ref: int | str, *, step: int | None, dataset: str | None, split: str | None
) -> tuple[dict, Snapshot]:
    """Return facts on a run and its snapshot, with memory-mapped arrays.

    Raises:
        ChartError: There is none such, or it has one modality only.
    """
    run = workspace.runs.get(ref)
    chosen = choose_snapshot(workspace, run, step=step, dataset=dataset, split=split)
    snapshot = read_snapshot(chosen.folder)
    if snapshot.image is None or snapshot.text is None:
        raise ChartError(f"Run {run.short_name} embeds only one modality; the matrix needs images and texts. {BOTH}")
    return shown(run, chosen), snapshot


def ordering(snapshot: Snapshot, by: str, *, progress: Progress | None = None) -> Int[np.ndarray, " n"]:
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


def whole(n: int) -> MatrixWindow:
    """Return the window of the whole matrix."""
    return MatrixWindow(0, n, 0, n)


def read_tile(
    snapshot: Snapshot,
    order: Int[np.ndarray, " n"],
    window: MatrixWindow,
    *,
    blocks: int = BLOCKS,
    progress: Progress | None = None,
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


def _block(tile: MatrixTile) -> str:
    return f"{len(tile.rows[0]):,} × {len(tile.columns[0]):,}"


MOST_NAMED: Final = 24
"""Captions below the columns if there are no more than this."""


def panel(chart: MatrixChart) -> Panel:
    """Return one heat map per run, each with its own scale: images in rows, texts in columns."""
    marks = tuple(_heat_map(chart, run) for run in chart.runs)
    rows = tuple(marks[at : at + 2] for at in range(0, len(marks), 2))
    return Panel(title="Similarity matrix", rows=rows, notes=(chart.note,))


def _heat_map(chart: MatrixChart, run: MatrixRun) -> HeatMap:
    """Return the map of a run, with captions if every cell is one cosine and there is space."""
    window = run.tile.window
    named = run.tile.single and len(run.tile.rows) <= MOST_NAMED
    x_ticks = _ticks(window.left, window.right, len(run.tile.columns))
    if named:
        x_ticks = tuple((float(at), chart.captions[int(pairs[0])]) for at, pairs in enumerate(run.tile.columns))
    return HeatMap(
        f"matrix-{run.index}",
        run.name,
        run.tile.means,
        "texts, in order",
        "images, in order",
        x_ticks,
        () if named else _ticks(window.top, window.bottom, len(run.tile.rows)),
        run.low,
        run.high,
        "cosine" if run.tile.single else "mean cosine",
        note=f"step {run.step:,}, n = {run.n:,}",
        named=named,
        tone=run_tone(run.index),
    )


def _ticks(first: int, end: int, cells: int) -> tuple[tuple[float, str], ...]:
    """Return round positions of the order, where they stand among the cells."""
    step = 10 ** max(0, len(str(end - first)) - 1)
    step = step // 2 if (end - first) / step < 3 and step > 1 else step
    marked = range(-(-first // step) * step, end + 1, step)
    return tuple(((at - first) * cells / (end - first) - 0.5, f"{at:,}") for at in marked)


def records(chart: MatrixChart) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
    """Return every cell of the maps: its range of the order, and its mean cosine."""
    header = ("run", "name", "step", "dataset", "split", "row_from", "row_to", "column_from", "column_to", "images")
    return (*header, "texts", "mean_cosine"), _records(chart)


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
