"""The matrix of all image-text cosines, in a chosen order and at any zoom level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.progress import Progress
from trainer.analysis.similarity_matrix import block_means, seriate, spans
from trainer.charts import BOTH, ChartError
from trainer.charts.common_pairs import same_pairs
from trainer.charts.facets import LABEL, column_values, facet_columns
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
        raise ChartError(f"Run {run.name} embeds only one modality; the matrix needs images and texts. {BOTH}")
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
