"""What the panels of the Hopfield lab share: what is asked, and each run's stored patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.projection import principal_axes
from trainer.analysis.sampling import at_most
from trainer.analysis.tiles import exact
from trainer.charts import BOTH, SAME, ChartError
from trainer.charts.marks import RowImage
from trainer.charts.snapshot_label import Shown, labels, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace, read_snapshot
from trainer.store.snapshot_files import Items

Side = Literal["images", "texts"]
Plane = Literal["stored", "map"]


BETAS: Final = np.geomspace(0.1, 100, 61)


KEPT: Final = 12
"""Stored patterns shown with their pictures."""


MOST_MAPPED: Final = 3_000


MOST_PAIRS: Final = 4_096
"""More pairs than this are sampled where every pair retrieves: that costs n squared."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is looked at: whose embeddings, what is stored, what asks, and how sharply.

    Attributes:
        step, dataset, split: Of the snapshots; None is chosen as for every chart.
        step_b: Of the second run, where it is another.
        stored: Which embeddings are the patterns.
        only: Label of the class that is stored; empty for all.
        pairs: Rows that are stored; empty for all.
        query: Row of the pair that asks.
        asks: Its image, or its text.
        beta: Inverse temperature.
        plane: Where the path is drawn: on two principal axes of the stored patterns, or of all images and texts
            together, as the Map's PCA is.
        words: What asks instead of the pair, for people; its embeddings are given beside this.
    """

    step: int | None = None
    dataset: str | None = None
    split: str | None = None
    stored: Side = "images"
    only: str = ""
    pairs: tuple[int, ...] = ()
    query: int = 0
    asks: Literal["image", "text"] = "image"
    beta: float = 8.0
    plane: Plane = "stored"
    words: str = ""
    step_b: int | None = SAME


@dataclass(frozen=True, kw_only=True)
class Patterns(Shown):
    """One run's stored patterns, in memory: read once, asked at every move of the slider.

    Attributes:
        index: Place of the run among those asked for; decides its colour.
        label: What to call it beside the others: with its step where theirs are not the same.
        rows: Rows of the snapshot that are stored.
        stored: Their embeddings in float32.
        image, text: All pairs of the snapshot.
        plane, mean, axes: Of the plane on which the stored patterns are drawn (PCA); `shares`: its variance.
        points: The stored patterns on it, at most 3,000.
    """

    index: int
    pairs: int
    items: Items
    rows: Int[np.ndarray, " n"]
    stored: Float[np.ndarray, "n d"]
    side: Side
    plane: Plane
    image: Float[np.ndarray, "m d"] | None
    text: Float[np.ndarray, "m d"] | None
    mean: Float[np.ndarray, " d"]
    axes: Float[np.ndarray, "d 2"]
    shares: Float[np.ndarray, " 2"]
    points: Float[np.ndarray, "p 2"]
    label: str = ""

    @property
    def n(self) -> int:
        """Stored patterns."""
        return len(self.rows)

    def state(self, asked: Asked) -> Float[np.ndarray, " d"]:
        """The embedding of the pair that asks."""
        vectors = self.image if asked.asks == "image" else self.text
        if vectors is None:
            raise ChartError(f"Run {self.name} has no {asked.asks}s: ask with the other modality. {BOTH}")
        if not 0 <= asked.query < len(vectors):
            raise ChartError(f"There is no pair {asked.query}; the snapshot has 0 to {len(vectors) - 1}.")
        return exact(vectors[asked.query]).astype(np.float64)

    def place(self, states: Float[np.ndarray, "t d"]) -> Float[np.ndarray, "t 2"]:
        """States on the plane."""
        return (states - self.mean) @ self.axes


def labelled(gathered: Sequence[Patterns]) -> list[Patterns]:
    """The same runs, told apart by their labels."""
    return [replace(run, label=label) for run, label in zip(gathered, labels(gathered), strict=True)]


def patterns(workspace: Workspace, run: int | str, asked: Asked, index: int = 0) -> Patterns:
    """The run's stored patterns at the step asked for; `step_b` is for whoever asks for several.

    Raises:
        ChartError: No such snapshot, nothing stored, or embeddings that are no numbers.
        StoreError: No such run.
    """
    row = workspace.runs.get(run)
    chosen = choose_snapshot(workspace, row, step=asked.step, dataset=asked.dataset, split=asked.split)
    snapshot = read_snapshot(chosen.folder)
    vectors = snapshot.image if asked.stored == "images" else snapshot.text
    if vectors is None:
        raise ChartError(f"Run {row.name} embeds no {asked.stored}: store the other modality. {BOTH}")
    rows = _stored_rows(snapshot.items, asked, snapshot.n)
    stored = exact(vectors[rows])
    if not np.isfinite(stored).all():
        raise ChartError(
            f"The embeddings of {row.name} are not numbers: training has diverged. Choose an earlier step."
        )
    parts = [part for part in (snapshot.image, snapshot.text) if part is not None]
    spanning = stored if asked.plane == "stored" else np.concatenate([exact(part) for part in parts])
    mean, axes, shares = principal_axes(spanning, 2)
    drawn = at_most(len(stored), MOST_MAPPED)
    return Patterns(
        **shown(row, snapshot),
        index=index,
        pairs=snapshot.n,
        items=snapshot.items,
        rows=rows,
        stored=stored,
        side=asked.stored,
        plane=asked.plane,
        image=snapshot.image,
        text=snapshot.text,
        mean=mean,
        axes=axes,
        shares=shares,
        points=(stored[drawn].astype(np.float64) - mean) @ axes,
        label=row.name,
    )


def cell(run: Patterns, row: int, share: float, *, strong: bool) -> RowImage:
    """A stored pattern's picture with its share."""
    return RowImage(row, run.items.path[row], run.items.caption[row], percent(share), share, strong)


def percent(share: float) -> str:
    """A share in percent, with as many digits as it needs: `98.2 %`, `0.07 %`."""
    return f"{100 * share:.1f} %" if share >= 0.001 else "< 0.1 %" if share > 0 else "0 %"


def both_of(run: Patterns, asked: Asked) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs, or a sample that holds the pair which asks."""
    if run.image is None or run.text is None:
        raise ChartError(f"Run {run.name} embeds only one modality; this panel needs images and texts. {BOTH}")
    if not 0 <= asked.query < run.pairs:
        raise ChartError(f"There is no pair {asked.query}; the snapshot has 0 to {run.pairs - 1}.")
    rows = at_most(run.pairs, MOST_PAIRS)
    if asked.query not in rows:
        rows = np.sort(np.append(rows[1:], asked.query))
    return exact(run.image[rows]), exact(run.text[rows]), rows


def _stored_rows(items: Items, asked: Asked, n: int) -> Int[np.ndarray, " k"]:
    rows = np.arange(n)
    if asked.pairs:
        rows = np.unique(np.array([pair for pair in asked.pairs if 0 <= pair < n], dtype=np.int64))
    if asked.only:
        rows = rows[np.array([items.label[row] == asked.only for row in rows.tolist()], dtype=bool)]
    if not len(rows):
        there = ", ".join(sorted(set(items.label) - {""})[:12])
        raise ChartError(f"Nothing is stored: no pair of the class {asked.only!r}; there are {there or 'no classes'}.")
    return rows


def head(gathered: Sequence[Patterns], asked: Asked) -> tuple[str, ...]:
    """Runs, what is stored and what asks, in words."""
    runs = "; ".join(f"{run.name}, step {run.step:,}, {run.dataset} {run.split}" for run in gathered)
    which = f"class {asked.only}" if asked.only else f"{len(asked.pairs):,} selected pairs" if asked.pairs else "all"
    asks = asked.words or f"{asked.asks} of pair {asked.query}"
    stored = ", ".join(sorted({f"{run.n:,}" for run in gathered}))
    return runs, f"stored: {asked.stored}, {which}, n = {stored} · asks: {asks} · beta = {asked.beta:g}"


def minus(value: float, digits: int = 3) -> str:
    """With a true minus sign."""
    return f"{value:.{digits}f}".replace("-", "−")
