"""The matrix of the cosines of all images with all texts, in an order worth looking at, from any distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.progress import Progress
from trainer.analysis.similarity_matrix import block_means, seriate, spans
from trainer.charts import BOTH, SAME, ChartError
from trainer.charts.facets import LABEL, column_values, facet_columns
from trainer.charts.snapshot_label import SnapshotLabel, labels, shown
from trainer.charts.snapshots import choose_snapshot, sides
from trainer.store import Workspace
from trainer.store.snapshot_files import Snapshot, read_snapshot

BLOCKS: Final = 240
"""Most rows and columns of a picture of the matrix; more pairs are averaged in blocks."""

AS_STORED: Final = "stored"
CLUSTERED: Final = "clusters"
ORDERS: Final = (LABEL, CLUSTERED, AS_STORED)


@dataclass(frozen=True)
class MatrixWindow:
    """A part of the matrix: places of the order, ends exclusive; rows are images, columns are texts."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def cells(self) -> int:
        """How many cosines it shows."""
        return (self.bottom - self.top) * (self.right - self.left)


@dataclass(frozen=True)
class MatrixTile:
    """A window as a picture.

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
    """One run's tile; `low` and `high` are the ends of its colors."""

    index: int
    n: int
    tile: MatrixTile
    low: float
    high: float


@dataclass(frozen=True)
class MatrixChart:
    """The same window of the same order in all runs; `order` is a permutation of the pairs."""

    by: str
    order: Int[np.ndarray, " n"]
    runs: tuple[MatrixRun, ...]
    captions: tuple[str, ...]
    note: str


def matrix(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    by: str = LABEL,
    window: MatrixWindow | None = None,
    blocks: int = BLOCKS,
    step_b: int | None = SAME,
    progress: Progress | None = None,
) -> MatrixChart:
    """The cosines of all images with all texts of one snapshot of each run, ordered by the first run.

    Args:
        workspace: Where the runs are.
        runs: Ids or names.
        step: Of the snapshots; None takes each run's last.
        dataset: Of the snapshots; None takes the run's first.
        split: Of the snapshots; None takes the held-out split that is drawn like the training pairs.
        by: How pairs are ordered: a column of the items, `clusters` or `stored`.
        window: The part of the matrix; None: all.
        blocks: Most rows and columns of the picture.
        step_b: Step of the second run, where it is another; one run alone is then compared with itself.
        progress: Told the share done; may raise to cancel.

    Raises:
        ChartError: A run lacks such a snapshot, has only one modality, or other pairs than the first run.
        StoreError: No such run.
    """
    opened = [
        open_matrix(workspace, ref, step=at, dataset=dataset, split=split) for ref, at in sides(runs, step, step_b)
    ]
    first = opened[0][1]
    order = ordering(first, by, progress=progress)
    made = []
    for index, (facts, snapshot) in enumerate(opened):
        if not same_pairs(first, snapshot):
            raise ChartError(f"Run {facts['name']} was embedded on other pairs; their matrices have no common order.")
        tile = read_tile(snapshot, order, window or whole(snapshot.n), blocks=blocks)
        low, high = color_range(tile.means)
        made.append(MatrixRun(**facts, index=index, n=snapshot.n, tile=tile, low=low, high=high))
    words = (
        "Each cell is one cosine."
        if made[0].tile.single
        else f"Cells are means of blocks: {_block(made[0].tile)} cosines."
    )
    return MatrixChart(
        by, order, tuple(made), tuple(first.items.caption), f"{words} Ordered by {by} as run {labels(made)[0]} sees it."
    )


def open_matrix(
    workspace: Workspace, ref: int | str, *, step: int | None, dataset: str | None, split: str | None
) -> tuple[dict, Snapshot]:
    """Facts of a run and its snapshot, its arrays as memory maps.

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
    """The pairs in the order asked for: similar images stand together.

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
    """Everything the pairs of a snapshot can be ordered by."""
    return (*facet_columns(snapshot.items), CLUSTERED, AS_STORED)


def whole(n: int) -> MatrixWindow:
    """The window that shows everything."""
    return MatrixWindow(0, n, 0, n)


def read_tile(
    snapshot: Snapshot,
    order: Int[np.ndarray, " n"],
    window: MatrixWindow,
    *,
    blocks: int = BLOCKS,
    progress: Progress | None = None,
) -> MatrixTile:
    """A window of the matrix; reads only the rows it shows, cell by cell or in means of blocks."""
    rows = spans(order, window.top, window.bottom, blocks)
    columns = spans(order, window.left, window.right, blocks)
    means = block_means(snapshot.image, snapshot.text, rows, columns, progress=progress)
    return MatrixTile(window, means, tuple(rows), tuple(columns))


def color_range(means: Float[np.ndarray, "r c"]) -> tuple[float, float]:
    """Between which cosines colors run: all but the most extreme half percent at either end."""
    finite = means[np.isfinite(means)]
    if not len(finite):
        return 0.0, 1.0
    low, high = np.quantile(finite, (0.005, 0.995)) if finite.size > 400 else (finite.min(), finite.max())
    return float(low), float(max(high, low + 1e-3))


def same_pairs(a: Snapshot, b: Snapshot) -> bool:
    """Whether row i is the same pair in both."""
    return np.array_equal(np.asarray(a.items.id), np.asarray(b.items.id))


def _block(tile: MatrixTile) -> str:
    return f"{len(tile.rows[0]):,} × {len(tile.columns[0]):,}"
