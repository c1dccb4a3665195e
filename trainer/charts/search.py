"""Search a snapshot: the images or texts nearest to a query, by cosine or by CSLS."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.hubness import mean_of_nearest
from trainer.analysis.lru_cache import LruCache
from trainer.analysis.progress import Progress, silent
from trainer.analysis.sampling import at_most, most_asking
from trainer.analysis.search import products
from trainer.charts import ChartError
from trainer.charts.distinct_hits import Target, best_distinct, distinct_count
from trainer.charts.marks import ImageRow, NumberTable, Panel, RowImage, run_tone
from trainer.charts.matching import matching_of
from trainer.charts.measure import Measure, measure_table
from trainer.charts.opened_snapshot import OpenedSnapshot, open_target
from trainer.charts.outside_query import OutsideQuery, outside_vector
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.spec import Chart, PerRun, Records, Request, per_run
from trainer.charts.spec import Target as RunAtStep
from trainer.config.fields import option
from trainer.metrics import data_label
from trainer.store import Workspace
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot

METHOD: Final = """\
The items of each run's snapshot with the largest cosine to the query, which the run's own model embeds; exact. CSLS \
reduces hubness: from the cosine, half of an item's mean cosine to its 10 nearest of the other modality is taken away.

Equal pictures and equal captions are one hit. Cosines are not comparable across runs: compare the order of the \
hits."""
CSLS_K: Final = 10
_OFFSETS: Final = LruCache[tuple[Path, Target], np.ndarray](8)


@dataclass(frozen=True)
class SearchSettings(OutsideQuery):
    """The query, the modality to search, and the number of hits."""

    target: Literal["image", "text"] = option("image", "Among", "What is searched.", control=False)
    k: int = option(50, "Hits", "Of each run.", low=1, control=False)
    csls: bool = option(False, "CSLS", "Reduce hubness: order by CSLS instead of the cosine.", control=False)


@dataclass(frozen=True, kw_only=True)
class Hits(SnapshotLabel):
    """The hits of one run."""

    target: Target  # What was searched: `image` or `text`.
    rows: Int[np.ndarray, " k"]  # Pairs found, best first; equal pictures or captions are there once.
    cosines: Float[np.ndarray, " k"]  # Of the question and each hit.
    # What they are ordered by: the cosine, or with CSLS the cosine minus half the hit's own scale.
    scores: Float[np.ndarray, " k"]
    items: Items
    n: int  # Distinct items searched.
    csls: bool  # Whether hubs were taken down.
    sampled: bool  # Whether the snapshot holds only a part of its split.


def search(
    opened: OpenedSnapshot,
    query: Float[np.ndarray, " d"],
    *,
    target: Target = "image",
    k: int = 50,
    csls: bool = False,
    progress: Progress = silent,
) -> Hits:
    """Return the `k` distinct items of the run's snapshot nearest to a unit embedding; exact.

    Of equal pictures or captions the best pair is the hit. The first search by CSLS needs every item's own scale
    (`offsets`): a minute at 100,000, of which `progress` is told.

    Raises:
        ChartError: The snapshot lacks the modality, or the question is of another width.
    """
    row = opened.run
    snapshot = _opened(opened.row.folder, opened.row.folder.stat().st_mtime_ns)
    vectors = _vectors(snapshot, target, row.short_name)
    if len(query) != snapshot.d:
        raise ChartError(
            f"The query has {len(query)} dimensions and the snapshot of {row.short_name} {snapshot.d}: they are of "
            "different models. Choose the step that the snapshot is of."
        )
    scores = products(vectors, query)
    if csls:
        scores = scores - offsets(snapshot, target, progress) / 2
    rows, best = best_distinct(scores, snapshot, target, k)
    cosines = np.asarray(vectors[rows], np.float32) @ np.asarray(query, np.float32)
    return Hits(
        **shown(row, snapshot),
        target=target,
        rows=rows,
        cosines=cosines,
        scores=best,
        items=snapshot.items,
        n=distinct_count(snapshot, target),
        csls=csls,
        sampled=snapshot.sampled,
    )


@lru_cache(maxsize=2)
def _opened(folder: Path, _changed: int) -> Snapshot:
    """Return a snapshot; those that were searched last are kept, as reading what a million pairs are takes longer."""
    return read_snapshot(folder)


def offsets(snapshot: Snapshot, target: Target, progress: Progress = silent) -> Float[np.ndarray, " n"]:
    """Return each item's CSLS scale: its mean cosine to its 10 nearest of the other modality, as stand-in queries.

    Kept for the latest snapshots. Of more than `most_asking` distinct items of the other modality some are drawn.

    Raises:
        ChartError: The snapshot lacks the other modality.
    """
    return _OFFSETS.obtain((snapshot.folder, target), lambda: _offsets(snapshot, target, progress))


def _offsets(snapshot: Snapshot, target: Target, progress: Progress) -> Float[np.ndarray, " n"]:
    stored = _vectors(snapshot, target, snapshot.model)
    matching = matching_of(snapshot)
    asking = matching.texts if target == "image" else matching.images
    asks = asking.gallery(_vectors(snapshot, "text" if target == "image" else "image", snapshot.model))
    asks = asks[at_most(len(asks), most_asking(len(stored)))]
    return mean_of_nearest(stored, asks, CSLS_K, lambda share, _note: progress(share, f"scale of every {target}"))


def _vectors(snapshot: Snapshot, target: Target, name: str) -> np.ndarray:
    vectors = snapshot.image if target == "image" else snapshot.text
    if vectors is None:
        raise ChartError(f"The snapshot of {name} has no {target}s to search. Search its other modality.")
    return vectors


def compute(
    workspace: Workspace, target: RunAtStep, request: Request, settings: SearchSettings, progress: Progress
) -> Hits:
    """Return `search` with the query embedded by the target's model.

    Raises:
        ChartError: No query is named.
    """
    query = outside_vector(request, target, settings)
    if query is None:
        raise ChartError("Name a query: --query-text 'a red circle', or --query-image FILE.")
    options: dict[str, Any] = {"target": settings.target, "k": settings.k, "csls": settings.csls}
    return search(open_target(workspace, target, request), query, **options, progress=progress)


def draw(data: PerRun[Hits], settings: SearchSettings) -> Panel:
    """Draw one row of hits per run, best first."""
    rows = tuple((_row(hits, index),) for hits, index in zip(data.found, data.places, strict=True))
    query = settings.query_text or Path(settings.query_image).name
    notes = ("Cosines are not comparable across runs: compare the order of the hits.",)
    return Panel(title="Search", head=(f"“{query}”",), rows=(*rows, (_table(data.found),)), notes=notes)


def _table(runs: tuple[Hits, ...]) -> NumberTable:
    measures = (
        Measure[Hits]("Items searched", "Of the snapshot.", lambda hits: hits.n, 0),
        Measure[Hits]("Cosine of the first hit", "", lambda hits: hits.cosines[0]),
        Measure[Hits]("Cosine of the last hit", "Of those shown.", lambda hits: hits.cosines[-1]),
    )
    return measure_table("numbers", "Hits", [hits.name for hits in runs], measures, runs)


def _row(hits: Hits, index: int) -> ImageRow:
    cells = tuple(
        RowImage(row, hits.items.path[row], hits.items.caption[row] or hits.items.label[row], f"{cosine:.3f}", cosine)
        for row, cosine in zip(hits.rows.tolist(), hits.cosines.tolist(), strict=True)
    )
    method = "CSLS" if hits.csls else "cosine"
    facts = f"step {hits.step:,}, {data_label(hits)}, {method}, first {len(cells)} of {hits.n:,} {hits.target}s"
    return ImageRow(f"hits-{index}", hits.name, run_tone(index), cells, facts)


OF_A_HIT: Final = ("place", "row", "id", "caption", "label", "path", "cosine", "score")
HEADER: Final = ("question", "run", "name", "step", "dataset", "split", "target", "n", "csls", *OF_A_HIT)


def hit_rows(hits: Hits, question: str) -> list[tuple[Any, ...]]:
    """Return the hits of one run, best first, in the columns of `HEADER`."""
    facts = (question, hits.run, hits.name, hits.step, hits.dataset, hits.split, hits.target, hits.n, hits.csls)
    items = hits.items
    ranked = zip(hits.rows.tolist(), hits.cosines.tolist(), hits.scores.tolist(), strict=True)
    return [
        (*facts, rank, row, items.id[row].item(), items.caption[row], items.label[row], items.path[row], cosine, score)
        for rank, (row, cosine, score) in enumerate(ranked, start=1)
    ]


def values(data: PerRun[Hits], settings: SearchSettings) -> list[dict[str, Any]]:
    """Return one dictionary per run: facts, and the columns of its hits, best first."""
    query, facts = settings.query_text or settings.query_image, len(HEADER) - len(OF_A_HIT)
    columns = [list(zip(*hit_rows(hits, query), strict=True)) for hits in data.found]
    return [
        dict(zip(HEADER, [column[0] for column in run[:facts]] + [list(column) for column in run[facts:]], strict=True))
        for run in columns
    ]


def records(data: PerRun[Hits], settings: SearchSettings) -> Records:
    """Return one row per hit."""
    query = settings.query_text or settings.query_image
    return HEADER, [line for hits in data.found for line in hit_rows(hits, query)]


CHART: Final = Chart(
    view="search",
    label="Hits",
    question="Which items are nearest to a text or an image in each run?",
    cost="Grows with n. CSLS compares the items with items of the other modality that are drawn, once: "
    "20,000 up to 20,000, 4,000 of 100,000, 1,000 from 400,000 on.",
    method=METHOD,
    settings=SearchSettings,
    compute=per_run(compute),
    draw=draw,
    values=values,
    records=records,
)
