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
from trainer.analysis.search import best_of, products
from trainer.analysis.standing import Progress
from trainer.charts import ChartError
from trainer.charts.matching import matching_of
from trainer.charts.shown import Shown, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace, index_files
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot

Target = Literal["image", "text"]
CSLS_K: Final = 10
MOST_CSLS: Final = 20_000
_KEPT: Final = 8
_OFFSETS: OrderedDict[tuple[Path, Target], np.ndarray] = OrderedDict()
_LOCK: Final = Lock()


@dataclass(frozen=True, kw_only=True)
class Hits(Shown):
    """The answer of one run.

    Attributes:
        target: What was searched: `image` or `text`.
        rows: Pairs found, best first.
        cosines: Of the question and each hit.
        scores: What they are ordered by: the cosine, or with CSLS the cosine minus half the hit's own scale.
        items: What the pairs are.
        n: Items searched.
        d: Dimensions of their embeddings.
        csls: Whether hubs were taken down.
        by_index: Whether an index answered: about the best, now and then one is missed.
        sampled: Whether the snapshot holds only a part of its split.
    """

    target: Target
    rows: Int[np.ndarray, " k"]
    cosines: Float[np.ndarray, " k"]
    scores: Float[np.ndarray, " k"]
    items: Items
    n: int
    d: int
    csls: bool
    by_index: bool
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
    """The `k` items of the run's snapshot nearest to a unit embedding; exact, unless an index of a million is there.

    The first search by CSLS needs every item's own scale (`offsets`): a minute at 100,000, of which `progress` is told.

    Raises:
        ChartError: There is no such snapshot, it lacks the modality, or the question is of another width.
        StoreError: No such run.
    """
    row = workspace.run(run)
    chosen = choose_snapshot(workspace, row, step=step, dataset=dataset, split=split)
    snapshot = read_snapshot(chosen.folder)
    vectors = _vectors(snapshot, target, row.name)
    if len(query) != snapshot.d:
        raise ChartError(
            f"The question has {len(query)} dimensions and the snapshot of {row.name} {snapshot.d}: they are of "
            "different models. Choose the step that the snapshot is of."
        )
    by_index = False
    if csls:
        scores = products(vectors, query) - offsets(snapshot, target, progress) / 2
        rows, best = best_of(scores, k)
    elif (index := _index(workspace, snapshot, target)) is not None:
        rows, best = index_files.search_index(index, vectors, query, k)
        by_index = True
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
        d=snapshot.d,
        csls=csls,
        by_index=by_index,
        sampled=snapshot.sampled,
    )


def build_index(
    workspace: Workspace,
    run: int | str,
    *,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    target: Target = "image",
    progress: Progress | None = None,
) -> Path | None:
    """Builds the index that `search` will use, unless it is there; None for a snapshot too small to need one.

    Raises:
        ChartError: There is no such snapshot, or it lacks the modality.
        StoreError: No such run.
        SearchIndexError: usearch is not installed.
    """
    row = workspace.run(run)
    chosen = choose_snapshot(workspace, row, step=step, dataset=dataset, split=split)
    snapshot = read_snapshot(chosen.folder)
    vectors = _vectors(snapshot, target, row.name)
    if snapshot.n < index_files.WORTH_IT:
        return None
    file = index_files.index_file(workspace.folder, chosen.folder / f"{target}.npy")
    if not file.is_file():
        index_files.build_index(vectors, file, progress)
    return file


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
        asks = asks[np.sort(np.random.default_rng(0).choice(len(asks), MOST_CSLS, replace=False))]
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


def _index(workspace: Workspace, snapshot: Snapshot, target: Target) -> object | None:
    if snapshot.n < index_files.WORTH_IT or not index_files.has_usearch():
        return None
    file = index_files.index_file(workspace.folder, snapshot.folder / f"{target}.npy")
    return index_files.open_index(file) if file.is_file() else None
