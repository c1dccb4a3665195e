"""Cosines of matched pairs against those of unmatched ones, for each run: the hardest, a sample, or all there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis import separation as counting
from trainer.analysis.distinct import matching
from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.analysis.shuffled import shuffled_level
from trainer.analysis.similarity import auc, d_prime, hardest_texts, matched_cosines, overlap
from trainer.analysis.tiles import part_of
from trainer.analysis.unmatched import Hardest
from trainer.charts import BOTH, SAME, ChartError
from trainer.charts.facets import column_values
from trainer.charts.matching import caption_numbers, image_numbers, matching_of
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshots import choose_snapshot, sides
from trainer.store import RunRow, SnapshotRow, Workspace
from trainer.store.snapshot_files import Snapshot, read_snapshot

NOTE: Final = (
    "Cosines of two runs are not on one scale: compare AUC and d′ with the level of shuffled pairs, not the cosines."
)

MOST_IMAGES: Final = 20_000
"""More images than this are sampled: each is compared with every text, which takes minutes at 100,000 pairs."""

Unmatched = Literal["hardest", "sampled", "all"]
UNMATCHED: Final[tuple[Unmatched, ...]] = get_args(Unmatched)
"""Which unmatched pairs are compared: the k most similar of each image, some at random, or every one."""

LEVEL_IMAGES: Final = 5_000
"""Images that ask for the level of shuffled pairs; each is compared with every text, as the others are."""

SAMPLE: Final = 100_000
"""Unmatched pairs drawn where they are sampled."""


@dataclass(frozen=True)
class Facet:
    """The images of one value of a column: how well their pairs stand out from their hardest unmatched ones."""

    value: str
    n: int
    auc: float
    d_prime: float
    overlap: float
    mean_matched: float
    recall1: float


@dataclass(frozen=True, kw_only=True)
class SimilarityRun(SnapshotLabel):
    """One run's cosines.

    Attributes:
        index: Place of the run among those asked for; decides its color.
        n: Images compared, each with all texts of the split.
        pairs: Pairs of the snapshot; larger than `n` when sampled.
        rows: The pairs of the snapshot that were compared.
        matched: Cosine of each image with its own text.
        hardest: Cosines of each image with its `k` most similar distinct texts that are not its own, NaN where there
            are fewer.
        hardest_row: The pair whose text is the most similar of them, -1 where there is none.
        unmatched: Cosines of unmatched pairs, flat; where all are compared, the middles of the bins they are in.
        unmatched_weights: How many pairs have each of them; None: one each.
        matched_counts: Histogram of `matched` over the chart's edges.
        unmatched_counts: Histogram of `unmatched` over the chart's edges.
        recall1: Share of images one of whose own texts is more similar than every other text.
        intervals: Of `auc` and `d_prime`: the bootstrap interval of 95 % over images.
        shuffled: Of `auc`, `d_prime`, `overlap` and `ks`: the level of shuffled pairs, which no relation would give.
        densities: Kernel densities of matched and unmatched cosines over the chart's `grid`.
        facets: By the values of the chart's column, most images first.
    """

    index: int
    n: int
    pairs: int
    rows: Int[np.ndarray, " n"]
    matched: Float[np.ndarray, " n"]
    hardest: Float[np.ndarray, "n k"]
    hardest_row: Int[np.ndarray, " n"]
    unmatched: Float[np.ndarray, " m"]
    unmatched_weights: Int[np.ndarray, " m"] | None
    matched_counts: Int[np.ndarray, " bins"]
    unmatched_counts: Int[np.ndarray, " bins"]
    mean_matched: float
    mean_unmatched: float
    auc: float
    d_prime: float
    overlap: float
    ks: float
    recall1: float
    intervals: dict[str, tuple[float, float]]
    shuffled: Mapping[str, float]
    densities: tuple[Float[np.ndarray, " g"], Float[np.ndarray, " g"]]
    facets: tuple[Facet, ...] = ()

    @property
    def sampled(self) -> bool:
        """Whether only some of the snapshot's images were compared."""
        return self.n < self.pairs

    @property
    def n_unmatched(self) -> int:
        """How many unmatched pairs were compared."""
        return len(self.unmatched) if self.unmatched_weights is None else int(self.unmatched_weights.sum())

    def unmatched_histogram(self, edges: Float[np.ndarray, " bins+1"]) -> Int[np.ndarray, " bins"]:
        """Unmatched pairs in each bin of other edges than the chart's."""
        return np.histogram(self.unmatched, edges, weights=self.unmatched_weights)[0].astype(np.int64)


@dataclass(frozen=True)
class SimilarityChart:
    """Histograms of all runs over the same bin edges; `note` says how they may be read.

    Attributes:
        k: Unmatched texts an image keeps.
        compared: Which unmatched pairs `unmatched` are.
        facet: The column of the facets; None without.
        only: The value of it that everything but the facets was restricted to; None: all.
        grid: Cosines at which densities are given.
    """

    edges: Float[np.ndarray, " bins+1"]
    k: int
    runs: tuple[SimilarityRun, ...]
    note: str
    compared: Unmatched = "hardest"
    facet: str | None = None
    only: str | None = None
    grid: Float[np.ndarray, " g"] = field(default_factory=lambda: np.zeros(0))

    @property
    def against(self) -> str:
        """Which pairs are unmatched, as names of numbers end: `hard10`, `sampled`, `all`."""
        return f"hard{self.k}" if self.compared == "hardest" else self.compared

    @property
    def unmatched_words(self) -> str:
        """What the unmatched pairs are, for a legend."""
        words = {"hardest": f"{self.k} most similar unmatched", "sampled": "sampled unmatched", "all": "all unmatched"}
        return words[self.compared]


def similarity(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    k: int = 10,
    bins: int = 60,
    compared: Unmatched = "hardest",
    facet: str | None = None,
    only: str | None = None,
    step_b: int | None = SAME,
    progress: Progress | None = None,
) -> SimilarityChart:
    """Matched against unmatched cosines of one snapshot of each run.

    Args:
        workspace: Where the runs are.
        runs: Ids or names; their order decides the colors.
        step: Of the snapshots; None takes each run's last.
        dataset: Of the snapshots; None takes the run's first.
        split: Of the snapshots; None takes the held-out split that is drawn like the training pairs.
        k: Unmatched texts an image keeps.
        bins: Bars between the smallest and the largest cosine of all runs.
        compared: Which unmatched pairs.
        facet: A column of the items whose values are told apart.
        only: Only the images of this value of `facet`.
        step_b: Step of the second run, where it is another; one run alone is then compared with itself.
        progress: Told the share done; may raise to cancel.

    Raises:
        ChartError: A run lacks such a snapshot, its snapshot has no texts or no images, or there is no such column.
        StoreError: No such run.
    """
    if k < 1 or bins < 1:
        raise ChartError("The number of unmatched texts and the number of bars must be at least 1.")
    if only is not None and facet is None:
        raise ChartError("Name the column whose value is meant: --facet COLUMN with --only VALUE.")
    measured, shown_at = [], sides(runs, step, step_b)
    for index, (ref, at) in enumerate(shown_at):
        row = workspace.runs.get(ref)
        chosen = choose_snapshot(workspace, row, step=at, dataset=dataset, split=split)
        part = part_of(progress, index, len(shown_at))
        question = _Question(k, compared, facet, only)
        measured.append((index, row, chosen, _cosines(read_snapshot(chosen.folder), row.name, question, part)))
    edges = _edges([values for *_, found in measured for values in (found.matched, found.unmatched)], bins)
    grid = np.linspace(edges[0], edges[-1], 4 * bins + 1)
    charted = tuple(_run(index, row, chosen, found, edges, grid) for index, row, chosen, found in measured)
    return SimilarityChart(edges, k, charted, _note(charted, compared), compared, facet, only, grid)


@dataclass(frozen=True)
class _Question:
    """What is compared with what."""

    k: int
    compared: Unmatched
    facet: str | None
    only: str | None


@dataclass(frozen=True)
class _Cosines:
    """What was measured of one run, before all runs' bars are known; `counts` are in fine bins, by groups of images."""

    rows: np.ndarray
    matched: np.ndarray
    hardest: Hardest
    unmatched: np.ndarray
    weights: np.ndarray | None
    counts: tuple[np.ndarray, np.ndarray]
    bins: counting.Bins
    shuffled: Mapping[str, float]
    facets: tuple[Facet, ...]


def _cosines(snapshot: Snapshot, name: str, question: _Question, progress: Progress | None) -> _Cosines:
    if snapshot.image is None or snapshot.text is None:
        raise ChartError(f"Run {name} embeds only one modality; matched pairs need images and texts. {BOTH}")
    image, text, texts = snapshot.image, snapshot.text, matching_of(snapshot).texts
    values = None if question.facet is None else column_values(snapshot.items, question.facet)
    everything = at_most(np.arange(snapshot.n), MOST_IMAGES)
    rows = np.arange(snapshot.n) if question.only is None else np.flatnonzero(values == question.only)
    # Who asks for all pairs gets all of them, however long it takes.
    rows = rows if question.compared == "all" else at_most(rows, MOST_IMAGES)
    if not len(rows):
        raise ChartError(f"No pair of run {name} has {question.facet} = {question.only}. Choose another value.")
    matched = matched_cosines(image[rows], text[rows])
    group_of, weights = counting.anchor_groups(len(rows)), None
    if question.compared == "all":
        counts, bins, hardest = counting.all_unmatched(
            image, text, question.k, group_of, texts, rows=rows, progress=progress
        )
        there = np.flatnonzero(counts.sum(0))
        unmatched, weights = bins.centers[there], counts.sum(0)[there]
    else:
        hardest = hardest_texts(image, text, question.k, texts, rows=rows, progress=progress)
        found = hardest.cosines
        if question.compared == "sampled":
            found = counting.sampled_unmatched(image, text, SAMPLE, texts, rows=rows)
        bins = counting.spanning(matched, found)
        counts, unmatched = counting.fine_counts(found, group_of, bins), found[np.isfinite(found)]
    facets: tuple[Facet, ...] = ()
    if values is not None:
        against = hardest
        if question.only is not None or len(rows) != len(everything):
            against = hardest_texts(image, text, question.k, texts, rows=everything, progress=progress)
        facets = tuple(_facets(values[everything], matched_cosines(image[everything], text[everything]), against))
    both = (counting.fine_counts(matched, group_of, bins), counts)
    level = _level(snapshot, rows, question, (unmatched, weights))
    return _Cosines(rows, matched, hardest, unmatched, weights, both, bins, level, facets)


def _level(
    snapshot: Snapshot, rows: np.ndarray, question: _Question, others: tuple[np.ndarray, np.ndarray | None]
) -> Mapping[str, float]:
    """What this question answers of shuffled pairs: at most `LEVEL_IMAGES` of the images ask."""
    captions, images = caption_numbers(snapshot.items.caption), image_numbers(snapshot.items, snapshot.image)
    image, text = snapshot.image, snapshot.text
    assert image is not None, "shown before"
    assert text is not None, "shown before"
    if len(rows) > LEVEL_IMAGES:
        rows = np.sort(np.random.default_rng(1).choice(rows, LEVEL_IMAGES, replace=False))

    def measure(order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        matched = matched_cosines(image[rows], text[order[rows]])
        if question.compared != "hardest":
            # Which texts are an image's own changes one of its n cosines: the others stay what they are.
            return matched, _thinned(*others)
        texts = matching(captions[order], images).texts
        return matched, hardest_texts(image, text[order], question.k, texts, rows=rows).cosines

    return shuffled_level(snapshot.n, measure, asked=len(rows))


def _thinned(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The values, each as often as its weight says; of more than `SAMPLE` as many at even distances."""
    if weights is None:
        return values
    ends = np.cumsum(weights)
    count = int(min(ends[-1], SAMPLE)) if len(ends) else 0
    return values[np.searchsorted(ends, (np.arange(count) + 0.5) * (ends[-1] / max(count, 1)))] if count else values


def _run(
    index: int, row: RunRow, chosen: SnapshotRow, found: _Cosines, edges: np.ndarray, grid: np.ndarray
) -> SimilarityRun:
    first, second = found.counts
    if found.weights is None:
        measures = {"auc": auc, "d_prime": d_prime, "overlap": overlap, "ks": counting.ks}
        numbers = {name: measure(found.matched, found.unmatched) for name, measure in measures.items()}
    else:
        numbers = {name: float(v) for name, v in counting.separation(first.sum(0), second.sum(0), found.bins).items()}
    return SimilarityRun(
        index=index,
        **shown(row, chosen),
        n=len(found.matched),
        pairs=chosen.n,
        rows=found.rows,
        matched=found.matched,
        hardest=found.hardest.cosines,
        hardest_row=found.hardest.places[:, 0],
        unmatched=found.unmatched,
        unmatched_weights=found.weights,
        matched_counts=np.histogram(found.matched, edges)[0],
        unmatched_counts=np.histogram(found.unmatched, edges, weights=found.weights)[0].astype(np.int64),
        mean_matched=_mean(found.matched),
        mean_unmatched=_mean(found.unmatched, found.weights),
        recall1=_recall1(found.hardest.right, found.hardest.cosines[:, 0]),
        intervals=counting.intervals(first, second, found.bins),
        shuffled=found.shuffled,
        densities=(
            counting.density(first.sum(0), grid, found.bins),
            counting.density(second.sum(0), grid, found.bins),
        ),
        facets=found.facets,
        auc=numbers["auc"],
        d_prime=numbers["d_prime"],
        overlap=numbers["overlap"],
        ks=numbers["ks"],
    )


def _facets(values: np.ndarray, matched: np.ndarray, hardest: Hardest) -> list[Facet]:
    names, counts = np.unique(values, return_counts=True)
    made = []
    for name in names[np.argsort(-counts, kind="stable")]:
        of = values == name
        own, others = matched[of], hardest.cosines[of]
        measured = (measure(own, others) for measure in (auc, d_prime, overlap))
        made.append(Facet(str(name), len(own), *measured, _mean(own), _recall1(hardest.right[of], others[:, 0])))
    return made


def _edges(values: list[np.ndarray], bins: int) -> np.ndarray:
    finite = [v[np.isfinite(v)] for v in values]
    finite = [v for v in finite if len(v)]
    if not finite:
        raise ChartError("The embeddings are not numbers: training has diverged. Choose an earlier step.")
    low, high = min(float(v.min()) for v in finite), max(float(v.max()) for v in finite)
    if high - low < 1e-6:
        low, high = low - 0.5e-3, high + 0.5e-3
    return np.linspace(low, high, bins + 1)


def _mean(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    return float(np.average(np.asarray(values, np.float64), weights=weights)) if len(values) else float("nan")


def _recall1(right: np.ndarray, hardest: np.ndarray) -> float:
    # NaN as hardest: every text of the split has the image's own caption, nothing can be confused.
    found = (right > hardest) | (np.isnan(hardest) & np.isfinite(right))
    return float(found.mean()) if len(right) else float("nan")


def _note(runs: tuple[SimilarityRun, ...], compared: Unmatched) -> str:
    notes = [NOTE] if len(runs) > 1 else []
    if len({(run.dataset, run.split) for run in runs}) > 1:
        notes.append("The runs are shown on different data.")
    if any(run.sampled and run.n == MOST_IMAGES for run in runs):
        notes.append(f"At most {MOST_IMAGES:,} images, drawn at random, are compared with all texts.")
    if compared == "hardest" and len({run.pairs for run in runs}) > 1:
        notes.append("The runs have unlike numbers of pairs: their most similar unmatched ones do not compare.")
    if compared == "sampled":
        notes.append("Unmatched pairs are drawn at random.")
    return " ".join(notes)
