"""Cosines of matched pairs against each image's hardest unmatched texts, for each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.retrieval import groups_of
from trainer.analysis.similarity import auc, d_prime, hardest_unmatched, matched_cosines, overlap
from trainer.charts import BOTH, ChartError
from trainer.charts.shown import Shown, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace
from trainer.store.snapshot_files import read_snapshot

NOTE: Final = "Cosines of two runs are not on one scale: compare AUC, d′ and overlap, not the cosines."

MOST_IMAGES: Final = 20_000
"""More images than this are sampled: each is compared with every text, which takes minutes at 100,000 pairs."""


@dataclass(frozen=True, kw_only=True)
class SimilarityRun(Shown):
    """One run's cosines.

    Attributes:
        index: Place of the run among those asked for; decides its colour.
        n: Images compared, each with all texts of the split.
        pairs: Pairs of the snapshot; larger than `n` when sampled.
        matched: Cosine of each image with its own text.
        unmatched: Cosines of each image with its `k` most similar texts of another caption, flat.
        matched_counts: Histogram of `matched` over the chart's edges.
        unmatched_counts: Histogram of `unmatched` over the chart's edges.
        recall1: Share of images whose own text is more similar than every other.
    """

    index: int
    n: int
    pairs: int
    matched: Float[np.ndarray, " n"]
    unmatched: Float[np.ndarray, " m"]
    matched_counts: Int[np.ndarray, " bins"]
    unmatched_counts: Int[np.ndarray, " bins"]
    mean_matched: float
    mean_unmatched: float
    auc: float
    d_prime: float
    overlap: float
    recall1: float

    @property
    def sampled(self) -> bool:
        """Whether only some of the snapshot's images were compared."""
        return self.n < self.pairs


@dataclass(frozen=True)
class SimilarityChart:
    """Histograms of all runs over the same bin edges; `note` says how they may be read."""

    edges: Float[np.ndarray, " bins+1"]
    k: int
    runs: tuple[SimilarityRun, ...]
    note: str


def similarity(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    k: int = 10,
    bins: int = 60,
) -> SimilarityChart:
    """Matched against the `k` hardest unmatched cosines of one snapshot of each run.

    Args:
        workspace: Where the runs are.
        runs: Ids or names; their order decides the colours.
        step: Of the snapshots; None takes each run's last.
        dataset: Of the snapshots; None takes the run's first.
        split: Of the snapshots; None takes the held-out split that is drawn like the training pairs.
        k: Unmatched texts an image keeps.
        bins: Bars between the smallest and the largest cosine of all runs.

    Raises:
        ChartError: A run lacks such a snapshot, or its snapshot has no texts or no images.
        StoreError: No such run.
    """
    if k < 1 or bins < 1:
        raise ChartError("The number of unmatched texts and the number of bars must be at least 1.")
    measured = []
    for index, ref in enumerate(runs):
        row = workspace.run(ref)
        chosen = choose_snapshot(workspace, row, step=step, dataset=dataset, split=split)
        cosines = _cosines(chosen.folder, k, row.name)
        measured.append((index, row, chosen, *cosines))
    edges = _edges([values for *_, matched, unmatched in measured for values in (matched, unmatched)], bins)
    charted = tuple(
        SimilarityRun(
            index=index,
            **shown(row, chosen),
            n=len(matched),
            pairs=chosen.n,
            matched=matched,
            unmatched=(present := unmatched[np.isfinite(unmatched)]),
            matched_counts=np.histogram(matched, edges)[0],
            unmatched_counts=np.histogram(present, edges)[0],
            mean_matched=_mean(matched),
            mean_unmatched=_mean(present),
            auc=auc(matched, present),
            d_prime=d_prime(matched, present),
            overlap=overlap(matched, present),
            recall1=_recall1(matched, unmatched[:, 0]),
        )
        for index, row, chosen, matched, unmatched in measured
    )
    return SimilarityChart(edges, k, charted, _note(charted))


def _cosines(folder: Path, k: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    snapshot = read_snapshot(folder)
    if snapshot.image is None or snapshot.text is None:
        raise ChartError(f"Run {name} embeds only one modality; matched pairs need images and texts. {BOTH}")
    groups = groups_of(snapshot.items.caption)
    rows = np.arange(snapshot.n)
    if snapshot.n > MOST_IMAGES:
        rows = np.sort(np.random.default_rng(0).choice(snapshot.n, MOST_IMAGES, replace=False))
    matched = matched_cosines(snapshot.image[rows], snapshot.text[rows])
    unmatched = hardest_unmatched(snapshot.image, snapshot.text, k, groups, rows=rows)
    return matched, unmatched


def _edges(values: list[np.ndarray], bins: int) -> np.ndarray:
    finite = [v[np.isfinite(v)] for v in values]
    finite = [v for v in finite if len(v)]
    if not finite:
        raise ChartError("The embeddings are not numbers: training has diverged. Choose an earlier step.")
    low, high = min(float(v.min()) for v in finite), max(float(v.max()) for v in finite)
    if high - low < 1e-6:
        low, high = low - 0.5e-3, high + 0.5e-3
    return np.linspace(low, high, bins + 1)


def _mean(values: np.ndarray) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else float("nan")


def _recall1(matched: np.ndarray, hardest: np.ndarray) -> float:
    # NaN as hardest: every text of the split has the image's own caption, nothing can be confused.
    right = (matched > hardest) | (np.isnan(hardest) & np.isfinite(matched))
    return float(right.mean()) if len(matched) else float("nan")


def _note(runs: tuple[SimilarityRun, ...]) -> str:
    notes = [NOTE] if len(runs) > 1 else []
    if len({(run.dataset, run.split) for run in runs}) > 1:
        notes.append("The runs are shown on different data.")
    if any(run.sampled for run in runs):
        notes.append(f"At most {MOST_IMAGES:,} images, drawn at random, are compared with all texts.")
    return " ".join(notes)
