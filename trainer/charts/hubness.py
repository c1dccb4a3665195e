"""Whether few items are everybody's neighbours, and what CSLS does about it: recall before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from trainer.analysis.hubness import csls_offsets, csls_queries, csls_vectors, k_occurrence, skewness
from trainer.analysis.retrieval import ranks, recall_at
from trainer.analysis.standing import Progress
from trainer.analysis.tiles import exact
from trainer.charts import BOTH, ChartError
from trainer.charts.matching import matching_of
from trainer.charts.shown import Shown, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace
from trainer.store.snapshot_files import read_snapshot

MOST_QUERIES = 20_000
"""More distinct texts than this are sampled as questions: each is compared with every distinct image."""


@dataclass(frozen=True, kw_only=True)
class Hubness(Shown):
    """One run's images as hits of its texts.

    Attributes:
        k: Hits of each text.
        n: Distinct texts that ask.
        texts: Distinct texts of the snapshot; more than `n` where they were sampled.
        images: Distinct images of the snapshot.
        pairs: Pairs of the snapshot.
        rows: Of each distinct image the first pair that has it.
        occurrences: How many texts find each distinct image among their first k.
        occurrences_csls: The same when searched by CSLS.
        skewness: Of `occurrences`.
        skewness_csls: Of `occurrences_csls`.
        recall: k -> share of texts that find their own image among the first k, by cosine.
        recall_csls: The same by CSLS.
    """

    k: int
    n: int
    texts: int
    images: int
    pairs: int
    rows: Int[np.ndarray, " i"]
    occurrences: Int[np.ndarray, " i"]
    occurrences_csls: Int[np.ndarray, " i"]
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
    found = matching_of(snapshot)
    drawn = found.texts.rows
    if len(drawn) > MOST_QUERIES:
        drawn = np.sort(np.random.default_rng(0).choice(drawn, MOST_QUERIES, replace=False))
    image, text = exact(found.images.gallery(snapshot.image)), exact(snapshot.text[drawn])
    _, offsets = csls_offsets(text, image, k, _part(progress, 0, 2, "scale of every image"))
    wide, asks = csls_vectors(image, offsets), csls_queries(text)
    # Both sides are distinct already: questions are numbered by the captions, the images in their own order.
    answers = replace(found.images, question=found.images.question[drawn], rows=np.arange(len(image)))
    counts = [
        k_occurrence(q, s, k, _part(progress, 2 + place, 1, "who finds whom"))
        for place, (q, s) in enumerate(((text, image), (asks, wide)))
    ]
    places = [ranks(q, s, answers) for q, s in ((text, image), (asks, wide))]
    recalls = [{at: recall_at(place, at) for at in (1, 5, 10)} for place in places]
    return Hubness(
        **shown(row, snapshot),
        k=min(k, len(image)),
        n=len(drawn),
        texts=len(found.texts),
        images=len(image),
        pairs=snapshot.n,
        rows=found.images.rows,
        occurrences=counts[0],
        occurrences_csls=counts[1],
        skewness=skewness(counts[0]),
        skewness_csls=skewness(counts[1]),
        recall=recalls[0],
        recall_csls=recalls[1],
    )


def _part(progress: Progress | None, start: int, length: int, words: str) -> Progress | None:
    if progress is None:
        return None
    return lambda share, _note: progress((start + length * share) / 4, words)
