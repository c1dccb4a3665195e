"""Cosines of matched and unmatched pairs of each run: the hardest ones, a sample, or all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from operator import truediv
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.separation import bar_count
from trainer.charts.marks import Axis, Marker, Panel, Rug, Series, Tone, XYPlot, axis_over, run_tone
from trainer.charts.measure import facts_of, filled
from trainer.charts.measures.similarity import (
    HARDEST_NOTE,
    NOTE,
    SimilarityRun,
    SimilaritySettings,
    ends_of,
    numbers,
    similarity,
)
from trainer.charts.similarity_tables import differences, facet_table, table_of
from trainer.charts.spec import Chart, PerRun, Records, per_run
from trainer.metrics import data_label


def draw(data: PerRun[SimilarityRun], settings: SimilaritySettings) -> Panel:
    """Draw histograms of each run, the measures of separation, and the differences between runs."""
    ends = [ends_of([run.matched, run.unmatched]) for run in data.found]
    if settings.same_axis:
        ends = [(min(low for low, _ in ends), max(high for _, high in ends))] * len(ends)
    bars = [bar_count(run.matched, end, settings.bins) for run, end in zip(data.found, ends, strict=True)]
    lengths = [high - low for low, high in ends]
    # Bars of one width, so that heights may be compared.
    width = max(min(map(truediv, lengths, bars)), max(lengths) / settings.bins)
    ends = [(low, max(high, low + width * math.ceil((high - low) / width - 1e-6))) for low, high in ends]
    parts = [
        _series(run, run_tone(index), np.linspace(*end, 1 + round((end[1] - end[0]) / width)), settings)
        for run, index, end in zip(data.found, data.places, ends, strict=True)
    ]
    heights = [
        axis_over("share of pairs (%)", [curve.y for curve in part], include=(0,), percent=True) for part, _ in parts
    ]
    heights = [max(heights, key=lambda axis: axis.high)] * len(heights)
    plots = tuple(
        XYPlot(
            f"cosines-{index}",
            name,
            Axis("cosine of image and text", *end),
            y,
            part,
            dots=means,
            note=_asked(run),
            tone=run_tone(index),
            brushes="x",
            rug=Rug(run.rows, run.matched),
            legend=settings.density,
        )
        for (run, index, name), end, y, (part, means) in zip(data.named, ends, heights, parts, strict=True)
    )
    highest = max((plot.value_ends for plot in plots), key=lambda ends: ends[1])
    plots = tuple(replace(plot, shared_ends=highest) for plot in plots)
    # Of shuffled pairs, the hardest are nearer than the matched one: chance would look like a fault.
    tables = (table_of(data, settings), *(differences(data, settings) if len(data.found) > 1 else ()))
    facets = ((facet_table(data, settings.facet),),) if settings.facet else ()
    return Panel(
        title="Cosines of matched and unmatched pairs",
        rows=(plots, tables, *facets),
        notes=tuple(_notes(data.found, settings)),
    )


def _series(
    run: SimilarityRun, tone: Tone, edges: Float[np.ndarray, " e"], settings: SimilaritySettings
) -> tuple[tuple[Series, ...], tuple[Marker, ...]]:
    """Return the curves, and the markers at the means, which name them."""
    matched, unmatched = run.shares(edges)
    top = float(max(matched.max(), unmatched.max()))
    against = settings.unmatched_words(run.k)
    series = [
        Series("matched", tone, edges, matched, stepped=True, filled=True, width=1),
        Series(against, "quiet", edges, unmatched, stepped=True),
    ]
    kinds: tuple[tuple[str, str, float, np.ndarray, Tone], ...] = (
        ("matched", "matched", run.mean_matched, run.densities[0], tone),
        ("unmatched", against, run.mean_unmatched, run.densities[1], "quiet"),
    )
    means = []
    for name, curve, mean, density, color in kinds:
        if np.isfinite(mean):
            label = f"{curve}, mean {mean:.2f}".replace("-", "−")
            line = np.array([mean, mean]), np.array([0.0, top])
            series.append(Series("", color, *line, dashed=True, width=1, hint=label))
            means.append(Marker("", color, mean, top, 4, label=label, curve=curve))
        if settings.density:
            # As a share of pairs per bar, so that curve and bars have one axis.
            height = 100 * density * (edges[1] - edges[0])
            series.append(Series(f"{name}, density", color, run.grid, height))
    return tuple(series), tuple(means)


def _asked(run: SimilarityRun) -> str:
    every = max(run.pairs, run.of_split)
    sampled = f" of {every:,}" if run.n < every else ""
    pictures = f" of {run.pictures:,} pictures" if run.pictures < run.n else ""
    sizes = f"{run.n:,}{sampled} pairs{pictures}, {run.n_unmatched:,} unmatched"
    return f"step {run.step:,} · {sizes} · {data_label(run)}"


def _notes(runs: Sequence[SimilarityRun], settings: SimilaritySettings) -> list[str]:
    notes = [HARDEST_NOTE if settings.compared == "hardest" else NOTE] if len(runs) > 1 else []
    if pictures := {run.pictures for run in runs if run.drawn}:
        notes.append(f"{max(pictures):,} images, drawn at random, are compared with all texts.")
    if settings.compared == "hardest" and len({run.pairs for run in runs}) > 1:
        notes.append("The runs have different numbers of pairs, so their hardest unmatched pairs are not comparable.")
    if settings.compared == "sampled":
        notes.append("Unmatched pairs are drawn at random.")
    return notes


def values(data: PerRun[SimilarityRun], settings: SimilaritySettings) -> list[dict[str, Any]]:
    """Return facts and separation of each run; with a facet also the AUC of each of its values."""
    rows = []
    for run in data.found:
        row = facts_of(run, "n", "pairs", "pictures") | {"n_unmatched": run.n_unmatched, "k": run.k}
        parts = {f"auc_hard{run.k} {settings.facet} = {part.value}": part.auc for part in run.facets}
        rows.append(row | numbers(run, settings.against(run.k)) | parts)
    return filled(rows)


def records(data: PerRun[SimilarityRun], settings: SimilaritySettings) -> Records:
    """Return one row per pair, the smallest margin of each run (own cosine minus closest other) first."""
    header = ("run", "name", "step", "dataset", "split", "k", "n", "row", "matched", "hardest", "hardest_row")
    lines = []
    for run in data.found:
        order = np.lexsort((run.rows, run.margin))
        columns = (run.rows, run.matched, run.hardest[:, 0], run.hardest_row, run.margin)
        facts = (run.run, run.name, run.step, run.dataset, run.split, run.k, run.n)
        lines += [(*facts, *line) for line in zip(*(column[order].tolist() for column in columns), strict=True)]
    return (*header, "margin"), lines


CHART: Final = Chart(
    view="similarity",
    label="Similarity",
    question="Cosine of matched vs. unmatched pairs.",
    cost="Grows with n: images that are drawn are compared with all texts, 20,000 up to 20,000, 4,000 of 100,000, "
    "1,000 from 400,000 on. Comparing every one grows with n squared.",
    settings=SimilaritySettings,
    compute=per_run(similarity),
    draw=draw,
    values=values,
    records=records,
)
