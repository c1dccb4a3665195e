"""Whether few items are everybody's neighbours, and what CSLS does about it: recall before and after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.hubness import csls_offsets, csls_queries, csls_vectors, k_occurrence, skewness
from trainer.analysis.retrieval import groups_of, ranks, recall_at
from trainer.analysis.standing import Progress
from trainer.charts import BOTH, ChartError
from trainer.charts.shown import Shown, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace
from trainer.store.snapshot_files import read_snapshot

MOST_QUERIES = 20_000
"""More texts than this are sampled as questions: each is compared with every image."""


@dataclass(frozen=True, kw_only=True)
class Hubness(Shown):
    """One run's images as hits of its texts.

    Attributes:
        k: Hits of each text.
        n: Texts that ask.
        pairs: Pairs of the snapshot; more than `n` where the texts were sampled.
        occurrences: How many texts find each image among their first k.
        occurrences_csls: The same when searched by CSLS.
        skewness: Of `occurrences`.
        skewness_csls: Of `occurrences_csls`.
        recall: k -> share of texts that find their own image among the first k, by cosine.
        recall_csls: The same by CSLS.
    """

    k: int
    n: int
    pairs: int
    occurrences: Int[np.ndarray, " n"]
    occurrences_csls: Int[np.ndarray, " n"]
    skewness: float
    skewness_csls: float
    recall: dict[int, float]
    recall_csls: dict[int, float]


def hubness(
    workspace: Workspace,
    run: int | str,
    *,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    k: int = 10,
    progress: Progress | None = None,
) -> Hubness:
    """k-occurrence of a snapshot's images among the hits of its texts, with and without CSLS.

    Raises:
        ChartError: The run lacks such a snapshot, or it has no texts or no images.
        StoreError: No such run.
    """
    if k < 1:
        raise ChartError("The number of hits must be at least 1.")
    row = workspace.run(run)
    chosen = choose_snapshot(workspace, row, step=step, dataset=dataset, split=split)
    snapshot = read_snapshot(chosen.folder)
    if snapshot.image is None or snapshot.text is None:
        raise ChartError(f"Run {row.name} embeds only one modality; hubs of a search need images and texts. {BOTH}")
    drawn = np.arange(snapshot.n)
    if snapshot.n > MOST_QUERIES:
        drawn = np.sort(np.random.default_rng(0).choice(snapshot.n, MOST_QUERIES, replace=False))
    image, text = snapshot.image, snapshot.text[drawn]
    _, offsets = csls_offsets(text, image, k, _part(progress, 0, 2, "scale of every image"))
    wide, asks = csls_vectors(image, offsets), csls_queries(text)
    groups = groups_of(snapshot.items.caption)
    counts = [
        k_occurrence(q, s, k, _part(progress, 2 + place, 1, "who finds whom"))
        for place, (q, s) in enumerate(((text, image), (asks, wide)))
    ]
    places = [_places(q, s, groups, drawn) for q, s in ((text, image), (asks, wide))]
    recalls = [{at: recall_at(place, at) for at in (1, 5, 10)} for place in places]
    return Hubness(
        **shown(row, snapshot),
        k=min(k, snapshot.n),
        n=len(drawn),
        pairs=snapshot.n,
        occurrences=counts[0],
        occurrences_csls=counts[1],
        skewness=skewness(counts[0]),
        skewness_csls=skewness(counts[1]),
        recall=recalls[0],
        recall_csls=recalls[1],
    )


def _places(
    query: Float[np.ndarray, "m d"], stored: Float[np.ndarray, "n d"], groups: np.ndarray, drawn: np.ndarray
) -> Int[np.ndarray, " m"]:
    if len(drawn) == len(stored):
        return ranks(query, stored, groups)
    return _ranks_of(query, stored, groups, groups[drawn])


def _ranks_of(query: np.ndarray, stored: np.ndarray, groups: np.ndarray, own: np.ndarray) -> Int[np.ndarray, " m"]:
    from trainer.analysis.tiles import exact, row_blocks

    places = np.empty(len(query), np.int64)
    for rows in row_blocks(len(query), len(stored)):
        similarity = exact(query[rows]) @ exact(stored).T
        right = own[rows, None] == groups[None, :]
        best = np.where(right, similarity, -np.inf).max(1)
        places[rows] = 1 + (~(similarity < best[:, None]) & ~right).sum(1)
    return places


def _part(progress: Progress | None, start: int, length: int, words: str) -> Progress | None:
    if progress is None:
        return None
    return lambda share, _note: progress((start + length * share) / 4, words)
