"""Changes between two snapshots of the same pairs, pair by pair, in the embedding spaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer import prompt_suites
from trainer.analysis.embedding_similarity import jaccard, procrustes_residuals
from trainer.analysis.geometry import weighted_sum
from trainer.analysis.progress import Progress, silent
from trainer.analysis.rank_margins import both_standings, standing
from trainer.analysis.tiled_neighbors import nearest, neighbors_of_each
from trainer.analysis.unit_rows import normalized
from trainer.analysis.units import UNIT_OF, Unit, Units, units_of_numbers
from trainer.analysis.zero_shot import predict
from trainer.charts import ChartError
from trainer.charts.class_task import ClassTexts, class_task
from trainer.charts.common_pairs import common_rows
from trainer.charts.matching import matching_of, units_of
from trainer.charts.metadata_columns import NO_VALUE, column, is_class
from trainer.charts.opened_snapshot import OpenedSnapshot, open_target, open_targets
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.spec import Request, Target
from trainer.metrics import RECALL_HEADING, data_label
from trainer.store import Workspace
from trainer.store.snapshot_files import Items, Snapshot

MOST_CELLS: Final = 2_000_000_000
"""Cosines of one part: all pairs with all up to 44,721 pairs; of more, so many pairs drawn at random are compared
with all."""

LEAST_DRAWN: Final = 1_000
_NONE: Final = np.empty(0, np.int64)
MOST_CLASSES: Final = 1_000
"""A column of more different words is a caption, not a class."""

Ref = tuple[int | str, int | None]
"""A run and a step of it; None is its last."""


class PairMeasure(Struct, frozen=True):
    """One number of every pair."""

    words: str
    hint: str  # What it means, a sentence.
    digits: int = 2  # After the point.
    signed: bool = False  # Whether both signs mean something: no change is 0.
    better: str = ""  # The sign of a change for the better in B; empty where neither is.
    unit: Unit = "picture"
    """What a mean over it counts once."""


BEST_IMAGE: Final = "Rank of the correct image for the caption, of the best where it has several"
MEASURES: Final[dict[str, PairMeasure]] = {
    "image_rank_a": PairMeasure("Caption rank A", "Rank of the correct caption for the image, in A.", 0),
    "image_rank_b": PairMeasure("Caption rank B", "Rank of the correct caption for the image, in B.", 0),
    "image_rank_change": PairMeasure(
        "Caption rank, B against A",
        "Rank of the correct caption in B minus in A. Lower is better.",
        0,
        signed=True,
        better="−",
    ),
    "text_rank_a": PairMeasure("Image rank A", f"{BEST_IMAGE}, in A.", 0, unit="caption"),
    "text_rank_b": PairMeasure("Image rank B", f"{BEST_IMAGE}, in B.", 0, unit="caption"),
    "text_rank_change": PairMeasure(
        "Image rank, B against A",
        f"{BEST_IMAGE}, in B minus in A. Lower is better.",
        0,
        signed=True,
        better="−",
        unit="caption",
    ),
    "margin_a": PairMeasure(
        "Margin A",
        "Correct cosine minus the best incorrect one, in standard deviations of the image's incorrect cosines, in A.",
    ),
    "margin_b": PairMeasure(
        "Margin B",
        "Correct cosine minus the best incorrect one, in standard deviations of the image's incorrect cosines, in B.",
    ),
    "margin_change": PairMeasure(
        "Margin (SD), B minus A",
        "Margin: correct cosine minus the best incorrect one, in standard deviations (SD). Higher is better.",
        2,
        signed=True,
        better="+",
    ),
    "overlap": PairMeasure(
        "Shared neighbors, Jaccard",
        "Jaccard overlap of the k nearest neighbors in A and in B: 1 the same, 0 none shared.",
    ),
    "residual": PairMeasure(
        "Procrustes residual", "Remaining distance after aligning B to A; 1 is a typical item's distance to the center."
    ),
    "verdict": PairMeasure("Same predicted class", "1 if A and B predict the same class for the image, else 0.", 0),
}


@dataclass(frozen=True)
class Changes:
    """Every pair in both snapshots."""

    a: SnapshotLabel  # The first snapshot.
    b: SnapshotLabel  # The second one; may be of the same run.
    # Whose embeddings gave the neighbors and the residual: `image`, or `text` where there are no images.
    modality: Literal["image", "text"]
    k: int  # Neighbors of each.
    items: Items  # What the pairs are, as A's snapshot says; all of A's, also those that B lacks.
    # Rows of `items` compared, ascending; what each value, neighborhood and verdict below is of.
    rows: Int[np.ndarray, " n"]
    # Measure -> a number of each compared pair; measures that a run without texts lacks are left out.
    values: dict[str, Float[np.ndarray, " n"]]
    neighbors_a: Int[np.ndarray, "n k"]  # Rows of `items` of the k nearest neighbors in A, nearest first.
    neighbors_b: Int[np.ndarray, "n k"]  # The same in B.
    classes: tuple[str, ...] = ()  # What the verdicts are about; empty without classes or texts.
    # Class that A takes each image for, -1 where the classes are not this image's.
    verdict_a: Int[np.ndarray, " n"] = field(default_factory=lambda: np.empty(0, np.int64))
    verdict_b: Int[np.ndarray, " n"] = field(default_factory=lambda: np.empty(0, np.int64))  # The same of B.
    verdict_by: str = ""  # What stood for a class: in words.
    sampled: bool = False  # Whether a snapshot holds only a part of its split.
    pairs: int = 0  # Pairs that both hold; more than `n` where those compared (each with all) were drawn at random.
    candidates: int = 0  # Of which the k neighbors of an item are the nearest.
    # Which of the compared pairs are one picture or one caption.
    units: Units = field(default_factory=lambda: units_of_numbers(_NONE, _NONE))

    @property
    def n(self) -> int:
        """The number of pairs compared."""
        return len(self.rows)

    @property
    def shares_captions(self) -> bool:
        """Whether pictures share a caption: its pairs have the same image rank."""
        return self.units.count("pair") > self.units.count("caption")

    @property
    def extent(self) -> str:
        """Of which pairs a count is: the metrics of a training are of all pairs of a split."""
        if self.n < self.pairs:
            return f"of {self.n:,} of {self.pairs:,} pairs, drawn at random"
        part = f" sampled from the split; {RECALL_HEADING} in training is of the whole split" if self.sampled else ""
        return f"of {self.n:,} pairs{part}"

    def distinct(self, measure: str) -> Float[np.ndarray, " u"]:
        """Return the measure of each picture (caption, where it is of captions) once: the copies are no evidence."""
        unit = MEASURES[measure].unit
        if self.modality == "text" and measure in ("overlap", "residual"):
            unit = "caption"
        return self.values[measure][self.units.rows(unit)]

    @property
    def note(self) -> str:
        """A description of the numbers, including n."""
        left = len(self.items) - (self.pairs or self.n)
        parts = [f"{self.n:,} pairs of {data_label(self.a)}"]
        if self.n < self.pairs:
            parts[0] = (
                f"{self.n:,} of {self.pairs:,} pairs of {data_label(self.a)}, drawn at random (seed 0), "
                "each compared with all"
            )
        parts += [self.units.words().partition(": ")[2]] if self.units.counted else []
        parts += [f"{left:,} of A are not in B"] if left else []
        parts += ["sampled from the split"] if self.sampled else []
        parts += [f"k = {self.k} {self.modality} neighbors"]
        parts += [f"predictions from {self.verdict_by}"] if self.verdict_by else []
        return " · ".join(parts)


def changes(
    workspace: Workspace,
    a: Ref,
    b: Ref,
    *,
    dataset: str | None = None,
    split: str | None = None,
    k: int = 10,
    texts: tuple[ClassTexts, ClassTexts] | None = None,
    progress: Progress = silent,
) -> Changes:
    """Compare run A's snapshot with run B's, or with another step of A, on the pairs in both.

    Up to 100,000 pairs all are compared with all, tile by tile: memory is O(n k). Of more, some drawn at random are
    compared with all (`MOST_CELLS`), and the chart's note says so.

    Args:
        dataset: Of both snapshots; None takes A's preferred.
        split: Of both snapshots.
        k: Neighbors of each item.
        texts: Class names in templates, embedded by A's model and by B's: what images are classified by. None takes
            the mean of each class's own captions.

    Raises:
        ChartError: There is no such snapshot, or the two have no item or no modality in common.
    """
    if k < 1:
        raise ChartError("The number of neighbors must be at least 1.")
    # B on the same data as A, or nothing could be compared.
    opened = open_targets(workspace, Request((Target(*a), Target(*b)), dataset, split))
    row_a, row_b = (each.run for each in opened)
    first, second = (each.snapshot for each in opened)
    at_a, at_b = common_rows(first.items, second.items)
    if not len(at_a):
        raise ChartError(f"{row_a.short_name} and {row_b.short_name} have no pair of {first.dataset} in common.")
    modality: Literal["image", "text"] = "image" if first.image is not None and second.image is not None else "text"
    sides = [_rows(getattr(s, modality), rows) for s, rows in ((first, at_a), (second, at_b))]
    if any(side is None for side in sides):
        raise ChartError(
            f"{row_a.short_name} embeds only images and {row_b.short_name} only texts: nothing can be compared."
        )
    stages = _Stages(progress)
    units = units_of(first, at_a)
    drawn = _drawn(units)
    values = _standings(first, second, at_a, at_b, drawn, stages)
    # Neighbors are other pictures: a copy would be its own nearest one in any model.
    number = units.of(UNIT_OF[modality])
    once = units.rows(UNIT_OF[modality])
    asking, of_asking = np.unique(number[drawn], return_inverse=True)
    distinct = [rows for side in sides if (rows := _rows(side, once)) is not None]
    near = [_neighbors(side, k, asking, stages.stage(f"neighbors in {x}")) for side, x in zip(distinct, "AB")]
    values["overlap"] = jaccard(*near)[of_asking]
    near = [once[neighbors[of_asking]] for neighbors in near]
    stages.stage("Procrustes", 1)(0.0, "")
    values["residual"] = procrustes_residuals(*reversed(distinct))[number[drawn]]
    verdicts = _verdicts(first, second, at_a, at_b, drawn, texts)
    by, classes, verdict_a, verdict_b = verdicts or ("", (), _NONE, _NONE)
    if verdicts is not None:
        values["verdict"] = _agreement((classes, verdict_a, verdict_b))
    return Changes(
        SnapshotLabel(**shown(row_a, first, units)),
        SnapshotLabel(**shown(row_b, second)),
        modality,
        near[0].shape[1],
        first.items,
        at_a[drawn],
        {key: values[key] for key in MEASURES if key in values},
        at_a[near[0]],
        at_a[near[1]],
        classes,
        verdict_a,
        verdict_b,
        verdict_by=by,
        sampled=first.sampled or second.sampled,
        pairs=len(at_a),
        candidates=len(once) - 1,
        units=units.taken(drawn),
    )


def _neighbors(vectors: np.ndarray, k: int, asking: np.ndarray, progress: Progress) -> Int[np.ndarray, "m k"]:
    """Return the `k` nearest other rows of the rows that ask."""
    if len(asking) == len(vectors):
        return neighbors_of_each(vectors, k, progress=progress)[0]
    return nearest(vectors[asking], vectors, k, self_rows=asking, progress=progress)[0]


def better_note(compared: Changes, key: str, both: Float[np.ndarray, "n 2"], *, log: bool) -> str:
    """Return of how many pictures, captions or pairs a measure is better, worse or equal in B."""
    unit: Unit = "pair" if key == "both" else MEASURES[f"{key}_a"].unit
    both = both[compared.units.rows(unit)]
    change = both @ ((1, -1) if log else (-1, 1))
    better, worse = (change > 0).sum(), (change < 0).sum()
    return f"of {len(both):,} {unit}s, B better on {better:,}, worse on {worse:,}, tied on {(change == 0).sum():,}"


def with_verdicts(workspace: Workspace, compared: Changes, texts: tuple[ClassTexts, ClassTexts] | None) -> Changes:
    """Return the comparison with verdicts by other classes (`texts` as in `changes`), recomputing nothing else.

    Raises:
        ChartError: The data have none of these classes, or A and B were asked for different ones.
    """
    sides = [_opened(workspace, side).snapshot for side in (compared.a, compared.b)]
    at_a, at_b = common_rows(sides[0].items, sides[1].items)
    by, *verdicts = _verdicts(*sides, at_a, at_b, np.searchsorted(at_a, compared.rows), texts) or ("", (), _NONE, _NONE)
    values = {key: numbers for key, numbers in compared.values.items() if key != "verdict"}
    if by:
        values["verdict"] = _agreement(verdicts)
    classes, verdict_a, verdict_b = verdicts
    return replace(compared, values=values, classes=classes, verdict_a=verdict_a, verdict_b=verdict_b, verdict_by=by)


def _opened(workspace: Workspace, side: SnapshotLabel) -> OpenedSnapshot:
    return open_target(workspace, Target(side.run, side.step), Request((), side.dataset, side.split))


def fitting_suites(workspace: Workspace, compared: Changes) -> tuple[str, ...]:
    """Return the names of the prompt suites that contain classes of the compared data."""
    snapshot, fitting = _opened(workspace, compared.a).snapshot, []
    for name, suite in prompt_suites.prompt_suites().items():
        try:
            class_task(snapshot, suite.classes)
        except ChartError:
            continue
        fitting.append(name)
    return tuple(fitting)


def map_values(comparison: Changes) -> dict[str, Float[np.ndarray, " n"]]:
    """Return measure -> one value per pair of A's snapshot for coloring a map; NaN where B lacks the pair."""
    values = {}
    for key, compared in comparison.values.items():
        values[key] = np.full(len(comparison.items), np.nan)
        values[key][comparison.rows] = compared
    return values


def _standings(
    first: Snapshot, second: Snapshot, at_a: np.ndarray, at_b: np.ndarray, drawn: np.ndarray, stages: _Stages
) -> dict[str, np.ndarray]:
    if any(part is None for s in (first, second) for part in (s.image, s.text)):
        return {}
    values: dict[str, np.ndarray] = {}
    for snapshot, rows, side in ((first, at_a, "a"), (second, at_b, "b")):
        matching = matching_of(snapshot, rows)
        image, text = _rows(snapshot.image, rows), _rows(snapshot.text, rows)
        letter = side.upper()
        if len(drawn) == len(rows):
            by_image, text_rank = both_standings(image, text, matching, stages.stage(f"pairs in {letter}", 4))
        else:
            by_image = standing(image, text, matching.texts, stages.stage(f"captions in {letter}"), rows=drawn)
            text_rank = standing(text, image, matching.images, stages.stage(f"images in {letter}"), rows=drawn).rank
        values |= {f"image_rank_{side}": by_image.rank.astype(np.float64)}
        values |= {f"text_rank_{side}": text_rank.astype(np.float64), f"margin_{side}": by_image.margin}
    for name in ("image_rank", "text_rank", "margin"):
        values[f"{name}_change"] = values[f"{name}_b"] - values[f"{name}_a"]
    return values


def _drawn(units: Units) -> Int[np.ndarray, " m"]:
    """Return the pairs compared with all: those of every picture, or of as many as `MOST_CELLS` allows."""
    most = max(LEAST_DRAWN, MOST_CELLS // max(len(units), 1))
    return units.sample(most, "picture")


def _verdicts(
    first: Snapshot,
    second: Snapshot,
    at_a: np.ndarray,
    at_b: np.ndarray,
    drawn: np.ndarray,
    texts: tuple[ClassTexts, ClassTexts] | None,
) -> tuple[str, tuple[str, ...], np.ndarray, np.ndarray] | None:
    """Return the classes' source, their names, and both runs' predictions for the sampled images; None without any."""
    if first.image is None or second.image is None:
        return None
    images = [_rows(snapshot.image, rows[drawn]) for snapshot, rows in ((first, at_a), (second, at_b))]
    if texts is not None:
        return _by_prompts(first, at_a[drawn], images, texts)
    names, label = classes_of(first.items, at_a)
    if len(names) < 2 or first.text is None or second.text is None:
        return None
    weights = [_class_means(_rows(s.text, rows), label, len(names)) for s, rows in ((first, at_a), (second, at_b))]
    by = f"class-mean captions ({len(names)} classes)"
    return by, names, *(predict(image, weight) for image, weight in zip(images, weights))


def _agreement(verdicts: Sequence[Any]) -> Float[np.ndarray, " n"]:
    return np.where(verdicts[1] < 0, np.nan, verdicts[1] == verdicts[2])


def _by_prompts(
    first: Snapshot, rows: np.ndarray, images: list[np.ndarray], texts: tuple[ClassTexts, ClassTexts]
) -> tuple[str, tuple[str, ...], np.ndarray, np.ndarray]:
    if texts[0].labels != texts[1].labels:
        raise ChartError("A and B have predictions for different classes. Choose the same prompt suite for both.")
    task = class_task(first, texts[0].labels)
    in_task = np.isin(rows, task.rows)
    a, b = (
        np.where(in_task, predict(image, normalized(normalized(class_texts.vectors).mean(0))), -1)
        for image, class_texts in zip(images, texts)
    )
    count, of = len(texts[0].templates), len(texts[0].labels)
    return f"{count} prompt template{'s' if count > 1 else ''} of {of} classes", texts[0].labels, a, b


def classes_of(items: Items, rows: np.ndarray) -> tuple[tuple[str, ...], Int[np.ndarray, " n"]]:
    """Return the sorted class names of these rows, and each row's class index; -1 without a class."""
    prepared = column(items.label) if is_class(items.label, MOST_CLASSES) else None
    if prepared is None or prepared.place is None:
        return (), np.full(len(rows), -1)
    names, codes = np.unique(prepared.place[rows], return_inverse=True)
    class_names = [prepared.names[name] for name in names]
    with_class = np.array([i for i, name in enumerate(class_names) if name != NO_VALUE], np.int64)
    number = np.full(len(class_names), -1)
    number[with_class] = np.arange(len(with_class))
    return tuple(class_names[i] for i in with_class), number[codes.reshape(-1)]


def _class_means(text: Float[np.ndarray, "n d"], label: Int[np.ndarray, " n"], count: int) -> Float[np.ndarray, "c d"]:
    """Return the normalized mean of each class's captions."""
    return normalized(np.stack([weighted_sum(text, np.flatnonzero(label == c)) for c in range(count)]))


def _rows(vectors: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    """Return the vectors of these rows; the memory map itself if these are all."""
    if vectors is None or (len(rows) == len(vectors) and np.array_equal(rows, np.arange(len(rows)))):
        return vectors
    return vectors[rows]


class _Stages:
    """Combined progress of several stages, each weighted by its work."""

    ALL: Final = 13
    """Twice the products of all stages, and a little for what needs none."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._done = progress, 0

    def stage(self, note: str, part: int = 2) -> Progress:
        """Return the next stage's progress with the note `note`; its work is `part` halves of a product."""
        start, self._done = self._done, self._done + part

        def report(share: float, _note: str) -> None:
            self._progress(min(1.0, (start + share * part) / self.ALL), note)

        return report
