"""A batch under the glass: logits, weights of the negatives, and those that may be right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Int

from trainer.analysis import batches
from trainer.analysis.progress import Progress
from trainer.analysis.retrieval import groups_of
from trainer.analysis.tiles import exact
from trainer.charts import ChartError
from trainer.charts.diagnosis.shared import (
    Asked,
    Temperatures,
    choose_batch,
    choose_each,
    head_of,
    kind_of,
    pairs_of,
    temperatures,
    title,
)
from trainer.charts.marks import RUN_TONES, HeatMap, ImageRow, Mark, Panel, RowImage
from trainer.store import RunRow, Workspace
from trainer.store.snapshot_files import Snapshot

MOST_BATCH: Final = 256
LEAST_ALIKE: Final = 0.9
"""Cosine of two texts, or of two images, from which a negative may be right."""


@dataclass(frozen=True)
class BatchFacts:
    """What the view needs to know of the batch: its rows in the snapshot, and the anchor's."""

    rows: tuple[int, ...]
    anchor: int


def batch(workspace: Workspace, runs: Sequence[RunRow], asked: Asked, progress: Progress | None) -> Panel:
    """The panel."""
    if not 2 <= asked.size <= MOST_BATCH:
        raise ChartError(f"Batch size must be 2 to {MOST_BATCH} pairs, not {asked.size}.")
    chosen = choose_each(workspace, runs, asked, choose_batch)
    lines: list[tuple[Mark, ...]] = []
    strips: list[tuple[Mark, ...]] = []
    notes, facts = [], None
    for i, run, row in chosen:
        snapshot = pairs_of(row, run)
        rows = batch_rows(snapshot, asked.size, asked.number)
        anchor = min(max(asked.anchor, 0), len(rows) - 1)
        facts = facts or BatchFacts(tuple(rows.tolist()), anchor)
        warm = temperatures(workspace, run, row.step)
        image, text = exact(snapshot.image[rows]), exact(snapshot.text[rows])
        side: batches.Side = "pairs" if warm.beta is None else "images"
        found = batches.batch(*batches.seen_by(image, text, warm.beta, side), warm.inv_tau)
        lines.append(_grids(i, run, snapshot, rows, found, warm, anchor))
        strips.append((_negatives(i, run, snapshot, rows, found, anchor),))
        strips.append((_false_negatives(i, run, snapshot, rows, found, image, text),))
        seen = f"U_x against U_y at beta = {warm.beta:g}" if warm.beta is not None else "images against texts"
        left = float(found.unsaturated.mean())
        notes.append(f"{run.name}: {kind_of(row)} pairs, {seen}, 1/tau = {warm.inv_tau:.3g}, mean of 1 − p {left:.4f}.")
        if progress:
            progress((i + 1) / len(chosen), "Weighing the negatives")
    notes = [
        "Rows are anchors, columns their samples, ordered by class. Weights: share of each sample in the gradient on "
        "the anchor; InfoNCE's diagonal is p, and its negatives together only weigh 1 − p. Click a row for its anchor.",
        "Pairs of the first training batch, as the run saw them at this step, or held-out ones, drawn from a fixed "
        "seed. Likely false negatives: the same caption, "
        f"or a cosine of at least {LEAST_ALIKE:g} between the two texts or the two images.",
        *notes,
    ]
    head = (*head_of(chosen), f"batch {asked.number} of {asked.size} pairs")
    return Panel(title=title("batch"), head=head, rows=(*lines, *strips), notes=tuple(notes), facts=facts)


def batch_rows(snapshot: Snapshot, size: int, number: int) -> Int[np.ndarray, " b"]:
    """Rows of the batch, ordered by class and caption so that alike pairs stand side by side."""
    size = min(size, snapshot.n)
    order = np.random.default_rng(0).permutation(snapshot.n)
    start = (number * size) % max(snapshot.n - size + 1, 1)
    rows = order[start : start + size].tolist()
    items = snapshot.items
    return np.array(sorted(rows, key=lambda row: (items.label[row], items.caption[row], row)))


def _grids(
    i: int,
    run: RunRow,
    snapshot: Snapshot,
    rows: np.ndarray,
    found: batches.BatchWeights,
    warm: Temperatures,
    anchor: int,
) -> tuple[HeatMap, ...]:
    names = tuple(f"{row}: {snapshot.items.caption[row]}" for row in rows.tolist())
    parts = (
        ("logits", "Logits", found.logits, float(found.logits.min()), float(found.logits.max()), "logit", False),
        ("infonce", "Weights of InfoNCE", found.infonce, 1e-4, 1.0, "weight", True),
        ("infoloob", "Weights of InfoLOOB", found.infoloob, 1e-4, 1.0, "weight", True),
    )
    tick = ((float(anchor), "▸"),)
    return tuple(
        HeatMap(
            f"{key}-{i}",
            f"{run.name}: {title}" if key == "logits" else title,
            values,
            "sample (text)" if warm.beta is None else "sample (U_y)",
            "anchor (image)" if warm.beta is None else "anchor (U_x)",
            (),
            tick,
            low,
            high,
            unit,
            log=log,
            rows=names,
            columns=names,
            row_ids=tuple(range(len(rows))),
        )
        for key, title, values, low, high, unit, log in parts
    )


def _negatives(
    i: int, run: RunRow, snapshot: Snapshot, rows: np.ndarray, found: batches.BatchWeights, anchor: int
) -> ImageRow:
    order = np.argsort(-found.infoloob[anchor], kind="stable")[:10]
    own = int(rows[anchor])
    cells = [
        RowImage(
            own,
            snapshot.items.path[own],
            snapshot.items.caption[own],
            f"anchor · p = {_share(found.infonce[anchor, anchor])}",
            strong=True,
        )
    ]
    for j in order.tolist():
        row = int(rows[j])
        words = f"{_share(found.infonce[anchor, j])} · {_share(found.infoloob[anchor, j])}"
        share = float(found.infoloob[anchor, j])
        cells.append(RowImage(row, snapshot.items.path[row], snapshot.items.caption[row], words, share))
    title = f"{run.name}: what pushes the anchor most"
    return ImageRow(f"negatives-{i}", title, RUN_TONES[i % 2], tuple(cells), "weight in InfoNCE · in InfoLOOB")


def _false_negatives(
    i: int,
    run: RunRow,
    snapshot: Snapshot,
    rows: np.ndarray,
    found: batches.BatchWeights,
    image: np.ndarray,
    text: np.ndarray,
) -> ImageRow:
    items = snapshot.items
    groups = groups_of([items.caption[row] for row in rows.tolist()])
    likely = batches.likely_false_negatives(found, image, text, groups, least=LEAST_ALIKE)
    cells = []
    for place, (first, second, weight, cosine, reason) in enumerate(likely[:6], start=1):
        cosines = "" if reason == "same caption" else f" {cosine:.2f}"
        for j, words in ((first, f"{place}a · {reason}{cosines}"), (second, f"{place}b · weight {_share(weight)}")):
            row = int(rows[j])
            cells.append(RowImage(row, items.path[row], items.caption[row], words))
    note = f"{len(likely)} likely" + (", the 6 heaviest shown" if len(likely) > 6 else "")
    return ImageRow(f"false-{i}", f"{run.name}: likely false negatives", RUN_TONES[i % 2], tuple(cells), note)


def _share(value: float) -> str:
    return f"{100 * value:.1f} %" if value >= 0.0005 else "< 0.1 %"
