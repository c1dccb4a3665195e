"""What the map shows of one run, read from its snapshot: pure functions for the background threads."""

from __future__ import annotations

import hashlib
import threading
import weakref
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from explorer.views.map.coloring import choices
from trainer.analysis.camera_3d import components
from trainer.analysis.cluster_words import ClusterWords, cluster_words
from trainer.analysis.distinct import answers
from trainer.analysis.neighbors import nearest
from trainer.analysis.pair_ranks import ranks_among
from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.analysis.similarity import matched_cosines
from trainer.charts.changes import changes
from trainer.charts.matching import matching_of
from trainer.charts.metadata_columns import Column, column
from trainer.charts.pair_colors import CAPTIONS, CLASS, PairNumbers, changed_columns, pair_numbers
from trainer.charts.snapshots import choose_snapshot
from trainer.store import SnapshotRow, SplitKey, Workspace, of_split
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot


@dataclass(frozen=True)
class Side:
    """One map: the points of one snapshot, the images' first, then the texts'.

    Attributes:
        run: Id of the run.
        name: Its name.
        objective: Its objective, `clip` or `cloob`.
        row: The snapshot in the store.
        items: What the pairs are.
        images: How many points are images.
        texts: How many points are texts; text i belongs to image i.
        space: Where the points stand along three principal components.
        xy: Where they stand in the plane.
        columns: What the points can be coloured by, besides what is computed.
        values: Those columns, ready for colours.
        identity: Equal exactly where row i is the same pair.
        sampled: Whether the snapshot holds only a part of its split.
        turned: Whether the points were turned to face the other map.
    """

    run: int
    name: str
    objective: str
    row: SnapshotRow
    items: Items
    images: int
    texts: int
    space: Float[np.ndarray, "m 3"]
    xy: Float[np.ndarray, "m 2"]
    columns: tuple[str, ...]
    values: dict[str, Column]
    identity: str
    sampled: bool
    turned: bool = False

    @property
    def pca_words(self) -> str:
        """How `xy` was made."""
        return "PCA, turned to face A" if self.turned else "PCA"

    @property
    def n(self) -> int:
        """Number of pairs."""
        return max(self.images, self.texts)

    def pair_of(self, point: int) -> int:
        """The pair that a point belongs to."""
        return point if point < self.images else point - self.images

    def points_of(self, pair: int) -> tuple[int, ...]:
        """The points of a pair: its image, then its text, as far as there are such."""
        image = (pair,) if 0 <= pair < self.images else ()
        return (*image, self.images + pair) if 0 <= pair < self.texts else image


def read_side(workspace: Workspace, run: int, step: int | None, data: SplitKey | None) -> Side:
    """The run's snapshot of `data` at `step`, placed by PCA; None is the first data and the last step.

    Raises:
        ChartError: The run has none such; the message names those there are.
    """
    row = chosen_row(workspace, run, step, data)
    key = (str(row.folder), row.folder.stat().st_mtime_ns if row.folder.exists() else 0)
    # A's side is wanted for A's map and again for B's, which faces it: the second one waits for the first.
    with _READING.setdefault(key, threading.Lock()):
        side = _SIDES.get(key)
        if side is None:
            side = _SIDES[key] = _read_side(workspace, run, row)
    return side


_READING: Final[dict[tuple[str, int], threading.Lock]] = {}
_SIDES: Final[weakref.WeakValueDictionary[tuple[str, int], Side]] = weakref.WeakValueDictionary()
"""Sides that a map shows, so that they are not read again while it does."""


def _read_side(workspace: Workspace, run: int, row: SnapshotRow) -> Side:
    run_row = workspace.runs.get(run)
    snapshot = read_snapshot(row.folder)
    columns = tuple(choices(snapshot.items))
    # The third costs nothing beside the first two: later the map enters space without reading anything again.
    space = components((snapshot.image, snapshot.text))
    return Side(
        run=run,
        name=run_row.name,
        objective=run_row.objective,
        row=row,
        items=snapshot.items,
        images=0 if snapshot.image is None else len(snapshot.image),
        texts=0 if snapshot.text is None else len(snapshot.text),
        space=space,
        xy=np.ascontiguousarray(space[:, :2]),
        columns=columns,
        values=_values(snapshot.items, columns),
        identity=_identity(snapshot.items),
        sampled=snapshot.sampled,
    )


def chosen_row(workspace: Workspace, run: int, step: int | None, data: SplitKey | None) -> SnapshotRow:
    """The snapshot that charts and exports of these choices are about.

    Raises:
        ChartError: There is none.
    """
    return choose_snapshot(workspace, workspace.runs.get(run), step=step, **of_split(data))


def read_numbers(side: Side, progress: Progress | None = None) -> PairNumbers | None:
    """Cosine and rank of every pair, as `pair_numbers` says; None without both modalities."""
    return pair_numbers(read_snapshot(side.row.folder, side.items), progress)


def read_changes(workspace: Workspace, a: Side, b: Side, progress: Progress) -> dict[str, Column]:
    """What changed from A to B, pair by pair, as colours; see `trainer.charts.changes`.

    Raises:
        ChartError: They cannot be compared.
        InterruptedError: `progress` raised it.
    """
    data = {"dataset": a.row.dataset, "split": a.row.split}
    return changed_columns(changes(workspace, (a.run, a.row.step), (b.run, b.row.step), **data, progress=progress))


def read_one(side: Side, row: int) -> PairNumbers | None:
    """Cosine and rank of one pair, the rank among a sample of the captions: for the card of a map of many pairs."""
    snapshot: Snapshot = read_snapshot(side.row.folder, side.items)
    if snapshot.image is None or snapshot.text is None:
        return None
    texts = matching_of(snapshot).texts
    sample = at_most(texts.rows, CAPTIONS)
    # The one image's question alone: its own captions, and the sampled ones that are not.
    own = texts.rows[texts.cells(texts.question[row : row + 1])[1]]
    others = np.setdiff1d(sample, own)
    image, text = snapshot.image[row : row + 1], np.concatenate([snapshot.text[own], snapshot.text[others]])
    one = answers(np.repeat([0, 1], [len(own), len(others)]), np.arange(len(text)))
    rank = ranks_among(image, text, np.arange(len(text)), one)
    return PairNumbers(matched_cosines(image, snapshot.text[row : row + 1]), rank, len(text), len(texts))


def read_words(side: Side, progress: Progress | None = None) -> ClusterWords:
    """Groups of pairs that lie together in the run's embedding space, by their images if there are such."""
    snapshot = read_snapshot(side.row.folder, side.items)
    vectors = snapshot.image if snapshot.image is not None else snapshot.text
    return cluster_words(vectors, side.items.caption, progress=progress)  # type: ignore[arg-type]


MOST_ASKING = 1_000
"""Selected pairs that ask for their neighbours; of more, a sample asks."""


def read_neighbours(side: Side, rows: Int[np.ndarray, " k"], k: int) -> Int[np.ndarray, " m"]:
    """Pairs whose image (or text, in a map of texts) is among the `k` nearest of a row's, by cosine in the run's space.

    Args:
        side: The map that is looked at.
        rows: The pairs that ask; a thousand of them, drawn at random, where there are more.
        k: Neighbours of each, itself left out.
    """
    snapshot = read_snapshot(side.row.folder, side.items)
    vectors = snapshot.image if snapshot.image is not None else snapshot.text
    rows = at_most(rows, MOST_ASKING)
    found, _ = nearest(vectors[rows], vectors, k + 1)  # type: ignore[index,arg-type]
    return np.unique(found)


def same_items(a: Side, b: Side) -> bool:
    """Whether row i is the same pair in both, so that hovering and selecting can be linked."""
    return a.identity == b.identity


def _identity(items: Items) -> str:
    ids = np.ascontiguousarray(items.id)
    return hashlib.blake2b(ids.view(np.uint8) if len(ids) else b"", key=str(ids.dtype).encode()).hexdigest()


def _values(items: Items, columns: tuple[str, ...]) -> dict[str, Column]:
    found = {name: column(items.label if name == CLASS else items.metadata.get(name, [])) for name in columns}
    return {name: one for name, one in found.items() if one is not None and (one.names or one.numbers is not None)}
