"""One pair in each run: ranks both ways, margin, nearest items, and the rank of its caption at every snapshot."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.number_text import signed
from trainer.analysis.progress import Progress, silent
from trainer.analysis.rank_margins import cosines_with_all, standing_of_one
from trainer.analysis.tiled_neighbors import largest
from trainer.charts import ChartError
from trainer.charts.common_pairs import row_of_pair
from trainer.charts.opened_snapshot import OpenedSnapshot, open_target
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshots import course_of
from trainer.charts.spec import Request
from trainer.errors import UserError
from trainer.metrics import asked_by_direction
from trainer.store import SnapshotRow, Workspace
from trainer.store.columns import equal_rows
from trainer.store.reviews import pair_keys
from trainer.store.snapshot_files import Snapshot, read_snapshot

NEAREST: Final = 8
MOST_COURSE: Final = 20_000
"""Pairs of a snapshot up to which a course is ranked: each of its snapshots is read as a whole."""
MOST_STEPS: Final = 40
"""Steps of a course: of more, as many are taken evenly, the first and the last among them."""
MOST_VALUE: Final = 400
"""Characters of a caption or a value that are kept; what is longer is cut with an ellipsis."""


@dataclass(frozen=True)
class NearPair:
    """A neighbor: its row in the first run's snapshot (-1 if that lacks it), image file and caption."""

    row: int
    path: str
    caption: str


@dataclass(frozen=True)
class PairInRun(SnapshotLabel):
    """How one run sees the pair.

    Attributes:
        place: Of the run among the targets: 0 is A.
        n: Pairs of the snapshot.
        caption_rank: Place (1 = best) of the own caption among the distinct `captions`, asked by the image; 0 where
            the run lacks a modality.
        captions: Distinct captions that are ranked.
        image_rank: Place of the own image among the distinct `images`, asked by the caption.
        images: Distinct images that are ranked.
        captions_of, images_of: How many there are where those are a sample; 0 where they are all, or it is not known.
        margin: Own cosine minus that of the best wrong caption, in standard deviations of the image's wrong cosines;
            NaN where there are fewer than two.
        modality: What the neighbors are: `image`, or `text` for a run without images.
        near: The nearest other pairs, nearest first.
        course: Step and caption rank at each snapshot of the same data, ascending; empty for large data.
    """

    place: int
    n: int
    caption_rank: int = 0
    captions: int = 0
    image_rank: int = 0
    images: int = 0
    captions_of: int = 0
    images_of: int = 0
    margin: float = math.nan
    modality: str = "image"
    near: tuple[NearPair, ...] = ()
    course: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class OnePair:
    """A pair and how each run sees it.

    Attributes:
        row: In the first run's snapshot.
        id: Item id.
        path: Of the image; empty without one.
        caption, label: Of the pair; may be empty.
        columns: Names and values of its metadata.
        key: As `trainer.store.reviews.pair_keys` makes it; names the pair to `trainer data review`.
        runs: One entry a run that has the pair.
        problems: A sentence for each run that does not.
        ranked: Whether ranks and neighbors were asked for.
    """

    row: int
    id: int | str
    dataset: str
    split: str
    path: str
    caption: str
    label: str
    columns: tuple[tuple[str, str], ...]
    key: str
    runs: tuple[PairInRun, ...]
    problems: tuple[str, ...] = ()
    ranked: bool = True


@dataclass(frozen=True)
class OpenSnapshots:
    """The chosen snapshots of a request, kept between pairs: A first, and a sentence for each run without one."""

    found: tuple[tuple[int, OpenedSnapshot], ...]
    problems: tuple[str, ...] = ()
    courses: dict[Path, Snapshot] = field(default_factory=dict, compare=False)
    """Snapshots of other steps that were read; few and small ones only."""


def open_snapshots(workspace: Workspace, request: Request, before: OpenSnapshots | None = None) -> OpenSnapshots:
    """Open the snapshots of a request, taking those of `before` that are still the same.

    B's snapshot is of A's data, as in `trainer.charts.pair_changes`.

    Raises:
        ChartError: No run of the request has a snapshot.
    """
    unchanged = {snapshot.row: snapshot for _, snapshot in before.found} if before else {}
    opened: list[tuple[int, OpenedSnapshot]] = []
    problems = []
    for index, target in enumerate(request.targets):
        try:
            chosen = open_target(workspace, target, request)
            chosen = unchanged.get(chosen.row, chosen)
            dataset, split = chosen.snapshot.dataset, chosen.snapshot.split  # read here: it may be damaged
        except UserError as problem:
            problems.append(str(problem))
            continue
        opened.append((index, chosen))
        request = replace(request, dataset=dataset, split=split)
    if not opened:
        raise ChartError(" ".join(problems) or "Choose a run first.")
    return OpenSnapshots(tuple(opened), tuple(problems), before.courses if before else {})


def one_pair(
    workspace: Workspace,
    opened: OpenSnapshots,
    row: int,
    *,
    k: int = NEAREST,
    ranked: bool = True,
    progress: Progress = silent,
) -> OnePair:
    """Return the pair in this row of the first opened snapshot, as each run sees it.

    Ranks and margin are those of `trainer.analysis.rank_margins.standing`: equal captions and images are one.

    Args:
        opened: What `open_snapshots` returned; pictures of earlier steps are added to its `courses`.
        row: From 0.
        k: Nearest pairs of each run.
        ranked: Whether ranks and neighbors are wanted, for which all vectors are read.
        progress: Called with the share done and a note; what it raises ends the computation.

    Raises:
        ChartError: There is no such row.
    """
    first = opened.found[0][1]
    items, n = first.snapshot.items, len(first.snapshot.items)
    if not 0 <= row < n:
        raise ChartError(f"The snapshot has rows 0 to {n - 1:,}; there is no row {row:,}.")
    runs, problems = [], [*opened.problems]
    for number, (index, side) in enumerate(opened.found):
        progress(number / len(opened.found), side.run.short_name)
        its_row = row if side is first else row_of_pair(side.snapshot.items, items, row)
        if its_row < 0:
            problems.append(f"{side.run.short_name} has no such pair in {side.row.key}.")
            continue
        values = _ranked(workspace, opened, side, its_row, k) if ranked else {}
        if values and side.snapshot.sampled:
            asked = asked_by_direction(side.row.split, side.run.facts)  # as many as the other direction can answer
            values |= {"captions_of": asked.get("text_to_image", 0), "images_of": asked.get("image_to_text", 0)}
        modality = "image" if side.snapshot.image is not None else "text"
        label = shown(side.run, side.row)
        runs.append(PairInRun(**label, place=index, n=side.snapshot.n, modality=modality, **values))
    identity = items.id[row]
    return OnePair(
        row,
        identity.item() if isinstance(identity, np.generic) else identity,
        first.row.dataset,
        first.row.split,
        str(items.path[row]),
        _cut(items.caption[row]),
        _cut(items.label[row]),
        tuple((name, _cut(values[row])) for name, values in items.metadata.items() if _cut(values[row])),
        _key(workspace, first, row),
        tuple(runs),
        tuple(problems),
        ranked,
    )


def _ranked(workspace: Workspace, opened: OpenSnapshots, side: OpenedSnapshot, row: int, k: int) -> dict[str, Any]:
    """Return ranks, margin, course and neighbors of a pair in a run, by their names in `PairInRun`."""
    snapshot = side.snapshot
    vectors = [array for array in (snapshot.image, snapshot.text) if array is not None]
    # Each side is read once: for its neighbors, and for the rank among its rows.
    cosines = cosines_with_all(np.stack([array[row] for array in vectors]), vectors[0])
    near = _near(opened.found[0][1], side, row, k, cosines[0])
    if len(vectors) < 2:
        return {"near": near}
    caption_rank, margin = _caption_standing(snapshot, side, row)
    return {
        "near": near,
        "caption_rank": caption_rank,
        "captions": len(side.units.matching.texts),
        "image_rank": standing_of_one(cosines[1], side.units.matching.images, row)[0],
        "images": len(side.units.matching.images),
        "margin": margin,
        "course": _course(workspace, opened, side, row),
    }


def _near(
    first: OpenedSnapshot, side: OpenedSnapshot, row: int, k: int, cosines: Float[np.ndarray, " n"]
) -> tuple[NearPair, ...]:
    rows = largest(np.nan_to_num(cosines[None], nan=-np.inf), min(k + 1, len(cosines)))
    items = side.snapshot.items
    others = [int(neighbor) for neighbor in rows[0] if neighbor != row][:k]
    at = [row if side is first else row_of_pair(first.snapshot.items, items, row) for row in others]
    return tuple(
        NearPair(its_row, str(items.path[neighbor]), _cut(items.caption[neighbor]))
        for its_row, neighbor in zip(at, others, strict=True)
    )


def _course(workspace: Workspace, opened: OpenSnapshots, side: OpenedSnapshot, row: int) -> tuple[tuple[int, int], ...]:
    """Return the caption's rank at every snapshot of the same data, or at `MOST_STEPS` of them."""
    if side.snapshot.n > MOST_COURSE:
        return ()
    rows = course_of(workspace, side.row)
    if len(rows) > MOST_STEPS:
        rows = [rows[at] for at in np.unique(np.linspace(0, len(rows) - 1, MOST_STEPS).round().astype(int))]
    course = []
    for earlier in rows:
        snapshot = _earlier(opened, side, earlier)
        if snapshot is not None:
            course.append((earlier.step, _caption_standing(snapshot, side, row)[0]))
    return tuple(course)


def _earlier(opened: OpenSnapshots, side: OpenedSnapshot, row: SnapshotRow) -> Snapshot | None:
    """Return the snapshot of another step if it holds the same pairs."""
    if row.step == side.row.step:
        return side.snapshot
    if row.folder not in opened.courses:
        try:
            opened.courses[row.folder] = read_snapshot(row.folder)
        except UserError:
            return None  # one damaged snapshot is a gap in the course; doctor tells of it
    snapshot = opened.courses[row.folder]
    same = snapshot.image is not None and snapshot.text is not None
    return snapshot if same and np.array_equal(snapshot.items.id, side.snapshot.items.id) else None


def _caption_standing(snapshot: Snapshot, side: OpenedSnapshot, row: int) -> tuple[int, float]:
    assert snapshot.image is not None, "asked before"
    assert snapshot.text is not None, "asked before"
    # The pairs are the same, so what is one and what belongs together is too.
    cosines = cosines_with_all(snapshot.image[row : row + 1], snapshot.text)
    return standing_of_one(cosines[0], side.units.matching.texts, row)


def _key(workspace: Workspace, side: OpenedSnapshot, row: int) -> str:
    """Return the pair's key; a pair that repeats is counted among those before it, as `pair_keys` counts."""
    items = side.snapshot.items
    path, caption = items.path[row], items.caption[row]
    count = int((equal_rows(items.path, path, row + 1) & equal_rows(items.caption, caption, row + 1)).sum())
    return pair_keys([path] * count, [caption] * count, workspace.folder)[-1]


def _cut(value: object) -> str:
    text = "" if value is None or value != value else " ".join(str(value).split())
    return text if len(text) <= MOST_VALUE else f"{text[: MOST_VALUE - 1]}…"


def rank_lines(pair: OnePair) -> list[tuple[str, ...]]:
    """Return a line per measure, each with its name and one value a run; none for runs of one modality.

    How many answers were ranked, and of how many they are a sample, is said once where it is the same for all runs.
    """
    runs = pair.runs
    if not any(run.captions for run in runs):
        return []
    lines = []
    for label, values in (
        ("Caption rank", [(run.caption_rank, _among(run.captions, run.captions_of)) for run in runs]),
        ("Image rank", [(run.image_rank, _among(run.images, run.images_of)) for run in runs]),
    ):
        among = {n for _, n in values}
        same = len(among) == 1
        lines.append((f"{label} {among.pop()}" if same else label, *(_rank(rank, n, same=same) for rank, n in values)))
    return [
        *lines,
        ("Margin (SD)", *("–" if math.isnan(run.margin) else signed(run.margin, 2) for run in runs)),
    ]


def _among(n: int, total: int) -> str:
    """Return `of 360`, `of 360 sampled of 1,024`; empty for none."""
    return f"of {n:,}" * bool(n) + f" sampled of {total:,}" * (total > n)


def _rank(rank: int, among: str, *, same: bool) -> str:
    if not among:
        return "–"
    return f"{rank:,}" if same else f"{rank:,} {among}"
