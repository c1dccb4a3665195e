"""The cosines of a run's matched and unmatched pairs, and how well they separate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from msgspec import Struct

from trainer.analysis import separation as counting
from trainer.analysis.distinct import answers
from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most, most_asking
from trainer.analysis.shuffled import shuffled_level
from trainer.analysis.similarity import auc, d_prime, hardest_texts, matched_cosines, overlap
from trainer.analysis.units import Units
from trainer.analysis.unmatched import HardestUnmatched
from trainer.charts import ChartError
from trainer.charts.facets import column_values
from trainer.charts.opened_snapshot import OpenedSnapshot, open_target
from trainer.charts.snapshot_label import SnapshotLabel
from trainer.charts.spec import Request, Target
from trainer.config.fields import option
from trainer.metrics import noted_pairs, recall_name
from trainer.store import Workspace
from trainer.store.snapshot_files import Items, Snapshot

NOTE: Final = (
    "Cosines are not comparable across runs: compare AUC and d′ with the level of shuffled pairs, not the cosines."
)
HARDEST_NOTE: Final = "Cosines are not comparable across runs: compare AUC and d′, not the cosines."


LEVEL_IMAGES: Final = 5_000
"""Images that ask for the level of shuffled pairs; each is compared with every text, as the others are."""


EMPTY: Final = "(empty)"
"""Stands for the empty value of a column."""


Separation = Literal["auc", "d_prime", "overlap", "ks", "recall1"]


COMPARABLE: Final[tuple[tuple[Separation, str, str, int], ...]] = (
    ("auc", "AUC", "Chance that a matched cosine exceeds an unmatched one; 1 is perfect.", 3),
    ("d_prime", "d′", "Difference of the means in pooled standard deviations.", 2),
    ("overlap", "Overlap", "Area shared by both histograms, 0 to 1; AUC says which of them is above.", 3),
    ("ks", "KS", "Largest distance of the two cumulative distributions; AUC says which is above.", 3),
    (
        "recall1",
        recall_name("image_to_text"),
        "Share of distinct images one of whose own texts is the most similar of the distinct texts.",
        3,
    ),
)
"""What may be compared between runs: field, words, hint and digits."""


@dataclass(frozen=True)
class SimilaritySettings:
    """The settings of the chart."""

    compared: Literal["hardest", "sampled", "all"] = option(
        "hardest",
        "Unmatched pairs",
        "The k most similar texts of each image that are not its own, 100,000 pairs drawn at random, or every one.",
        named={"hardest": "Hardest", "sampled": "Sampled", "all": "All"},
    )
    k: int = option(10, "k", "Unmatched texts that an image keeps.", low=1, high=100)
    bins: int = option(
        60, "Bars", "Most bars of a histogram; few pairs fill fewer.", low=5, high=300, redraws=True, control=False
    )
    same_axis: bool = option(
        False,
        "Same axis",
        "One cosine axis for all runs, although cosines are not comparable across runs.",
        redraws=True,
    )
    density: bool = option(False, "Density", "Smooth densities over the bars.", redraws=True)
    facet: str = option("", "Group by", "A column of the data to group by.", control=False)
    only: str = option("", "Only", "Only the images of this value of the column.", control=False)

    def against(self, k: int) -> str:
        """Return the suffix that names the unmatched pairs: `hard10`, `sampled`, `all`."""
        return f"hard{k}" if self.compared == "hardest" else self.compared

    def unmatched_words(self, k: int) -> str:
        """Return the legend text of the unmatched pairs."""
        texts = {"hardest": f"{k} most similar unmatched", "sampled": "sampled unmatched", "all": "all unmatched"}
        return texts[self.compared]


class Facet(Struct, frozen=True):
    """The pictures with one value of a column, `n` of them, and their pairs' separation from the hardest unmatched."""

    value: str
    n: int
    auc: float
    d_prime: float
    overlap: float
    mean_matched: float
    recall1: float


@dataclass(frozen=True, kw_only=True)
class SimilarityRun(SnapshotLabel):
    """One run's cosines."""

    items: Items
    n: int  # Pairs compared, each once; the pictures among them ask.
    pairs: int  # Distinct pairs of the snapshot; larger than `n` when sampled.
    k: int  # Unmatched texts of each image: as many as asked for, or as every image has.
    rows: Int[np.ndarray, " n"]  # The pairs of the snapshot that were compared.
    matched: Float[np.ndarray, " n"]  # Cosine of each image with its own text.
    # Cosines of each image with its `k` most similar distinct texts that are not its own, NaN where there are
    # fewer.
    hardest: Float[np.ndarray, "n k"]
    hardest_row: Int[np.ndarray, " n"]  # The pair whose text is the most similar of them, -1 where there is none.
    picture: Int[np.ndarray, " n"]  # The place of each pair's picture among those that ask.
    # Of each pair's picture, the largest cosine with an own text minus that with another; NaN where there is none.
    margin: Float[np.ndarray, " n"]
    # Cosines of unmatched pairs, flat; where all are compared, the middles of the bins they are in.
    unmatched: Float[np.ndarray, " m"]
    unmatched_weights: Int[np.ndarray, " m"] | None  # How many pairs have each of them; None: one each.
    mean_matched: float
    mean_unmatched: float
    auc: float
    d_prime: float
    overlap: float
    ks: float
    recall1: float  # Share of distinct pictures one of whose own texts is more similar than every other text.
    confused: int  # The other pictures: another text is as similar as every own one, or more.
    pictures: int  # How many distinct pictures ask: the independent items behind every number.
    drawn: bool  # Whether these were drawn from more.
    of_split: int  # Pairs of the split that the snapshot is a sample of, as noted; 0: of none, or unknown.
    whole_auc: float  # As the training measured it on all of these, in reports and curves; NaN where it did not.
    intervals: dict[str, tuple[float, float]]  # Of `auc` and `d_prime`: the bootstrap interval of 95 % over pictures.
    # Of `auc`, `d_prime`, `overlap` and `ks`: the level of shuffled pairs, which no relation would give.
    shuffled: Mapping[str, float]
    grid: Float[np.ndarray, " g"]  # Cosines at which densities are given.
    # Kernel densities of matched and unmatched cosines over `grid`.
    densities: tuple[Float[np.ndarray, " g"], Float[np.ndarray, " g"]]
    facets: tuple[Facet, ...] = ()  # By the values of the column that tells apart, most images first.

    @property
    def n_unmatched(self) -> int:
        """The number of unmatched pairs compared."""
        return len(self.unmatched) if self.unmatched_weights is None else int(self.unmatched_weights.sum())

    def smallest_margins(self, most: int) -> Int[np.ndarray, " k"]:
        """Return the places among `rows` of the `most` pictures with the smallest margins, smallest first.

        A picture with several captions is there once, by the one that is most similar to it.
        """
        order = np.lexsort((-self.matched, self.margin))
        return order[np.sort(np.unique(self.picture[order], return_index=True)[1])][:most]

    @property
    def confused_words(self) -> str:
        """A sentence: `10 of 512 images are closer to another caption`."""
        verb = "is" if self.confused == 1 else "are"
        return f"{self.confused:,} of {self.pictures:,} images {verb} closer to another caption"

    def shares(self, edges: Float[np.ndarray, " bins+1"]) -> tuple[Float[np.ndarray, " bins"], ...]:
        """Return the percentage of matched and of unmatched pairs in each bin."""
        counts = (
            np.histogram(self.matched, edges)[0],
            np.histogram(self.unmatched, edges, weights=self.unmatched_weights)[0],
        )
        return tuple(100 * count / max(float(count.sum()), 1.0) for count in counts)


def similarity(
    workspace: Workspace, target: Target, request: Request, settings: SimilaritySettings, progress: Progress
) -> SimilarityRun:
    """Return matched and unmatched cosines of one snapshot.

    Raises:
        ChartError: The run lacks such a snapshot, it has no texts or no images, or there is no such column.
    """
    if settings.only and not settings.facet:
        raise ChartError("Name the column whose value is meant: --facet COLUMN with --only VALUE.")
    opened = open_target(workspace, target, request)
    cosines = _cosines(opened, settings, progress)
    right, strongest = cosines.hardest.right, cosines.hardest.cosines[:, 0]
    is_first = _own_first(cosines.hardest, np.arange(len(right)))
    first, second = cosines.counts
    low, high = ends_of([cosines.matched, cosines.unmatched])
    split = opened.snapshot.split
    grid = np.linspace(low, high, 241)
    return SimilarityRun(
        **opened.label,
        items=opened.snapshot.items,
        n=len(cosines.matched),
        pairs=cosines.pairs,
        k=cosines.hardest.cosines.shape[1],
        rows=cosines.asked.rows,
        matched=cosines.matched,
        hardest=cosines.hardest.cosines[cosines.asked.of],
        hardest_row=cosines.hardest.places[cosines.asked.of, 0],
        picture=cosines.asked.of,
        margin=(right.astype(np.float64) - strongest)[cosines.asked.of],
        unmatched=cosines.unmatched,
        unmatched_weights=cosines.weights,
        mean_matched=_mean(cosines.matched),
        mean_unmatched=_mean(cosines.unmatched, cosines.weights),
        **_separation(cosines),
        recall1=_mean(is_first),
        confused=int(np.count_nonzero(~is_first)),
        pictures=len(cosines.asked.pictures),
        drawn=cosines.asked.drawn,
        of_split=(noted_pairs(split, opened.run.facts) or 0) if opened.snapshot.sampled else 0,
        whole_auc=float("nan") if settings.only else _whole_auc(workspace, opened, cosines.hardest.cosines.shape[1]),
        intervals=counting.intervals(first, second, cosines.bins),
        shuffled=cosines.shuffled,
        grid=grid,
        densities=(
            counting.density(first.sum(0), grid, cosines.bins),
            counting.density(second.sum(0), grid, cosines.bins),
        ),
        facets=cosines.facets,
    )


def _whole_auc(workspace: Workspace, opened: OpenedSnapshot, k: int) -> float:
    """Return the AUC that was stored of the split that the snapshot is a sample of; NaN for none."""
    row = opened.row
    stored = workspace.results.evaluations(row.run) if opened.snapshot.sampled else ()
    same = (each for each in stored if (each.step, each.dataset, each.split) == (row.step, row.dataset, row.split))
    return next((each.metrics.get(f"auc_hard{k}", float("nan")) for each in same), float("nan"))


class _Cosines(Struct, frozen=True):
    """The measurements of one run; `counts` are fine-binned, by image group."""

    asked: _Asked
    matched: np.ndarray
    hardest: HardestUnmatched
    unmatched: np.ndarray
    weights: np.ndarray | None
    counts: tuple[np.ndarray, np.ndarray]
    bins: counting.Bins
    shuffled: Mapping[str, float]
    facets: tuple[Facet, ...]
    pairs: int


def _cosines(opened: OpenedSnapshot, settings: SimilaritySettings, progress: Progress) -> _Cosines:
    image, text = opened.both("matched pairs need")
    snapshot, name = opened.snapshot, opened.run.short_name
    units = opened.units
    texts = units.matching.texts
    values = column_values(snapshot.items, settings.facet) if settings.facet else None
    only = "" if settings.only == EMPTY else settings.only
    rows = np.flatnonzero(values == only) if settings.only else np.arange(snapshot.n)
    if not len(rows):
        raise ChartError(f"No pair of run {name} has {settings.facet} = {settings.only}. Choose another value.")
    most = most_asking(len(texts))
    # Who asks for all pairs gets all of them, however long it takes.
    queries = _Asked(units, rows, None if settings.compared == "all" else most)
    rows, asking = queries.rows, queries.pictures
    settings = replace(settings, k=max(1, min(settings.k, texts.fewest_wrong(rows))))
    matched = matched_cosines(image[rows], text[rows])
    groups, weights = units.bootstrap_groups(asking), None
    if settings.compared == "all":
        counts, bins, hardest = counting.all_unmatched(
            image, text, settings.k, groups, texts, rows=asking, progress=progress
        )
        filled = np.flatnonzero(counts.sum(0))
        unmatched, weights = bins.centers[filled], counts.sum(0)[filled]
    else:
        hardest = hardest_texts(image, text, settings.k, texts, rows=asking, progress=progress)
        others = hardest.cosines
        if settings.compared == "sampled":
            others = counting.sampled_unmatched(image, text, counting.SAMPLE, texts, rows=asking)
        bins = counting.spanning(matched, others)
        counts, unmatched = counting.fine_counts(others, groups, bins), others[np.isfinite(others)]
    facets: tuple[Facet, ...] = ()
    if values is not None:
        every, against = queries, hardest
        if settings.only:
            every = _Asked(units, np.arange(snapshot.n), most)
            against = hardest_texts(image, text, settings.k, texts, rows=every.pictures, progress=progress)
        cosines = matched_cosines(image[every.rows], text[every.rows])
        facets = tuple(_facets(values[every.rows], cosines, against, every))
    both = (counting.fine_counts(matched, groups[queries.of], bins), counts)
    level = _level(snapshot, units, asking, settings, (unmatched, weights))
    return _Cosines(queries, matched, hardest, unmatched, weights, both, bins, level, facets, units.count("pair"))


class _Asked:
    """The pairs that are matched, each once, and the pictures that ask what is unmatched, each once.

    Attributes:
        pictures: Of the pictures: the first row of each.
        of: Of each pair, the place of its picture among `pictures`.
        drawn: Whether there are more pictures.
    """

    def __init__(self, units: Units, rows: Int[np.ndarray, " m"], most: int | None) -> None:
        every = len(rows)
        if most is not None:
            rows = rows[units.taken(rows).sample(most, "picture")]
        self.drawn = len(rows) < every
        self.rows = rows[units.taken(rows).rows("pair")]
        of_these = units.taken(self.rows)
        self.pictures, self.of = self.rows[of_these.rows("picture")], of_these.picture


def _level(
    snapshot: Snapshot,
    units: Units,
    rows: np.ndarray,
    question: SimilaritySettings,
    others: tuple[np.ndarray, np.ndarray | None],
) -> Mapping[str, float]:
    """Return the measures for shuffled pairs, with at most `LEVEL_IMAGES` of the pictures `rows`, one row each."""
    captions, images = units.caption, units.picture
    image, text = snapshot.image, snapshot.text
    assert image is not None, "shown before"
    assert text is not None, "shown before"
    rows = at_most(rows, min(LEVEL_IMAGES, most_asking(snapshot.n)), seed=1)

    def measure(order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        matched = matched_cosines(image[rows], text[order[rows]])
        if question.compared != "hardest":
            # Which texts are an image's own changes one of its n cosines: the others stay what they are.
            return matched, _thinned(*others)
        return matched, hardest_texts(image, text, question.k, answers(images, captions, order), rows=rows).cosines

    return shuffled_level(snapshot.n, measure, queries=len(rows))


def _thinned(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the values repeated by weight; more than `separation.SAMPLE` are thinned evenly."""
    if weights is None:
        return values
    ends = np.cumsum(weights)
    count = int(min(ends[-1], counting.SAMPLE)) if len(ends) else 0
    return values[np.searchsorted(ends, (np.arange(count) + 0.5) * (ends[-1] / max(count, 1)))] if count else values


def _separation(cosines: _Cosines) -> dict[str, Any]:
    if cosines.weights is not None:
        first, second = cosines.counts
        return {name: float(v) for name, v in counting.separation(first.sum(0), second.sum(0), cosines.bins).items()}
    measures = {"auc": auc, "d_prime": d_prime, "overlap": overlap, "ks": counting.ks}
    return {name: measure(cosines.matched, cosines.unmatched) for name, measure in measures.items()}


def _facets(values: np.ndarray, matched: np.ndarray, hardest: HardestUnmatched, every: _Asked) -> list[Facet]:
    names, counts = np.unique(values, return_counts=True)
    made = []
    for name in names[np.argsort(-counts, kind="stable")]:
        of = values == name
        asking = np.unique(every.of[of])
        of_value, others = matched[of], hardest.cosines[asking]
        made.append(
            Facet(
                value=str(name),
                n=len(asking),
                auc=auc(of_value, others),
                d_prime=d_prime(of_value, others),
                overlap=overlap(of_value, others),
                mean_matched=_mean(of_value),
                recall1=_mean(_own_first(hardest, asking)),
            )
        )
    return made


def _mean(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    return float(np.average(np.asarray(values, np.float64), weights=weights)) if len(values) else float("nan")


def _own_first(hardest: HardestUnmatched, asking: np.ndarray) -> Bool[np.ndarray, " m"]:
    """Return whether an own text comes first, of these pictures, places of `hardest`."""
    right, strongest = hardest.right[asking], hardest.cosines[asking, 0]
    # NaN as hardest: every text of the split has the image's own caption, nothing can be confused.
    return (right > strongest) | (np.isnan(strongest) & np.isfinite(right))


def ends_of(values: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the smallest and the largest cosine, slightly widened."""
    finite = [part[np.isfinite(part)] for part in values]
    finite = [part for part in finite if len(part)]
    if not finite:
        raise ChartError("The embeddings are not numbers: training has diverged. Choose an earlier step.")
    low, high = min(float(part.min()) for part in finite), max(float(part.max()) for part in finite)
    return (low, high) if high - low >= 1e-6 else (low - 0.5e-3, high + 0.5e-3)


def numbers(run: SimilarityRun, against: str) -> dict[str, float]:
    """Return the printed numbers of a run by name; `against` is the suffix of those that depend on unmatched pairs."""
    measured = {"mean_unmatched": run.mean_unmatched}
    measured |= {name: getattr(run, name) for name in ("auc", "d_prime", "overlap", "ks")}
    named = {f"{name}_{against}": value for name, value in measured.items()}
    for name, ends in run.intervals.items():
        named |= {f"{name}_{against}_{end}": at for end, at in zip(("low", "high"), ends, strict=True)}
    named |= {f"{name}_{against}_shuffled": level for name, level in run.shuffled.items()}
    return {"mean_matched": run.mean_matched, **named, "image_to_text_R@1": run.recall1}
