"""The tables of cosines: separation of matched from unmatched pairs, differences of runs, AUC by a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from trainer.charts.marks import NumberRow, NumberTable, ShadedTable
from trainer.charts.measure import Measure
from trainer.charts.measures.similarity import COMPARABLE, EMPTY, Separation, SimilarityRun, SimilaritySettings
from trainer.charts.spec import PerRun
from trainer.metrics import RECALL_HEADING, recall_name

SHARES: Final = ("overlap", "recall1")
"""Measures in percent, as in every other view."""
MOST_FACETS: Final = 40
"""Values of a column that are drawn; `trainer analyze` prints all."""


def table_of(data: PerRun[SimilarityRun], settings: SimilaritySettings) -> NumberTable:
    """Return the separation of each run, with intervals, and with the level of chance where it is no extreme."""
    runs, lines, chance = data.found, [], settings.compared != "hardest"
    for field, label, hint, digits in _comparable(runs, settings):
        values = tuple(getattr(run, field) for run in runs)
        lines.append(NumberRow(label, hint, values, digits, strong=True, percent=field in SHARES))
        wholes = {run.of_split for run in runs}
        if field == "auc" and len(wholes) == 1 and any(run.whole_auc == run.whole_auc for run in runs):
            hint = "As the training measured it, in its curves and in reports; the rows around it are of stored pairs."
            lines.append(
                NumberRow(
                    f"{_area(runs, settings)}, n = {wholes.pop():,}", hint, tuple(run.whole_auc for run in runs), digits
                )
            )
        if any(field in run.intervals for run in runs):
            hint = "95 % bootstrap interval over the pictures, each with its captions."
            lines.append(NumberRow(f"{label}, interval", hint, tuple(_interval(run, field, digits) for run in runs)))
        if chance and any(field in run.shuffled for run in runs):
            level = tuple(run.shuffled[field] for run in runs)
            hint = "The level of an uninformative model."
            lines.append(NumberRow(f"{label}, shuffled", hint, level, digits, percent=field in SHARES))
    raw = "Raw cosine: not comparable across runs."
    rest = (
        Measure[SimilarityRun]("Mean matched", raw, lambda run: run.mean_matched),
        Measure[SimilarityRun]("Mean unmatched", raw, lambda run: run.mean_unmatched),
        Measure[SimilarityRun]("n matched", "Distinct pairs compared.", lambda run: len(run.matched), 0),
        Measure[SimilarityRun]("n unmatched", "Unmatched pairs of these pictures.", lambda run: run.n_unmatched, 0),
    )
    lines += [measure.row(runs) for measure in rest]
    hint = f"Images whose closest text is not their own, of those compared; the others are {RECALL_HEADING}."
    shares = tuple(f"{run.confused:,} of {run.pictures:,}" for run in runs)
    lines.append(NumberRow("Closer to another caption", hint, shares))
    if any(run.pictures != len(run.matched) for run in runs):
        hint = "Independent items: intervals draw these."
        lines.append(NumberRow("Pictures", hint, tuple(run.pictures for run in runs), 0))
    return NumberTable("numbers", "Separation of matched from unmatched pairs", tuple(data.labels), tuple(lines))


def _area(runs: Sequence[SimilarityRun], settings: SimilaritySettings) -> str:
    """Return what AUC is called: reports name what the matched cosines are compared with, too."""
    kinds = dict.fromkeys(run.k for run in runs)
    hardest = f"{' / '.join(map(str, kinds))} hardest"
    return f"AUC vs. {hardest if settings.compared == 'hardest' else settings.compared}"


def _comparable(runs: Sequence[SimilarityRun], settings: SimilaritySettings) -> list[tuple[Separation, str, str, int]]:
    recall = recall_name("image_to_text", split=[run.split for run in runs], n=[run.pictures for run in runs])
    wholes = {run.of_split for run in runs}
    recall += f" of {max(wholes):,}" if len(wholes) == 1 and max(wholes) else ""
    pictures = {run.pictures for run in runs}
    is_sample = len(wholes) == len(pictures) == 1 and max(wholes) > 0
    of = f", n = {max(pictures):,} of {max(wholes):,}" if is_sample else ""
    labels = {"recall1": recall, "auc": f"{_area(runs, settings)}{of}"}
    return [(name, labels.get(name, label), hint, digits) for name, label, hint, digits in COMPARABLE]


def _interval(run: SimilarityRun, field: str, digits: int) -> str:
    low, high = run.intervals.get(field, (float("nan"), float("nan")))
    return f"{low:.{digits}f} – {high:.{digits}f}".replace("-", "−") if low == low else "–"


def differences(data: PerRun[SimilarityRun], settings: SimilaritySettings) -> tuple[NumberTable]:
    """Return each run minus the first, named by the letters of their places."""
    a, *runs = data.found
    lines = []
    for field, label, hint, digits in _comparable(data.found, settings):
        gaps = tuple(getattr(run, field) - getattr(a, field) for run in runs)
        lines.append(NumberRow(label, hint, gaps, digits, percent=field in SHARES, signed=True))
    first, *others = (chr(ord("A") + index) for index in data.places)
    title = " / ".join(f"{other} against {first}" for other in others)
    return (NumberTable("differences", title, tuple(data.labels[1:]), tuple(lines), badges=False),)


def facet_table(data: PerRun[SimilarityRun], facet: str) -> ShadedTable:
    """Return the AUC of the images of each value of a column."""
    by_value = [{part.value: part for part in run.facets} for run in data.found]
    values = list(dict.fromkeys(value for parts in by_value for value in parts))
    counts = {value: part.n for parts in reversed(by_value) for value, part in parts.items()}
    shares = [[parts[value].auc if value in parts else float("nan") for parts in by_value] for value in values]
    more = f", the first {MOST_FACETS} of {len(values)}" if len(values) > MOST_FACETS else ""
    return ShadedTable(
        "facets",
        f"AUC of the images of each {facet.replace('_', ' ')}, against their hardest unmatched{more}",
        tuple(f"{value or EMPTY}, n = {counts[value]:,}" for value in values[:MOST_FACETS]),
        tuple(data.labels),
        np.array(shares[:MOST_FACETS], dtype=np.float64).reshape(-1, len(data.found)),
        3,
    )
