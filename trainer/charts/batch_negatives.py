"""A batch: its logits, the weights of its negatives, and likely false negatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Int

from trainer.analysis import batches
from trainer.analysis.tiles import exact
from trainer.analysis.units import Units
from trainer.charts.marks import HeatMap, ImageRow, NumberRow, NumberTable, Panel, RowImage, run_tone
from trainer.charts.matching import units_of
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshot_measures import (
    MASK_WORDS,
    Temperatures,
    choose_batch,
    head_of,
    held_out_setting,
    kind_of,
    masks_duplicates,
    pairs_of,
    temperatures,
)
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.config.fields import option
from trainer.store import Workspace
from trainer.store.snapshot_files import Items, Snapshot

MOST_BATCH: Final = 256
MOST_SHOWN: Final = 6
"""Likely false negatives."""


@dataclass(frozen=True)
class BatchSettings:
    """The batch, and the anchor whose negatives are shown."""

    size: int = option(32, "Pairs in the batch", "Pairs of the batch.", low=2, high=MOST_BATCH, log=True)
    number: int = option(0, "Batch", "Which batch, in an order drawn from a fixed seed.", low=0, high=99)
    held_out: bool = held_out_setting()
    anchor: int = option(0, "Anchor", "Place of the anchor in the batch.", low=0, control=False, redraws=True)


@dataclass(frozen=True, kw_only=True)
class BatchOfRun(SnapshotLabel):
    """A batch of one run."""

    items: Items
    rows: Int[np.ndarray, " b"]  # Of the snapshot, ordered by class and caption.
    warm: Temperatures
    batch: batches.BatchWeights
    # Likely false negatives, the heaviest first: both places, weight, cosine, and the reason.
    likely: tuple[tuple[int, int, float, float, str], ...]
    masked: bool = False  # Whether the run leaves right answers out of the negatives: they have no weight then.

    def anchor(self, settings: BatchSettings) -> int:
        """Return the anchor's place in the batch."""
        return min(settings.anchor, len(self.rows) - 1)


def batch_of_run(
    workspace: Workspace, target: Target, request: Request, settings: BatchSettings, progress: Progress
) -> BatchOfRun:
    """Return the batch as the run's objective compares it.

    Raises:
        ChartError: No such snapshot, or one without pairs.
    """
    run = workspace.runs.get(target.run)
    row = choose_batch(workspace, run, target, request, held_out=settings.held_out)
    snapshot, warm = pairs_of(row, run), temperatures(workspace, run, row.step)
    progress(0.5, "Weights of the negatives")
    units = units_of(snapshot)
    rows = batch_rows(snapshot, units, settings.size, settings.number)
    batch_units = units.taken(rows)
    masked, positions = masks_duplicates(workspace, run), np.arange(len(rows))
    right = batch_units.right(positions, positions) if masked else None
    image, text = exact(snapshot.image[rows]), exact(snapshot.text[rows])
    side: batches.Side = "pairs" if warm.beta is None else "images"
    batch = batches.batch(*batches.seen_by(image, text, warm.beta, side), warm.inv_tau, right)
    likely = batches.likely_false_negatives(batch, image, text, batch_units, masked=masked)
    fields = shown(run, row, units) | {"masked": masked, "items": snapshot.items, "rows": rows, "warm": warm}
    return BatchOfRun(**fields, batch=batch, likely=tuple(likely))


def batch_rows(snapshot: Snapshot, units: Units, size: int, number: int) -> Int[np.ndarray, " b"]:
    """Return the rows of the batch by class and caption, so that similar pairs are adjacent."""
    order = units.order(0)
    size = min(size, len(order))
    start = (number * size) % max(len(order) - size + 1, 1)
    rows = order[start : start + size].tolist()
    items = snapshot.items
    return np.array(sorted(rows, key=lambda row: (items.label[row], items.caption[row], row)))


def draw(data: PerRun[BatchOfRun], settings: BatchSettings) -> Panel:
    """Draw three heat maps per run, and the images of the anchor's negatives and likely false ones."""
    drawn = data.named
    strips = [strip for each in drawn for strip in ((_negatives(*each, settings),), (_false_negatives(*each),))]
    return Panel(
        title="Which negatives push an anchor?",
        head=(*head_of(data.found), f"batch {settings.number} of {settings.size} pairs"),
        rows=(*(_grids(*each, settings) for each in drawn), *strips, (_table(drawn, settings),)),
        notes=(
            "Rows are anchors, columns their samples, ordered by class. Weights: share of each sample in the gradient "
            "on the anchor; InfoNCE's diagonal is p, and its negatives together only weigh 1 − p. Click a row for its "
            "anchor.",
            "Pairs of the first training batch, as the run saw them at this step, or held-out ones, drawn from a fixed "
            "seed. Likely false negatives: a right answer (the same caption or picture), or two texts or "
            "two images that are alike to this run: their distance 1 − cosine is below the lower fence of its own, "
            "median − 7 (median − lower quartile) of their logarithms.",
            *(_note(run, name) for run, _, name in drawn),
        ),
    )


def _table(drawn: Sequence[tuple[BatchOfRun, int, str]], settings: BatchSettings) -> NumberTable:
    runs = [(run, run.anchor(settings)) for run, *_ in drawn]
    heaviest = [run.batch.infoloob[anchor] for run, anchor in runs]
    lines = (
        ("Mean of 1 − p", [float(run.batch.unsaturated.mean()) for run, _ in runs], 4),
        ("Likely false negatives", [float(len(run.likely)) for run, _ in runs], 0),
        ("1/tau", [run.warm.inv_tau for run, _ in runs], 4),
        ("beta", [math.nan if run.warm.beta is None else run.warm.beta for run, _ in runs], 4),
        ("Pairs", [float(len(run.rows)) for run, _ in runs], 0),
        ("Anchor", [float(run.rows[anchor]) for run, anchor in runs], 0),
        ("p of the anchor", [float(run.batch.infonce[anchor, anchor]) for run, anchor in runs], 4),
        ("Heaviest negative", [float(run.rows[of.argmax()]) for (run, _), of in zip(runs, heaviest)], 0),
        ("Its weight in InfoLOOB", [float(of.max()) for of in heaviest], 4),
    )
    rows = tuple(NumberRow(title, "", tuple(values), digits) for title, values, digits in lines)
    return NumberTable("batch", "This batch", tuple(name for *_, name in drawn), rows)


def _note(run: BatchOfRun, name: str) -> str:
    seen = "images against texts" if run.warm.beta is None else f"U_x against U_y at beta = {run.warm.beta:g}"
    left = f"mean of 1 − p {run.batch.unsaturated.mean():.4f}"
    return (
        f"{name}: {kind_of(run.split)} pairs, {seen}, 1/tau = {run.warm.inv_tau:.3g}, {left}{MASK_WORDS[run.masked]}."
    )


def _grids(run: BatchOfRun, index: int, name: str, settings: BatchSettings) -> tuple[HeatMap, ...]:
    names = tuple(f"{row}: {run.items.caption[row]}" for row in run.rows.tolist())
    batch = run.batch
    parts = (
        ("logits", f"{name}: Logits", batch.logits, float(batch.logits.min()), float(batch.logits.max()), "logit"),
        ("infonce", "Weights of InfoNCE", batch.infonce, 1e-4, 1.0, "weight"),
        ("infoloob", "Weights of InfoLOOB", batch.infoloob, 1e-4, 1.0, "weight"),
    )
    return tuple(
        HeatMap(
            f"{key}-{index}",
            title,
            values,
            "sample (text)" if run.warm.beta is None else "sample (U_y)",
            "anchor (image)" if run.warm.beta is None else "anchor (U_x)",
            (),
            ((float(run.anchor(settings)), "▸"),),
            low,
            high,
            unit,
            log=unit == "weight",
            rows=names,
            columns=names,
            row_ids=tuple(range(len(names))),
        )
        for key, title, values, low, high, unit in parts
    )


def _negatives(run: BatchOfRun, index: int, name: str, settings: BatchSettings) -> ImageRow:
    anchor, batch = run.anchor(settings), run.batch
    cells = [_cell(run, anchor, f"anchor · p = {_share(batch.infonce[anchor, anchor])}", strong=True)]
    for j in np.argsort(-batch.infoloob[anchor], kind="stable")[:10].tolist():
        weights = f"{_share(batch.infonce[anchor, j])} · {_share(batch.infoloob[anchor, j])}"
        cells.append(_cell(run, j, weights, float(batch.infoloob[anchor, j])))
    title, note = f"{name}: what pushes the anchor most", "weight in InfoNCE · in InfoLOOB"
    return ImageRow(f"negatives-{index}", title, run_tone(index), tuple(cells), note)


def _false_negatives(run: BatchOfRun, index: int, name: str) -> ImageRow:
    cells = []
    for rank, (first, second, weight, cosine, reason) in enumerate(run.likely[:MOST_SHOWN], start=1):
        cosines = "" if cosine == 1.0 else f" {cosine:.2f}"
        cells.append(_cell(run, first, f"{rank}a · {reason}{cosines}"))
        cells.append(_cell(run, second, f"{rank}b · weight {_share(weight)}"))
    more = f", the {MOST_SHOWN} heaviest shown" if len(run.likely) > MOST_SHOWN else ""
    note = f"{len(run.likely)} likely{more}"
    return ImageRow(f"false-{index}", f"{name}: likely false negatives", run_tone(index), tuple(cells), note)


def _cell(run: BatchOfRun, position: int, text: str, share: float = float("nan"), *, strong: bool = False) -> RowImage:
    row = int(run.rows[position])
    return RowImage(row, run.items.path[row], run.items.caption[row], text, share, strong)


def _share(value: float) -> str:
    return f"{100 * value:.1f} %" if value >= 0.0005 else "< 0.1 %"


CHART: Final = Chart(
    view="explaining",
    label="Batch negatives",
    question="Which negatives push an anchor, and which of them may be right?",
    cost="Grows with the size of the batch, not of the data.",
    settings=BatchSettings,
    compute=per_run(batch_of_run),
    draw=draw,
)
