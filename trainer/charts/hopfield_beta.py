"""The effective number of patterns that each query averages at each beta."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.hopfield import effective_grid
from trainer.analysis.units import UNIT_OF
from trainer.charts.hopfield_patterns import (
    BETAS,
    Patterns,
    StoredSettings,
    asks_setting,
    beta_setting,
    beta_words,
    head,
    patterns,
    stored_words,
)
from trainer.charts.marks import Axis, HeatMap, Panel, Series, XYPlot, run_tone
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.store import Workspace

MOST_QUERIES: Final = 96


@dataclass(frozen=True)
class BetaSettings(StoredSettings):
    """The stored patterns, the modality of the queries, and the marked beta."""

    asks: Literal["image", "text"] = asks_setting()
    beta: float = beta_setting(redraws=True)


class BetaGrid(Struct, frozen=True):
    """The effective numbers of one run."""

    run: Patterns
    rows: Int[np.ndarray, " m"]  # The pairs whose embeddings are the queries, the sharpest first.
    values: Float[np.ndarray, "m b"]  # Effective number of each at each of `BETAS`.


def beta_grid(
    workspace: Workspace, target: Target, request: Request, settings: BetaSettings, progress: Progress
) -> BetaGrid:
    """Return the effective numbers of many queries at every beta.

    Raises:
        ChartError: Nothing is stored, or the run lacks the modality of the queries.
    """
    run = patterns(workspace, target, request, settings, progress=progress)
    rows = run.units.rows(UNIT_OF[settings.asks], MOST_QUERIES)
    values = effective_grid(run.queries(settings.asks)[rows], run.stored, BETAS, progress)
    order = np.argsort(np.log(values).sum(1), kind="stable")
    return BetaGrid(run, rows[order], values[order])


def draw(data: PerRun[BetaGrid], settings: BetaSettings) -> Panel:
    """Draw one heat map per run, and the medians over beta."""
    runs = [grid.run for grid in data.found]
    drawn = data.named
    curves = tuple(curve for grid in drawn for curve in _medians(*grid))
    x = Axis("beta", BETAS[0], BETAS[-1], log=True)
    y = Axis("effective patterns", 0.9, 1.15 * max(run.n for run in runs), log=True)
    note = "dashed: 10 % and 90 %"
    plot = XYPlot("medians", "Effective patterns over beta", x, y, curves, cursor=settings.beta, note=note)
    unit = UNIT_OF[settings.asks]
    queries = "; ".join(
        f"{name}: {len(grid.rows):,} of {grid.run.units.count(unit):,} queries" for grid, _, name in drawn
    )
    return Panel(
        title="Hopfield retrieval: effective number of patterns over beta",
        head=head(runs, stored_words(runs, settings), f"queries: {settings.asks}s", beta_words(settings.beta)),
        rows=(tuple(_grid(*grid, settings) for grid in drawn), (plot,)),
        notes=(
            f"One retrieval of each query, ordered by the mean of the logarithm; {queries}, drawn at random.",
            "Dark: one pattern. Bright: the average of all. Click a row to make its pair the query; drag the line.",
        ),
    )


def _medians(grid: BetaGrid, index: int, name: str) -> tuple[Series, ...]:
    tone = run_tone(index)
    low, high = np.percentile(grid.values, (10, 90), axis=0)
    ends = (Series("", tone, BETAS, end, dashed=True, width=1) for end in (low, high))
    return Series(f"{name}, median", tone, BETAS, np.median(grid.values, axis=0)), *ends


def _column(beta: float) -> float:
    return float(np.interp(math.log(beta), np.log(BETAS), np.arange(len(BETAS))))


def _grid(grid: BetaGrid, index: int, name: str, settings: BetaSettings) -> HeatMap:
    rows = grid.rows.tolist()
    return HeatMap(
        f"beta-{index}",
        name,
        grid.values,
        "beta",
        f"query ({settings.asks})",
        tuple((_column(beta), f"{beta:g}") for beta in (0.1, 1, 10, 100)),
        (),
        1.0,
        float(grid.run.n),
        "effective patterns",
        log=True,
        cursor=_column(settings.beta),
        note=f"n = {grid.run.n:,} {grid.run.side} stored",
        rows=tuple(f"pair {row}: {grid.run.items.caption[row]}" for row in rows),
        columns=tuple(f"beta {beta:.3g}" for beta in BETAS),
        row_ids=tuple(rows),
    )


CHART: Final = Chart(
    view="hopfield",
    label="Beta",
    question="How many patterns does each query average at each beta?",
    cost="Grows with the stored patterns: 96 of them ask.",
    settings=BetaSettings,
    compute=per_run(beta_grid),
    draw=draw,
)
