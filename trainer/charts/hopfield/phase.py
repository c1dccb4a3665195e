"""The phase diagram: how many patterns each query averages at each beta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from trainer.analysis.hopfield import effective_grid
from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.charts import BOTH, ChartError
from trainer.charts.hopfield.shared import BETAS, Asked, Patterns
from trainer.charts.marks import RUN_TONES, Axis, HeatMap, Series, XYPlot

MOST_QUERIES: Final = 96


def phase(gathered: Sequence[Patterns], asked: Asked, progress: Progress | None) -> tuple[tuple, tuple[str, ...]]:
    """Effective numbers of many queries at every beta: rows of pieces, and notes."""
    grids, curves = [], []
    for run in gathered:
        vectors = run.image if asked.asks == "image" else run.text
        if vectors is None:
            raise ChartError(f"Run {run.name} has no {asked.asks}s: ask with the other modality. {BOTH}")
        rows = at_most(run.pairs, MOST_QUERIES)
        values = effective_grid(vectors[rows], run.stored, BETAS, progress)
        order = np.argsort(np.log(values).sum(1), kind="stable")
        grids.append(_grid(run, asked, values[order], rows[order]))
        curves.append((run, np.median(values, axis=0), *np.percentile(values, (10, 90), axis=0)))
    medians = tuple(
        curve
        for run, median, low, high in curves
        for curve in (
            Series(f"{run.label}, median", RUN_TONES[run.index % 2], BETAS, median),
            Series("", RUN_TONES[run.index % 2], BETAS, low, dashed=True, width=1),
            Series("", RUN_TONES[run.index % 2], BETAS, high, dashed=True, width=1),
        )
    )
    most = max(run.n for run in gathered)
    x, y = Axis("beta", BETAS[0], BETAS[-1], log=True), Axis("effective number", 0.9, 1.15 * most, log=True)
    plot = XYPlot(
        "medians", "Effective number over beta", x, y, medians, cursor=asked.beta, note="dashed: 10 % and 90 %"
    )
    queries = "; ".join(f"{run.label}: {min(run.pairs, MOST_QUERIES):,} of {run.pairs:,} queries" for run in gathered)
    notes = (
        f"One retrieval of each query, ordered by the mean of the logarithm; {queries}, drawn at random.",
        "Dark: one pattern. Bright: the average of all. Click a row to ask with its pair.",
    )
    return (tuple(grids), (plot,)), notes


def _grid(run: Patterns, asked: Asked, values: np.ndarray, rows: np.ndarray) -> HeatMap:
    ticks = tuple(
        (float(np.interp(math.log(beta), np.log(BETAS), np.arange(len(BETAS)))), f"{beta:g}")
        for beta in (0.1, 1, 10, 100)
    )
    cursor = float(np.interp(math.log(asked.beta), np.log(BETAS), np.arange(len(BETAS))))
    captions = tuple(f"pair {row}: {run.items.caption[row]}" for row in rows.tolist())
    return HeatMap(
        f"phase-{run.index}",
        run.label,
        values,
        "beta",
        f"{asked.asks} that asks",
        ticks,
        (),
        1.0,
        float(run.n),
        "effective number",
        log=True,
        cursor=cursor,
        note=f"n = {run.n:,} {run.side} stored",
        rows=captions,
        columns=tuple(f"beta {beta:.3g}" for beta in BETAS),
        row_ids=tuple(rows.tolist()),
    )
