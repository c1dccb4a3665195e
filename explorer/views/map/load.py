"""Read a run's snapshot for the map: pure functions for background threads."""

from __future__ import annotations

import hashlib
import threading
import weakref
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from explorer.views.map.coloring import choices
from trainer.analysis.camera_3d import approximate_components
from trainer.analysis.cluster_words import ClusterWords, cluster_words
from trainer.analysis.progress import Progress, silent
from trainer.analysis.projection import total_variance
from trainer.analysis.sampling import at_most
from trainer.analysis.tiled_neighbors import nearest
from trainer.charts.common_pairs import looked_at
from trainer.charts.metadata_columns import MetadataColumn, column
from trainer.charts.pair_changes import changes
from trainer.charts.pair_colors import CLASS, MOST_RANKED, PairNumbers, changed_columns, numbers_of_pair, pair_numbers
from trainer.charts.snapshots import choose_snapshot
from trainer.store import SnapshotRow, SplitKey, Workspace, of_split
from trainer.store.columns import taken
from trainer.store.component_files import kept_components, snapshot_components
from trainer.store.layout_files import has_layout
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot


@dataclass(frozen=True)
class MapSide:
    """One map: the points of one snapshot, first the images, then the texts."""

    run: int  # Id of the run.
    name: str
    objective: str  # Its objective, `clip` or `cloob`.
    row: SnapshotRow
    items: Items
    images: int  # How many points are images.
    texts: int  # How many points are texts; text i belongs to image i.
    space: Float[np.ndarray, "m 3"]  # Where the points stand along three principal components.
    xy: Float[np.ndarray, "m 2"]  # Where they stand in the plane.
    columns: tuple[str, ...]  # What the points can be colored by, besides what is computed.
    values: dict[str, MetadataColumn]  # Those columns, ready for colors.
    identity: str  # Equal exactly where row i is the same pair.
    sampled: bool  # Whether the snapshot holds only a part of its split.
    has_umap: bool = False  # Whether a UMAP layout of the snapshot lies in the workspace.
    turned: bool = False  # Whether the points were turned to face the other map.
    # Of the variance of all points that each of the three components shows; empty for very many points.
    shares: tuple[float, ...] = ()

    @property
    def pca_words(self) -> str:
        """A description of how `xy` was computed."""
        return "PCA, Procrustes-aligned to A" if self.turned else "PCA"

    @property
    def n(self) -> int:
        """Number of pairs."""
        return max(self.images, self.texts)

    def pair_of(self, point: int) -> int:
        """Return the pair of a point."""
        return point if point < self.images else point - self.images

    def points_of(self, pair: int) -> tuple[int, ...]:
        """Return the points of a pair: its image, then its text, if they exist."""
        image = (pair,) if 0 <= pair < self.images else ()
        return (*image, self.images + pair) if 0 <= pair < self.texts else image


class Sketch(Struct, frozen=True):
    """A preview of a snapshot with very many points."""

    side: MapSide  # Some of its pairs, as if there were no others, without paths and captions.
    points: int  # How many points all have.


SKETCHED: Final = 200_000
"""Points of which some are shown before all are placed."""
SKETCH_PAIRS: Final = 5_000
"""Pairs that are."""


def read_sketch(workspace: Workspace, run: int, step: int | None, data: SplitKey | None) -> Sketch | None:
    """Place some pairs of the run's snapshot of `data` at `step`; None if placing all is as fast.

    They stand where they will stand among all, if that was computed before; else along their own components, which
    point nearly the same way.

    Raises:
        ChartError: The run has no such snapshot; the message names those there are.
    """
    row = chosen_row(workspace, run, step, data)
    if 2 * row.n <= SKETCHED:
        return None
    snapshot = read_snapshot(row.folder, wordless=True)
    parts = [part for part in (snapshot.image, snapshot.text) if part is not None]
    if len(parts) * snapshot.n <= SKETCHED:
        return None
    rows = np.linspace(0, snapshot.n - 1, min(SKETCH_PAIRS, snapshot.n)).astype(np.int64)
    stored = kept_components(workspace.folder, snapshot)
    if stored is None:
        # Half of them shows the main directions as well, in half of the time.
        space = approximate_components([part[rows] for part in parts], every=2)
    else:
        # The texts' points follow the images'.
        space = stored[np.concatenate([modality * snapshot.n + rows for modality in range(len(parts))])]
    image, text = (None if part is None else part[: len(rows)] for part in (snapshot.image, snapshot.text))
    item_columns = {name: taken(getattr(snapshot.items, name), rows) for name in ("path", "caption", "label", "split")}
    items = Items(snapshot.items.id[rows], **item_columns)  # type: ignore[arg-type]
    some = replace(snapshot, image=image, text=text, items=items, sampled=True)
    columns = tuple(choices(snapshot.items))
    values = {name: _taken(values_of, rows) for name, values_of in _values(snapshot.items, columns).items()}
    return Sketch(_side(workspace, run, row, some, space, columns, values), len(parts) * snapshot.n)


def _taken(column: MetadataColumn, rows: Int[np.ndarray, " k"]) -> MetadataColumn:
    codes, numbers = (None if part is None else part[rows] for part in (column.place, column.numbers))
    return replace(column, place=codes, numbers=numbers)


def read_side(workspace: Workspace, run: int, step: int | None, data: SplitKey | None) -> MapSide:
    """Read the run's snapshot of `data` at `step` with PCA positions; None means the first data and the last step.

    Raises:
        ChartError: The run has none such; the message names those there are.
    """
    row = chosen_row(workspace, run, step, data)
    key = (str(row.folder), row.folder.stat().st_mtime_ns if row.folder.exists() else 0)
    # A's side is wanted for A's map and again for B's, which faces it: the second one waits for the first.
    with _READING.setdefault(key, threading.Lock()):
        side = _SIDES.get(key)
        if side is None:
            snapshot = read_snapshot(row.folder)
            columns = tuple(choices(snapshot.items))
            values = _values(snapshot.items, columns)
            # The third costs nothing beside the first two: later the map enters space without reading anything again.
            space = snapshot_components(workspace.folder, snapshot, keep=not workspace.look_only)
            side = _SIDES[key] = _side(workspace, run, row, snapshot, space, columns, values)
    return side


_READING: Final[dict[tuple[str, int], threading.Lock]] = {}
_SIDES: Final[weakref.WeakValueDictionary[tuple[str, int], MapSide]] = weakref.WeakValueDictionary()
"""Sides that a map shows, so that they are not read again while it does."""


def _side(
    workspace: Workspace,
    run: int,
    row: SnapshotRow,
    snapshot: Snapshot,
    space: Float[np.ndarray, "m 3"],
    columns: tuple[str, ...],
    values: dict[str, MetadataColumn],
) -> MapSide:
    run_row = workspace.runs.get(run)
    return MapSide(
        run=run,
        name=run_row.short_name,
        objective=run_row.objective,
        row=row,
        items=snapshot.items,
        images=0 if snapshot.image is None else len(snapshot.image),
        texts=0 if snapshot.text is None else len(snapshot.text),
        space=space,
        xy=np.ascontiguousarray(space[:, :2]),
        columns=columns,
        values=values,
        identity=_identity(snapshot.items),
        sampled=snapshot.sampled,
        has_umap=has_layout(workspace.folder, [row.folder], "umap"),
        shares=_shares(snapshot, space) if snapshot.n <= MOST_RANKED else (),
    )


def _shares(snapshot: Snapshot, space: Float[np.ndarray, "m 3"]) -> tuple[float, ...]:
    total = total_variance([part for part in (snapshot.image, snapshot.text) if part is not None])
    return tuple((space.var(axis=0, dtype=np.float64) / total).tolist()) if total > 0 else ()


def chosen_row(workspace: Workspace, run: int, step: int | None, data: SplitKey | None) -> SnapshotRow:
    """Return the snapshot that charts and exports use for these choices.

    Raises:
        ChartError: There is none.
    """
    return choose_snapshot(workspace, workspace.runs.get(run), step=step, **of_split(data))


def read_numbers(side: MapSide, progress: Progress = silent) -> PairNumbers | None:
    """Return cosine and rank of every pair, as `pair_numbers` does; None without both modalities."""
    return pair_numbers(read_snapshot(side.row.folder, side.items), progress)


def read_changes(workspace: Workspace, a: MapSide, b: MapSide, progress: Progress) -> dict[str, MetadataColumn]:
    """Return color columns of the changes from A to B, pair by pair; see `trainer.charts.pair_changes`.

    Raises:
        ChartError: They cannot be compared.
        InterruptedError: `progress` raised it.
    """
    data = {"dataset": a.row.dataset, "split": a.row.split}
    return changed_columns(changes(workspace, (a.run, a.row.step), (b.run, b.row.step), **data, progress=progress))


def read_one(side: MapSide, row: int) -> PairNumbers | None:
    """Return cosine and rank of one pair, as `numbers_of_pair` does; for the card of a large map."""
    return numbers_of_pair(read_snapshot(side.row.folder, side.items), row)


def read_words(side: MapSide, progress: Progress = silent) -> ClusterWords:
    """Return clusters of pairs in the run's embedding space, by images if there are any."""
    snapshot = read_snapshot(side.row.folder, side.items)
    vectors = snapshot.image if snapshot.image is not None else snapshot.text
    return cluster_words(vectors, side.items.caption, progress=progress)  # type: ignore[arg-type]


MOST_ASKING = 1_000
"""Selected pairs that ask for their neighbors; of more, a sample asks."""


def read_neighbors(side: MapSide, rows: Int[np.ndarray, " k"], k: int) -> Int[np.ndarray, " m"]:
    """Return pairs whose image (or text, in a text map) is among a row's `k` nearest by cosine.

    Args:
        side: The map that is looked at.
        rows: The pairs that ask; a thousand of them, drawn at random, where there are more.
        k: Neighbors of each, itself left out.
    """
    snapshot = read_snapshot(side.row.folder, side.items)
    vectors = snapshot.image if snapshot.image is not None else snapshot.text
    rows = at_most(rows, MOST_ASKING)
    neighbors, _ = nearest(vectors[rows], vectors, k + 1)  # type: ignore[index,arg-type]
    return np.unique(neighbors)


def same_items(a: MapSide, b: MapSide) -> bool:
    """Return whether row i is the same pair in both, so that hovering and selecting can be linked."""
    return a.identity == b.identity


def _identity(items: Items) -> str:
    ids = np.ascontiguousarray(items.id)
    digest = hashlib.blake2b(ids.view(np.uint8) if len(ids) else b"", key=str(ids.dtype).encode())
    for row in looked_at(len(ids)).tolist():
        digest.update(f"\n{items.caption[row]}".encode())
    return digest.hexdigest()


def _values(items: Items, columns: tuple[str, ...]) -> dict[str, MetadataColumn]:
    columns_read = {name: column(items.label if name == CLASS else items.metadata.get(name, [])) for name in columns}
    return {
        name: values
        for name, values in columns_read.items()
        if values is not None and (values.names or values.numbers is not None)
    }
