"""What changed between two snapshots of the same pairs, pair by pair, computed in the embedding spaces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.retrieval import groups_of
from trainer.analysis.spaces import jaccard, neighbour_rows, procrustes_residuals
from trainer.analysis.standing import Progress, standing
from trainer.analysis.zero_shot import predict
from trainer.charts import ChartError
from trainer.charts.shown import Shown, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot

Ref = tuple[int | str, int | None]
"""A run and a step of it; None is its last."""


@dataclass(frozen=True)
class Measure:
    """One number of every pair.

    Attributes:
        words: What it is called.
        hint: What it means, a sentence.
        digits: After the point.
        signed: Whether both signs mean something: no change is 0.
    """

    words: str
    hint: str
    digits: int = 2
    signed: bool = False


MEASURES: Final[dict[str, Measure]] = {
    "image_rank_a": Measure("Caption rank A", "Place of the right caption among all, asked by the image, in A.", 0),
    "image_rank_b": Measure("Caption rank B", "Place of the right caption among all, asked by the image, in B.", 0),
    "image_rank_change": Measure(
        "Caption rank, B − A", "Change of the rank of the right caption; negative: better in B.", 0, signed=True
    ),
    "text_rank_a": Measure("Image rank A", "Place of the right image among all, asked by the caption, in A.", 0),
    "text_rank_b": Measure("Image rank B", "Place of the right image among all, asked by the caption, in B.", 0),
    "text_rank_change": Measure(
        "Image rank, B − A", "Change of the rank of the right image; negative: better in B.", 0, signed=True
    ),
    "margin_a": Measure(
        "Margin A", "Right cosine minus the best wrong one, in deviations of the image's wrong cosines, in A."
    ),
    "margin_b": Measure(
        "Margin B", "Right cosine minus the best wrong one, in deviations of the image's wrong cosines, in B."
    ),
    "margin_change": Measure(
        "Margin, B − A", "Change of the standardised margin; positive: clearer in B.", 2, signed=True
    ),
    "overlap": Measure(
        "Shared neighbours", "Jaccard overlap of the k nearest neighbours in A and in B: 1 the same, 0 none shared."
    ),
    "residual": Measure(
        "Procrustes residual", "Distance left after B is laid on A; 1 is a typical item's distance to the centre."
    ),
    "verdict": Measure("Same verdict", "1 where A and B take the image for the same class, 0 where not.", 0),
}


@dataclass(frozen=True)
class Changes:
    """Every pair that both snapshots hold.

    Attributes:
        a: The first snapshot.
        b: The second one; may be of the same run.
        modality: Whose embeddings gave the neighbours and the residual: `image`, or `text` where there are no images.
        k: Neighbours of each.
        items: What the pairs are, as A's snapshot says; all of A's, also those that B lacks.
        rows: Rows of `items` compared, ascending; row numbers elsewhere are places in this array.
        values: Measure -> a number of each compared pair; measures that a run without texts lacks are left out.
        neighbours_a: Places of the k nearest neighbours in A, nearest first.
        neighbours_b: The same in B.
        verdicts: Class numbers by A and by B, and the classes' names; empty without classes or texts.
        sampled: Whether a snapshot holds only a part of its split.
    """

    a: Shown
    b: Shown
    modality: Literal["image", "text"]
    k: int
    items: Items
    rows: Int[np.ndarray, " n"]
    values: dict[str, Float[np.ndarray, " n"]]
    neighbours_a: Int[np.ndarray, "n k"]
    neighbours_b: Int[np.ndarray, "n k"]
    classes: tuple[str, ...] = ()
    verdict_a: Int[np.ndarray, " n"] = field(default_factory=lambda: np.empty(0, np.int64))
    verdict_b: Int[np.ndarray, " n"] = field(default_factory=lambda: np.empty(0, np.int64))
    sampled: bool = False

    @property
    def n(self) -> int:
        """Pairs compared."""
        return len(self.rows)

    @property
    def note(self) -> str:
        """What the numbers are about, n included."""
        left = len(self.items) - self.n
        parts = [f"{self.n:,} pairs of {self.a.dataset}, {self.a.split}"]
        parts += [f"{left:,} of A are not in B"] if left else []
        parts += ["a sample of the split"] if self.sampled else []
        parts += [f"{self.k} neighbours among {self.modality}s"]
        return " · ".join(parts)


def changes(
    workspace: Workspace,
    a: Ref,
    b: Ref,
    *,
    dataset: str | None = None,
    split: str | None = None,
    k: int = 10,
    progress: Progress | None = None,
) -> Changes:
    """Compares run A's snapshot with run B's, or with another step of A, on the pairs that both hold.

    All pairs are compared with all, tile by tile: memory is O(n k). Nothing is sampled. Minutes at 100,000 pairs.

    Args:
        workspace: Where the runs are.
        a: Run and step.
        b: Run and step.
        dataset: Of both snapshots; None takes A's preferred.
        split: Of both snapshots.
        k: Neighbours of each item.
        progress: Told how far it is; raises to cancel.

    Raises:
        ChartError: There is no such snapshot, or the two have no item or no modality in common.
        StoreError: No such run.
    """
    if k < 1:
        raise ChartError("The number of neighbours must be at least 1.")
    row_a, row_b = workspace.run(a[0]), workspace.run(b[0])
    chosen_a = choose_snapshot(workspace, row_a, step=a[1], dataset=dataset, split=split)
    # B on the same data as A, or nothing could be compared.
    chosen_b = choose_snapshot(workspace, row_b, step=b[1], dataset=chosen_a.dataset, split=chosen_a.split)
    first, second = read_snapshot(chosen_a.folder), read_snapshot(chosen_b.folder)
    at_a, at_b = common_rows(first.items, second.items)
    if not len(at_a):
        raise ChartError(f"{row_a.name} and {row_b.name} have no pair of {chosen_a.dataset} in common.")
    modality: Literal["image", "text"] = "image" if first.image is not None and second.image is not None else "text"
    sides = [_rows(getattr(s, modality), rows) for s, rows in ((first, at_a), (second, at_b))]
    if any(side is None for side in sides):
        raise ChartError(f"{row_a.name} embeds only images and {row_b.name} only texts: nothing can be compared.")
    told = _Stages(progress)
    values = _standings(first, second, at_a, at_b, told)
    near = [neighbour_rows(side, k, progress=told.stage(f"neighbours in {x}")) for side, x in zip(sides, "AB")]
    values["overlap"] = jaccard(*near)
    told.stage("Procrustes")(0.0, "")
    values["residual"] = procrustes_residuals(*reversed(sides))
    verdicts = _verdicts(first, second, at_a, at_b)
    if verdicts:
        values["verdict"] = (verdicts[1] == verdicts[2]).astype(np.float64)
    return Changes(
        Shown(**shown(row_a, first)),
        Shown(**shown(row_b, second)),
        modality,
        near[0].shape[1],
        first.items,
        at_a,
        {key: values[key] for key in MEASURES if key in values},
        *near,
        *verdicts,
        sampled=first.sampled or second.sampled,
    )


def map_values(found: Changes) -> dict[str, Float[np.ndarray, " n"]]:
    """Measure -> one value per pair of A's snapshot, NaN where B lacks the pair: what a map can be coloured by."""
    values = {}
    for key, compared in found.values.items():
        values[key] = np.full(len(found.items), np.nan)
        values[key][found.rows] = compared
    return values


def common_rows(a: Items, b: Items) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Rows of A, ascending, and the rows of B that hold the same items; by item id."""
    if np.array_equal(a.id, b.id):
        rows = np.arange(len(a.id))
        return rows, rows
    _, at_a, at_b = np.intersect1d(np.asarray(a.id, str), np.asarray(b.id, str), return_indices=True)
    order = np.argsort(at_a)
    return at_a[order].astype(np.int64), at_b[order].astype(np.int64)


def _standings(
    first: Snapshot, second: Snapshot, at_a: np.ndarray, at_b: np.ndarray, told: _Stages
) -> dict[str, np.ndarray]:
    if any(part is None for s in (first, second) for part in (s.image, s.text)):
        return {}
    values: dict[str, np.ndarray] = {}
    for snapshot, rows, side in ((first, at_a, "a"), (second, at_b, "b")):
        groups = groups_of([snapshot.items.caption[row] for row in rows])
        image, text = _rows(snapshot.image, rows), _rows(snapshot.text, rows)
        by_image = standing(image, text, groups, told.stage(f"captions in {side.upper()}"))
        by_text = standing(text, image, groups, told.stage(f"images in {side.upper()}"))
        values |= {f"image_rank_{side}": by_image.rank.astype(np.float64)}
        values |= {f"text_rank_{side}": by_text.rank.astype(np.float64), f"margin_{side}": by_image.margin}
    for name in ("image_rank", "text_rank", "margin"):
        values[f"{name}_change"] = values[f"{name}_b"] - values[f"{name}_a"]
    return values


def _verdicts(
    first: Snapshot, second: Snapshot, at_a: np.ndarray, at_b: np.ndarray
) -> tuple[()] | tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Class names and what each run takes every image for, by the mean of each class's own captions."""
    labels = np.array([first.items.label[row] for row in at_a], dtype=str)
    names = tuple(sorted(set(labels.tolist()) - {""}))
    if len(names) < 2 or any(part is None for s in (first, second) for part in (s.image, s.text)):
        return ()
    verdicts = []
    for snapshot, rows in ((first, at_a), (second, at_b)):
        text = _rows(snapshot.text, rows)
        weights = np.stack([np.asarray(text[labels == name], np.float32).mean(0) for name in names])
        weights /= np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), 1e-12)
        verdicts.append(predict(_rows(snapshot.image, rows), weights))
    return names, *verdicts


def _rows(vectors: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    """The vectors of these rows; the memory map itself where these are all."""
    if vectors is None or (len(rows) == len(vectors) and np.array_equal(rows, np.arange(len(rows)))):
        return vectors
    return vectors[rows]


class _Stages:
    """One progress from many: each stage takes an equal share."""

    COUNT: Final = 7

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._done = progress, 0

    def stage(self, words: str) -> Progress:
        """The progress of the next stage; its note is `words`."""
        place, self._done = self._done, self._done + 1

        def tell(share: float, _note: str) -> None:
            if self._progress is not None:
                self._progress(min(1.0, (place + share) / self.COUNT), words)

        return tell
