"""One Hopfield retrieval: the patterns that the query averages, and the path and limit of repeated updates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.hopfield import (
    Trail,
    effective_number,
    entropy,
    fixed_point_kind,
    retrieval_shares,
    top_shares,
    updates,
)
from trainer.analysis.label_shares import percent
from trainer.charts.hopfield_patterns import (
    KEPT,
    Patterns,
    Query,
    StoredSettings,
    asks_setting,
    beta_setting,
    beta_words,
    cell,
    head,
    patterns,
    query_of,
    query_setting,
    stored_words,
)
from trainer.charts.marks import (
    Axis,
    ImageRow,
    Marker,
    Panel,
    Points,
    Series,
    XYPlot,
    axis_over,
    run_tone,
)
from trainer.charts.measure import Measure, measure_table
from trainer.charts.outside_query import OutsideQuery, outside_vector
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.config.fields import option
from trainer.store import Workspace

NOTE_KIND: Final = (
    "Fixed point: where repeated updates end. Single pattern: it averages at most 1.5 patterns; global average: more "
    "than half of all stored; metastable: a group between. Effective patterns: exp of the entropy of the weights."
)


@dataclass(frozen=True)
class RetrievalSettings(OutsideQuery, StoredSettings):
    """The stored patterns, and the query: a pair of the snapshot, or an external image or text."""

    query: int = query_setting()
    asks: Literal["image", "text"] = asks_setting()
    beta: float = beta_setting()
    plane: Literal["stored", "map"] = option(
        "stored", "Trajectory in PCA of", "Plane of the trajectory: PCA of the stored patterns, or of the map."
    )


class Retrieval(Struct, frozen=True):
    """One run's retrieval: the weight of each stored pattern, and the path of repeated updates."""

    run: Patterns
    query: Query  # Its pair in this run, or that it is from outside.
    shares: Float[np.ndarray, " n"]
    path: Trail

    @property
    def kind(self) -> str:
        """The kind of fixed point that the updates reach."""
        return fixed_point_kind(float(self.path.numbers[-1]), self.run.n)


def retrieval(
    workspace: Workspace, target: Target, request: Request, settings: RetrievalSettings, progress: Progress
) -> Retrieval:
    """Return the query's retrieval among the run's stored patterns.

    Raises:
        ChartError: Nothing is stored, or there is no such query.
    """
    run = patterns(workspace, target, request, settings, settings.plane, progress)
    state = outside_vector(request, target, settings)
    query = query_of(workspace, target, request, run, settings.query if state is None else -1)
    state = run.state(query.row, settings.asks) if state is None else state
    shares = retrieval_shares(state, run.stored, settings.beta).astype(np.float64)
    return Retrieval(run, query, shares, updates(state, run.stored, settings.beta, progress=progress))


def draw(data: PerRun[Retrieval], settings: RetrievalSettings) -> Panel:
    """Draw the largest weights with their images, the facts, the energy and the path."""
    strips = tuple((_strip(retrieval, index),) for retrieval, index, _ in data.named)
    numbers = measure_table("numbers", "This retrieval", data.labels, _MEASURES, data.found)
    query = (settings.query_text and f"“{settings.query_text}”") or Path(settings.query_image).name
    runs = [retrieval.run for retrieval in data.found]
    query_text = f"query: {query or f'{settings.asks} of pair {settings.query}'}"
    return Panel(
        title="Hopfield retrieval of one query",
        head=head(runs, stored_words(runs, settings), query_text, beta_words(settings.beta)),
        rows=(*strips, (numbers, _energy(data)), tuple(_map(*retrieval) for retrieval in data.named)),
        notes=(NOTE_KIND, "Energies and the path are of updates without normalizing, as only then energy falls."),
    )


def _own_weight(retrieval: Retrieval) -> float:
    own_pattern = np.flatnonzero(retrieval.run.is_own(retrieval.query.row))
    return float(retrieval.shares[own_pattern[0]]) if len(own_pattern) else math.nan


def _updates(retrieval: Retrieval) -> float | str:
    updated = len(retrieval.path.states) - 1
    return updated if retrieval.path.converged else f"> {updated}"


_AVERAGED: Final = "Patterns that this retrieval averages: exp of the entropy, from 1 to n."
_OWN: Final = "Where the query's pair is stored, too; nothing masks it."
_MEASURES: Final[tuple[Measure[Retrieval], ...]] = (
    Measure("Effective patterns", _AVERAGED, lambda r: effective_number(r.shares), 2),
    Measure("Stored patterns", "n: how many are stored.", lambda r: r.run.n, 0),
    Measure("Entropy (nats)", "Of the weights; at most ln n.", lambda r: entropy(r.shares)),
    Measure("Largest weight", "Of the nearest stored pattern.", lambda r: r.shares.max(), 4),
    Measure("Weight of its own pair", _OWN, _own_weight, 4),
    Measure("Fixed point", NOTE_KIND, lambda r: r.kind, 0),
    Measure(
        "Effective patterns, fixed point",
        "Patterns that the fixed point averages.",
        lambda r: r.path.numbers[-1],
        2,
    ),
    Measure("Updates", "Until a state is nearer than 1e-5 to its limit.", _updates, 0),
    Measure("Energy of the query", "Ramsauer et al., 2020, equation 1.", lambda r: r.path.energies[0], 4),
    Measure("Energy of the fixed point", "Never above that of the query.", lambda r: r.path.energies[-1], 4),
)


def _strip(retrieval: Retrieval, index: int) -> ImageRow:
    run = retrieval.run
    positions, tops, rest = top_shares(retrieval.shares, KEPT)
    is_own = run.is_own(retrieval.query.row)[positions]
    cells = tuple(
        cell(run, row, float(share), retrieval.query, strong=strong)
        for row, share, strong in zip(run.rows[positions].tolist(), tops, is_own.tolist(), strict=True)
    )
    ends = "converges to " + ("a metastable state" if retrieval.kind == "metastable" else f"a {retrieval.kind}")
    ends = ends if retrieval.path.converged else f"has not converged after {len(retrieval.path.states) - 1} updates"
    note = f"effective patterns {effective_number(retrieval.shares):,.1f} of {run.n:,} · {ends}"
    note += f" · {percent(rest)} of the weight outside the top {len(cells)}" if run.n > len(cells) else ""
    return ImageRow(f"retrieved-{index}", f"{run.name} · step {run.step:,}", run_tone(index), cells, note)


def _energy(data: PerRun[Retrieval]) -> XYPlot:
    energies = [retrieval.path.energies for retrieval in data.found]
    curves = tuple(
        Series(name, run_tone(index), np.arange(len(values), dtype=float), values, marked=True)
        for (_, index, name), values in zip(data.named, energies, strict=True)
    )
    x = Axis("update", -0.3, max(*map(len, energies), 2) - 0.7, integer=True)
    y = axis_over("energy", energies, margin=0.06)
    least = max(y.high - y.low, 0.004) - (y.high - y.low)
    return XYPlot("energy", "Energy", x, Axis("energy", y.low - least / 2, y.high + least / 2), curves)


def _map(retrieval: Retrieval, index: int, name: str) -> XYPlot:
    run, trail, tone = retrieval.run, retrieval.run.place(retrieval.path.states), run_tone(index)
    dots = (
        Marker("query", "second", float(trail[0, 0]), float(trail[0, 1]), size=13, mark="diamond"),
        Marker("fixed point", tone, float(trail[-1, 0]), float(trail[-1, 1]), size=13, mark="ring"),
    )
    of = "of images and texts, as on the Map" if run.plane == "map" else f"of the stored {run.side}"
    drawn = f"{len(run.points):,} of {run.n:,} drawn" if len(run.points) < run.n else f"n = {run.n:,}"
    note = f"PCA {of}, {100 * float(run.shares.sum()):.0f} % of the variance, {drawn}"
    x, y = (axis_over("", (run.points[:, i], trail[:, i]), margin=0.06) for i in (0, 1))
    curves, points = (Series("path", tone, trail[:, 0], trail[:, 1]),), (Points("", "quiet", run.points),)
    return XYPlot(f"map-{index}", f"Path of {name}", x, y, curves, dots=dots, note=note, points=points)


CHART: Final = Chart(
    view="hopfield",
    label="Hopfield retrieval",
    question="Which stored patterns does this query average, and where do its updates end?",
    cost="Grows with the stored patterns times the updates; 3,000 are drawn as points.",
    settings=RetrievalSettings,
    compute=per_run(retrieval),
    draw=draw,
)
