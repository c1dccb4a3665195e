"""What a question finds in a snapshot: the nearest images or texts, by cosine or by CSLS."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.hubness import mean_of_nearest
from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.analysis.search import best_of, products
from trainer.charts import ChartError
from trainer.charts.matching import matching_of
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot

Target = Literal["image", "text"]
CSLS_K: Final = 10
MOST_CSLS: Final = 20_000
_KEPT: Final = 8
_OFFSETS: OrderedDict[tuple[Path, Target], np.ndarray] = OrderedDict()
_LOCK: Final = Lock()


@dataclass(frozen=True, kw_only=True)
class Hits(SnapshotLabel):
    """The answer of one run.

    Attributes:
        target: What was searched: `image` or `text`.
        rows: Pairs found, best first.
        cosines: Of the question and each hit.
        scores: What they are ordered by: the cosine, or with CSLS the cosine minus half the hit's own scale.
        items: What the pairs are.
        n: Items searched.
        csls: Whether hubs were taken down.
        sampled: Whether the snapshot holds only a part of its split.
    """

    target: Target
    rows: Int[np.ndarray, " k"]
    cosines: Float[np.ndarray, " k"]
    scores: Float[np.ndarray, " k"]
    items: Items
    n: int
    csls: bool
    sampled: bool


def search(
    workspace: Workspace,
    run: int | str,
    query: Float[np.ndarray, " d"],
    *,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    target: Target = "image",
    k: int = 50,
    csls: bool = False,
    progress: Progress | None = None,
) -> Hits:
    """The `k` items of the run's snapshot nearest to a unit embedding; exact.

    The first search by CSLS needs every item's own scale (`offsets`): a minute at 100,000, of which `progress` is told.

    Raises:
        ChartError: There is no such snapshot, it lacks the modality, or the question is of another width.
        StoreError: No such run.
    """
    row = workspace.runs.get(run)
    chosen = choose_snapshot(workspace, row, step=step, dataset=dataset, split=split)
    snapshot = read_snapshot(chosen.folder)
    vectors = _vectors(snapshot, target, row.name)
    if len(query) != snapshot.d:
        raise ChartError(
            f"The question has {len(query)} dimensions and the snapshot of {row.name} {snapshot.d}: they are of "
            "different models. Choose the step that the snapshot is of."
        )
    if csls:
        scores = products(vectors, query) - offsets(snapshot, target, progress) / 2
        rows, best = best_of(scores, k)
    else:
        rows, best = best_of(products(vectors, query), k)
    cosines = np.asarray(vectors[rows], np.float32) @ np.asarray(query, np.float32)
    return Hits(
        **shown(row, snapshot),
        target=target,
        rows=rows,
        cosines=cosines,
        scores=best,
        items=snapshot.items,
        n=snapshot.n,
        csls=csls,
        sampled=snapshot.sampled,
    )


def offsets(snapshot: Snapshot, target: Target, progress: Progress | None = None) -> Float[np.ndarray, " n"]:
    """Every item's own scale: its mean cosine to its 10 nearest of the other modality, which stand for the questions.

    Kept for the latest snapshots. At most 20,000 distinct items of the other modality, drawn at random, are asked.

    Raises:
        ChartError: The snapshot lacks the other modality.
    """
    key = (snapshot.folder, target)
    with _LOCK:
        if key in _OFFSETS:
            _OFFSETS.move_to_end(key)
            return _OFFSETS[key]
    stored = _vectors(snapshot, target, snapshot.model)
    found = matching_of(snapshot)
    asking = found.texts if target == "image" else found.images
    asks = asking.gallery(_vectors(snapshot, "text" if target == "image" else "image", snapshot.model))
    if len(asks) > MOST_CSLS:
        asks = asks[at_most(len(asks), MOST_CSLS)]
    tell = None if progress is None else lambda share, _note: progress(share, f"scale of every {target}")
    scale = mean_of_nearest(stored, asks, CSLS_K, tell)
    with _LOCK:
        _OFFSETS[key] = scale
        while len(_OFFSETS) > _KEPT:
            _OFFSETS.popitem(last=False)
    return scale


def _vectors(snapshot: Snapshot, target: Target, name: str) -> np.ndarray:
    vectors = snapshot.image if target == "image" else snapshot.text
    if vectors is None:
        raise ChartError(f"The snapshot of {name} has no {target}s to search. Search its other modality.")
    return vectors
