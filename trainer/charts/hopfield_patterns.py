"""Shared by the Hopfield charts: each run's stored patterns, and the pair used as query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

import numpy as np
from jaxtyping import Bool, Float, Int
from msgspec import Struct

from trainer.analysis.label_shares import percent
from trainer.analysis.progress import Progress, silent
from trainer.analysis.projection import scatter_of
from trainer.analysis.sampling import at_most
from trainer.analysis.tiles import exact
from trainer.analysis.units import UNIT_OF, Unit, Units
from trainer.charts import BOTH, ChartError
from trainer.charts.common_pairs import common_rows, row_of_pair, same_pairs
from trainer.charts.marks import RowImage
from trainer.charts.opened_snapshot import OpenedSnapshot, open_target
from trainer.charts.snapshot_label import SnapshotLabel
from trainer.charts.spec import Request, Target
from trainer.config.fields import option
from trainer.metrics import data_label
from trainer.store import Workspace
from trainer.store.snapshot_files import Items

Stored = Literal["images", "texts"]
Asks = Literal["image", "text"]
Plane = Literal["stored", "map"]

BETAS: Final = np.geomspace(0.1, 100, 61)

KEPT: Final = 12
"""Stored patterns shown with their images."""

MOST_MAPPED: Final = 3_000

MOST_PAIRS: Final = 4_096
"""More pairs than this are sampled where every pair retrieves: that costs n squared."""


def beta_setting(*, redraws: bool = False) -> Any:
    """Return the field of the inverse temperature."""
    meaning = "Inverse temperature of the Hopfield retrieval: the larger, the fewer patterns are averaged."
    return option(8.0, "Beta β", meaning, low=0.1, high=100.0, log=True, redraws=redraws)


def stored_setting() -> Any:
    """Return the field of the stored modality."""
    return option("images", "Stored patterns", "The embeddings that are stored.")


def query_setting() -> Any:
    """Return the field of the query's pair."""
    return option(0, "Query", "The pair that is the query, a row of the snapshot.", low=0, control=False)


def asks_setting() -> Any:
    """Return the field of the query's modality."""
    return option("image", "Query modality", "Which embedding of the pair is the query.", control=False)


@dataclass(frozen=True)
class StoredSettings:
    """The stored patterns."""

    stored: Literal["images", "texts"] = stored_setting()
    # The label of a class; empty for all.
    only: str = option("", "Class", "Store the pairs of this class only.", control=False)
    # Rows of the snapshot; empty for all.
    pairs: tuple[int, ...] = option((), "Pairs", "Store these pairs only, rows of the snapshot.", control=False)


@dataclass(frozen=True, kw_only=True)
class Patterns(SnapshotLabel):
    """One run's stored patterns, in memory.

    Attributes:
        rows: Rows of the snapshot that are stored: of each distinct picture, or caption, one.
        units: Which rows of the snapshot are one.
        stored: Their embeddings as the snapshot has them: of all pairs, its file.
        image, text: All pairs of the snapshot.
        plane, mean, axes: Of the plane on which the stored patterns are drawn (PCA); `shares`: its variance.
        points: The stored patterns on it, at most 3,000.
    """

    pairs: int
    items: Items
    rows: Int[np.ndarray, " n"]
    stored: Float[np.ndarray, "n d"]
    side: Stored
    plane: Plane
    image: Float[np.ndarray, "m d"] | None
    text: Float[np.ndarray, "m d"] | None
    mean: Float[np.ndarray, " d"]
    axes: Float[np.ndarray, "d 2"]
    shares: Float[np.ndarray, " 2"]
    points: Float[np.ndarray, "p 2"]
    units: Units

    def is_own(self, query: int) -> Bool[np.ndarray, " n"]:
        """Return which stored pattern is that of a pair: its picture, or its caption."""
        number = self.units.of(UNIT_OF[self.side[:-1]])
        exists = 0 <= query < len(number)
        return number[self.rows] == number[query] if exists else np.zeros(len(self.rows), bool)

    @property
    def n(self) -> int:
        """The number of stored patterns."""
        return len(self.rows)

    def queries(self, asks: Asks) -> Float[np.ndarray, "m d"]:
        """Return the embeddings of every pair in this modality.

        Raises:
            ChartError: The run has none.
        """
        vectors = self.image if asks == "image" else self.text
        if vectors is None:
            raise ChartError(f"Run {self.name} embeds no {asks}s: choose the other modality of the query. {BOTH}")
        return vectors

    def state(self, query: int, asks: Asks) -> Float[np.ndarray, " d"]:
        """Return the embedding of the query.

        Raises:
            ChartError: There is no such pair, or no such embedding.
        """
        vectors = self.queries(asks)
        self.check_query(query)
        return exact(vectors[query]).astype(np.float64)

    def check_query(self, query: int) -> None:
        """Check that the pair exists.

        Raises:
            ChartError: There is not.
        """
        if not 0 <= query < self.pairs:
            raise ChartError(f"There is no pair {query}; the snapshot has 0 to {self.pairs - 1}.")

    def place(self, states: Float[np.ndarray, "t d"]) -> Float[np.ndarray, "t 2"]:
        """Project states to the plane."""
        return (states - self.mean) @ self.axes


_ALIVE: Final[WeakValueDictionary[object, Patterns]] = WeakValueDictionary()
"""Patterns that a shown chart holds: a slider that moves does not read them again."""


def patterns(
    workspace: Workspace,
    target: Target,
    request: Request,
    settings: StoredSettings,
    plane: Plane = "stored",
    progress: Progress = silent,
) -> Patterns:
    """Return the run's stored patterns.

    Raises:
        ChartError: No such snapshot, nothing stored, or embeddings that are not numbers.
    """
    opened = open_target(workspace, target, request)
    if settings.pairs and target != request.targets[0]:
        first = open_target(workspace, request.targets[0], request)
        settings = replace(settings, pairs=_selected_of(opened, first, settings.pairs))
    key = (*opened.key, settings.stored, settings.only, settings.pairs, plane)
    if (stored := _ALIVE.get(key)) is None:
        progress(0.0, "Reading embeddings")
        stored = _ALIVE[key] = _read(opened, settings, plane)
    return stored


def _selected_of(opened: OpenedSnapshot, first: OpenedSnapshot, pairs: tuple[int, ...]) -> tuple[int, ...]:
    """Return the rows of this snapshot that hold the selected pairs, which are rows of the first run's.

    Raises:
        ChartError: It holds none of them.
    """
    mine, theirs = opened.snapshot.items, first.snapshot.items
    if same_pairs(theirs, mine):
        return pairs
    at_first, at_mine = common_rows(theirs, mine)
    if not (rows := tuple(at_mine[np.isin(at_first, pairs)].tolist())):
        name = first.run.short_name
        raise ChartError(
            f"Run {opened.run.short_name} has none of the selected pairs: its data are not those of {name}. "
            "Store all pairs, or select pairs of both."
        )
    return rows


def _read(opened: OpenedSnapshot, settings: StoredSettings, plane: Plane) -> Patterns:
    row, snapshot, units = opened.run, opened.snapshot, opened.units
    vectors = snapshot.image if settings.stored == "images" else snapshot.text
    if vectors is None:
        raise ChartError(f"Run {row.name} embeds no {settings.stored}: store the other modality. {BOTH}")
    rows = _stored_rows(snapshot.items, settings, snapshot.n)
    # Of copies each would get a part of one pattern's weight.
    rows = rows[units.taken(rows).rows(UNIT_OF[settings.stored[:-1]])]
    stored = vectors if len(rows) == snapshot.n else vectors[rows]
    parts = [stored] if plane == "stored" else [part for part in (snapshot.image, snapshot.text) if part is not None]
    scatter = scatter_of(parts)
    if not scatter.is_finite:
        raise ChartError(
            f"The embeddings of {row.name} are not numbers: training has diverged. Choose an earlier step."
        )
    mean, axes, shares = scatter.axes(2)
    drawn = at_most(len(stored), MOST_MAPPED)
    return Patterns(
        **opened.label,
        units=units,
        pairs=snapshot.n,
        items=snapshot.items,
        rows=rows,
        stored=stored,
        side=settings.stored,
        plane=plane,
        image=snapshot.image,
        text=snapshot.text,
        mean=mean,
        axes=axes,
        shares=shares,
        points=(stored[drawn].astype(np.float64) - mean) @ axes,
    )


class Query(Struct, frozen=True):
    """The query's pair in a run."""

    row: int  # Of the run's snapshot; -1 for a query from outside.
    same: bool  # Whether the run has the pairs of the first run in the same rows: what is clicked is a row of that one.


def query_of(workspace: Workspace, target: Target, request: Request, run: Patterns, query: int) -> Query:
    """Return the query's pair in this run: `query` is a row of the first run, which may have other data, or -1.

    Raises:
        ChartError: One of the two has no such pair.
    """
    items, name = run.items, run.name
    if target != request.targets[0]:
        first = open_target(workspace, request.targets[0], request)
        items, name = first.snapshot.items, first.run.short_name
    if query >= len(items):
        raise ChartError(f"There is no pair {query}; the snapshot of {name} has 0 to {len(items) - 1}.")
    same = items is run.items or same_pairs(items, run.items)
    row = query if same or query < 0 else row_of_pair(run.items, items, query)
    if row < 0 <= query:
        raise ChartError(f"Run {run.name} has no such pair: its data are not those of {name}. Choose a pair of both.")
    return Query(row, same)


def cell(run: Patterns, row: int, share: float, query: Query, *, strong: bool) -> RowImage:
    """Return a stored pattern's image with its share; of other data than those of the first run it asks nothing."""
    asks = row if query.same else -1
    return RowImage(asks, run.items.path[row], run.items.caption[row], percent(share), share, strong)


def both_of(
    run: Patterns, query: int | None = None, unit: Unit | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return images, texts and rows of pairs, at most a sample, that contain the query.

    Of each `unit` there is one; None: no two pairs share a picture or a caption.

    Raises:
        ChartError: The run embeds only one modality, or there is no such pair.
    """
    if run.image is None or run.text is None:
        raise ChartError(f"Run {run.name} embeds only one modality; this chart needs images and texts. {BOTH}")
    units = run.units
    rows = at_most(units.alike() if unit is None else units.rows(unit), MOST_PAIRS)
    if query is not None:
        run.check_query(query)
        if query not in rows:
            same = (units.picture[rows] == units.picture[query]) | (units.caption[rows] == units.caption[query])
            rows = np.sort(np.append(rows[~same] if same.any() else rows[1:], query))
    return exact(run.image[rows]), exact(run.text[rows]), rows


def _stored_rows(items: Items, settings: StoredSettings, n: int) -> Int[np.ndarray, " k"]:
    rows = np.arange(n)
    if settings.pairs:
        rows = np.unique(np.array([pair for pair in settings.pairs if 0 <= pair < n], dtype=np.int64))
    if settings.only:
        rows = rows[np.array([items.label[row] == settings.only for row in rows.tolist()], dtype=bool)]
    if not len(rows):
        classes = ", ".join(sorted(set(items.label) - {""})[:12])
        none = f"no pair of the class {settings.only!r}" if settings.only else "no such pair"
        raise ChartError(f"Nothing is stored: {none}; there are {classes or 'no classes'}.")
    return rows


def head(runs: Sequence[Patterns], *parts: str) -> tuple[str, ...]:
    """Return the runs, and further facts in one line."""
    return "; ".join(f"{run.name}, step {run.step:,}, {data_label(run)}" for run in runs), " · ".join(parts)


def stored_words(runs: Sequence[Patterns], settings: StoredSettings) -> str:
    """Describe the stored patterns: `stored: images, class ring, n = 12`."""
    selected = f"{len(settings.pairs):,} selected pairs"
    which = f"class {settings.only}" if settings.only else selected if settings.pairs else "all"
    return f"stored: {settings.stored}, {which}, n = {', '.join(sorted({f'{run.n:,}' for run in runs}))}"


def beta_words(beta: float) -> str:
    """Return `beta = 8`."""
    return f"beta = {beta:g}"


def minus(value: float, digits: int = 3) -> str:
    """Format a number with a true minus sign."""
    return f"{value:.{digits}f}".replace("-", "−")
