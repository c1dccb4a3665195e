"""What the map shows of one run, read from its snapshot: pure functions for the background threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from explorer.views.map.colouring import choices
from trainer.analysis.projection import pca
from trainer.analysis.retrieval import groups_of, ranks
from trainer.analysis.similarity import matched_cosines
from trainer.charts.snapshots import choose_snapshot
from trainer.store import SnapshotRow, Workspace
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
        xy: Where the points stand.
        columns: What the points can be coloured by.
        sampled: Whether the snapshot holds only a part of its split.
    """

    run: int
    name: str
    objective: str
    row: SnapshotRow
    items: Items
    images: int
    texts: int
    xy: Float[np.ndarray, "m 2"]
    columns: tuple[str, ...]
    sampled: bool

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


@dataclass(frozen=True)
class PairNumbers:
    """How a run sees each pair: cosine of image and text, rank of the right caption among all for the image."""

    cosine: Float[np.ndarray, " n"]
    rank: Int[np.ndarray, " n"]


def read_side(workspace: Workspace, run: int, step: int | None, data: str | None) -> Side:
    """The run's snapshot of `data` at `step`, placed by PCA; None is the first data and the last step.

    Raises:
        ChartError: The run has none such; the message names those there are.
    """
    run_row = workspace.run(run)
    row = chosen_row(workspace, run, step, data)
    snapshot = read_snapshot(row.folder)
    parts = [part for part in (snapshot.image, snapshot.text) if part is not None]
    return Side(
        run=run,
        name=run_row.name,
        objective=run_row.objective,
        row=row,
        items=snapshot.items,
        images=0 if snapshot.image is None else len(snapshot.image),
        texts=0 if snapshot.text is None else len(snapshot.text),
        xy=pca(_unit_rows(parts), 2),
        columns=tuple(choices(snapshot.items)),
        sampled=snapshot.sampled,
    )


def chosen_row(workspace: Workspace, run: int, step: int | None, data: str | None) -> SnapshotRow:
    """The snapshot that charts and exports of these choices are about.

    Raises:
        ChartError: There is none.
    """
    dataset, split = split_key(workspace, run, data)
    return choose_snapshot(workspace, workspace.run(run), step=step, dataset=dataset, split=split)


def split_key(workspace: Workspace, run: int, data: str | None) -> tuple[str | None, str | None]:
    """Dataset and split of `scenes-renderings`; names of data may have dashes, so the run's own snapshots decide."""
    for row in workspace.snapshots(run) if data else ():
        if data == f"{row.dataset}-{row.split}":
            return row.dataset, row.split
    return (None, None) if not data else tuple(data.rpartition("-")[::2])  # type: ignore[return-value]


def read_numbers(side: Side) -> PairNumbers | None:
    """Cosine and rank of every pair; equal captions count as right. None without both modalities.

    Computed in the embedding space, so it is true however the map was made.
    """
    snapshot: Snapshot = read_snapshot(side.row.folder)
    if snapshot.image is None or snapshot.text is None or len(snapshot.image) != len(snapshot.text):
        return None
    groups = groups_of(snapshot.items.caption)
    cosine = matched_cosines(snapshot.image, snapshot.text)
    return PairNumbers(cosine, ranks(snapshot.image, snapshot.text, groups))


def same_items(a: Items, b: Items) -> bool:
    """Whether row i is the same pair in both, so that hovering and selecting can be linked."""
    return np.array_equal(np.asarray(a.id), np.asarray(b.id))


def _unit_rows(parts: list[np.ndarray]) -> Float[np.ndarray, "m d"]:
    vectors = np.concatenate([np.asarray(part, np.float32) for part in parts])
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
