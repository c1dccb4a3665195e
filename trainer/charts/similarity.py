"""Cosines of matched and unmatched pairs of each run: the hardest ones, a sample, or all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from trainer.charts.marks import (
    Axis,
    NumberRow,
    NumberTable,
    Panel,
    Rug,
    Series,
    ShadedTable,
    Tone,
    XYPlot,
    axis_over,
    run_tone,
)
from trainer.charts.measure import Measure, facts_of, filled
from trainer.charts.measures.similarity import (
    COMPARABLE,
    EMPTY,
    HARDEST_NOTE,
    MOST_IMAGES,
    NOTE,
    Separation,
    SimilarityRun,
    SimilaritySettings,
    ends_of,
    numbers,
    similarity,
)
from trainer.charts.snapshot_label import labels
from trainer.charts.spec import Chart, PerRun, per_run
from trainer.metrics import recall_name

MOST_FACETS: Final = 40
"""Values of a column that are drawn; `trainer analyze` prints all."""


def draw(data: PerRun[SimilarityRun], settings: SimilaritySettings) -> Panel:
    """Draw histograms of each run, the measures of separation, and the differences between runs."""
    names = labels(data.found)
    ends = [ends_of([run.matched, run.unmatched]) for run in data.found]
    if settings.same_axis:
        ends = [(min(low for low, _ in ends), max(high for _, high in ends))] * len(ends)
    parts = [
        _series(run, run_tone(index), np.linspace(*end, settings.bins + 1), settings)
        for run, index, end in zip(data.found, data.places, ends, strict=True)
    ]
    heights = [
        axis_over("share of pairs (%)", [curve.y for curve in part], include=(0,), percent=True) for part in parts
    ]
    if settings.same_axis:
        heights = [max(heights, key=lambda axis: axis.high)] * len(heights)
    plots = tuple(
        XYPlot(
            f"cosines-{index}",
            name,
            Axis("cosine of image and text", *end),
            y,
            part,
            note=_asked(run),
            tone=run_tone(index),
            brushes="x",
            rug=Rug(run.rows, run.matched),
        )
        for name, run, index, end, y, part in zip(names, data.found, data.places, ends, heights, parts, strict=True)
    )
    # Of shuffled pairs, the hardest are nearer than the matched one: chance would look like a fault.
    tables = (
        _table(data.found, names, chance=settings.compared != "hardest"),
        *(_differences(data.found, names) if len(names) > 1 else ()),
    )
    facets = ((_facet_table(data.found, names, settings.facet),),) if settings.facet else ()
    return Panel(
        title="Cosines of matched and unmatched pairs",
        rows=(plots, tables, *facets),
        notes=tuple(_notes(data.found, settings)),
    )


def _series(
    run: SimilarityRun, tone: Tone, edges: Float[np.ndarray, " e"], settings: SimilaritySettings
) -> tuple[Series, ...]:
    matched, unmatched = run.shares(edges)
    top = float(max(matched.max(), unmatched.max()))
    series = [
        Series("matched", tone, edges, matched, stepped=True, filled=True, width=1),
        Series(settings.unmatched_words(run.k), "quiet", edges, unmatched, stepped=True),
    ]
    kinds: tuple[tuple[str, float, np.ndarray, Tone], ...] = (
        ("matched", run.mean_matched, run.densities[0], tone),
        ("unmatched", run.mean_unmatched, run.densities[1], "quiet"),
    )
    for name, mean, density, color in kinds:
        if np.isfinite(mean):
            series.append(Series("", color, np.array([mean, mean]), np.array([0.0, top]), dashed=True, width=1))
        if settings.density:
            # As a share of pairs per bar, so that curve and bars have one axis.
            height = 100 * density * (edges[1] - edges[0])
            series.append(Series(f"{name}, density", color, run.grid, height))
    return tuple(series)


def _asked(run: SimilarityRun) -> str:
    sampled = f", of {run.pairs:,} pairs" if run.n < run.pairs else ""
    pictures = f" of {run.pictures:,} pictures" if run.pictures < run.n else ""
    return f"{run.n:,} pairs{pictures}{sampled}, {run.n_unmatched:,} unmatched · {run.dataset}, {run.split}"


def _table(runs: Sequence[SimilarityRun], names: list[str], *, chance: bool) -> NumberTable:
    lines = []
    for field, label, hint, digits in _comparable(runs):
        lines.append(NumberRow(label, hint, tuple(getattr(run, field) for run in runs), digits, strong=True))
        if any(field in run.intervals for run in runs):
            hint = "95 % bootstrap interval over the pictures, each with its captions."
            lines.append(NumberRow(f"{label}, interval", hint, tuple(_interval(run, field, digits) for run in runs)))
        if chance and any(field in run.shuffled for run in runs):
            level = tuple(run.shuffled[field] for run in runs)
            lines.append(NumberRow(f"{label}, shuffled", "The level of an uninformative model.", level, digits))
    raw = "Raw cosine: not comparable across runs."
    rest = (
        Measure[SimilarityRun]("Mean matched", raw, lambda run: run.mean_matched),
        Measure[SimilarityRun]("Mean unmatched", raw, lambda run: run.mean_unmatched),
        Measure[SimilarityRun]("Pictures", "Independent items: intervals draw these.", lambda run: run.pictures, 0),
        Measure[SimilarityRun]("n matched", "Distinct pairs compared.", lambda run: len(run.matched), 0),
        Measure[SimilarityRun]("n unmatched", "Unmatched pairs of these pictures.", lambda run: run.n_unmatched, 0),
    )
    lines += [measure.row(runs) for measure in rest]
    return NumberTable("numbers", "Separation of matched from unmatched pairs", tuple(names), tuple(lines))


def _comparable(runs: Sequence[SimilarityRun]) -> list[tuple[Separation, str, str, int]]:
    recall = recall_name("image_to_text", split=[run.split for run in runs], n=[run.pictures for run in runs])
    return [(name, recall if name == "recall1" else label, hint, digits) for name, label, hint, digits in COMPARABLE]


def _interval(run: SimilarityRun, field: str, digits: int) -> str:
    low, high = run.intervals.get(field, (float("nan"), float("nan")))
    return f"{low:.{digits}f} – {high:.{digits}f}".replace("-", "−") if low == low else "–"


def _differences(runs: Sequence[SimilarityRun], names: list[str]) -> tuple[NumberTable]:
    lines = tuple(
        NumberRow(label, hint, tuple(getattr(run, field) - getattr(runs[0], field) for run in runs[1:]), digits)
        for field, label, hint, digits in _comparable(runs)
    )
    return (NumberTable("differences", f"Minus {names[0]}", tuple(names[1:]), lines, badges=False),)


def _facet_table(runs: Sequence[SimilarityRun], names: list[str], facet: str) -> ShadedTable:
    by_value = [{part.value: part for part in run.facets} for run in runs]
    values = list(dict.fromkeys(value for parts in by_value for value in parts))
    counts = {value: part.n for parts in reversed(by_value) for value, part in parts.items()}
    shares = [[parts[value].auc if value in parts else float("nan") for parts in by_value] for value in values]
    more = f", the first {MOST_FACETS} of {len(values)}" if len(values) > MOST_FACETS else ""
    return ShadedTable(
        "facets",
        f"AUC of the images of each {facet.replace('_', ' ')}, against their hardest unmatched{more}",
        tuple(f"{value or EMPTY}, n = {counts[value]:,}" for value in values[:MOST_FACETS]),
        tuple(names),
        np.array(shares[:MOST_FACETS], dtype=np.float64).reshape(-1, len(names)),
        3,
    )


def _notes(runs: Sequence[SimilarityRun], settings: SimilaritySettings) -> list[str]:
    notes = [HARDEST_NOTE if settings.compared == "hardest" else NOTE]
    if len({(run.dataset, run.split) for run in runs}) > 1:
        notes.append("The runs are shown on different data.")
    if any(MOST_IMAGES == run.n < run.pairs for run in runs):
        notes.append(f"At most {MOST_IMAGES:,} images, drawn at random, are compared with all texts.")
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


def records(data: PerRun[SimilarityRun], settings: SimilaritySettings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return one row per image: its matched cosine, that of its most similar unmatched text, and that text's pair."""
    header = ("run", "name", "step", "dataset", "split", "k", "n", "row", "matched", "hardest", "hardest_row")
    return header, [
        (run.run, run.name, run.step, run.dataset, run.split, run.k, run.n, *line)
        for run in data.found
        for line in zip(
            run.rows.tolist(), run.matched.tolist(), run.hardest[:, 0].tolist(), run.hardest_row.tolist(), strict=True
        )
    ]


CHART: Final = Chart(
    name="similarity",
    view="similarity",
    label="Cosines",
    question="Cosine of matched vs. unmatched pairs.",
    cost="Grows with n: at most 20,000 images are compared with all texts. Comparing every one grows with n squared.",
    settings=SimilaritySettings,
    compute=per_run(similarity),
    draw=draw,
    values=values,
    records=records,
)
