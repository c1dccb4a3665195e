"""Attributes that linear probes predict from each run's embeddings, and the ablation table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from trainer.charts import objective_label
from trainer.charts.marks import (
    Mark,
    Marker,
    NumberRow,
    NumberTable,
    Panel,
    Series,
    ShadedTable,
    XYPlot,
    axis_over,
    categories,
    run_tone,
)
from trainer.charts.measures.attribute_probes import Probed, Probes, ProbeSettings, attribute_probes
from trainer.charts.snapshot_label import labels
from trainer.charts.snapshot_measures import head_of
from trainer.charts.spec import Chart
from trainer.metrics import SPLIT_LABELS, recall_name

FEW: Final = 30
"""Of fewer tried items an interval is wider than a third."""
MOST_DRAWN: Final = 8
"""More runs than these are in the tables only."""


def draw(data: Probes, settings: ProbeSettings) -> Panel:
    """Draw the selected runs' probes, the tables of all runs, and the effect of co-occurrence."""
    named = [replace(each, name=name) for each, name in zip(data.found, labels(data.found), strict=True)]
    runs = [*named, *data.ablation]
    names = list(dict.fromkeys(name for each in runs for name in (*each.images, *each.texts)))
    drawn = list(zip(runs, data.places))[:MOST_DRAWN]
    rows: list[tuple[Mark, ...]] = []
    if drawn:
        rows.append(tuple(_attribute_plot(side, drawn, names) for side in ("images", "texts")))
    rows.append(tuple(_attribute_table(side, runs, names) for side in ("images", "texts")))
    rows.append((_runs_table(runs),))
    effects = (_effect(side, runs, names) for side in ("images", "texts"))
    if effect_tables := tuple(effect for effect in effects if effect is not None):
        rows.append(effect_tables)
    tried = "; ".join(f"{run.name}: {', '.join(_counts(run))}" for run in runs) + "."
    notes: tuple[str, ...] = (_NOTE, _INDEPENDENT if settings.independent else _OWN, tried)
    notes += (f"Without a snapshot of independent Scenes: {', '.join(data.missing)}.",) if data.missing else ()
    title = "Which attributes does each run encode?"
    return Panel(
        title=title, head=head_of((*data.found, *data.ablation)[: max(len(named), 4)]), rows=tuple(rows), notes=notes
    )


_NOTE: Final = (
    "Linear probes: multinomial logistic regression on the embeddings, fitted on 70 % of the distinct pictures "
    "(linked captions) and tested on the rest; intervals are Wilson's at 95 %. Guessing: always the value that is most "
    "frequent among the fitted. An attribute that a run explains away is read off it no better than by "
    "chance."
)
_OWN: Final = (
    "Each run is probed on its own held-out pairs. 'From the others' is a probe on the pair's other attributes alone: "
    "where training data are correlated, held-out renderings are, too, and an attribute can be predicted from "
    "the others. Only the excess over that is read off the embedding; independent Scenes have no such correlations."
)
_INDEPENDENT: Final = (
    "All runs are probed on the same Scenes, drawn with a seed of their own and without co-occurrence: no attribute "
    "can be predicted from the others, and runs trained with and without co-occurrence are compared on equal terms."
)


def _counts(run: Probed) -> Iterator[str]:
    """Yield how many pictures and captions were tried, and what could not be."""
    for sample, probes in (("pictures", run.images), ("groups of linked captions", run.texts)):
        if tried := sorted({probe.tried for probe in probes.values()}):
            few = f", fewer than {FEW}: the numbers say little" if tried[0] < FEW else ""
            yield f"n = {tried[0]:,} {sample} tried{few}"
    for what, why in run.untried.items():
        yield f"{what} not tried: {why}"


def _attribute_plot(side: str, drawn: Sequence[tuple[Probed, int]], names: Sequence[str]) -> XYPlot:
    dots, curves = [], []
    for order, (each, index) in enumerate(drawn):
        offset = min(0.16, 0.6 / len(drawn)) * (order - (len(drawn) - 1) / 2)
        for at, name in enumerate(names):
            if (value := getattr(each, side).get(name)) is not None:
                ends = {"low": 100 * value.low, "high": 100 * value.high}
                dots.append(Marker(each.name, run_tone(index), at + offset, 100 * value.accuracy, size=9, **ends))
    first = drawn[0][0]
    for at, name in enumerate(names):
        value = getattr(first, side).get(name)
        for level, dashed in ((value.chance, False), (first.others[name], True)) if value is not None else ():
            if level == level:
                ends_of = np.array([at - 0.35, at + 0.35])
                curves.append(Series("", "quiet", ends_of, np.full(2, 100 * level), dashed=dashed, width=1.5))
    x, y = categories("", tuple(names)), axis_over("read correctly (%)", (), include=(0, 104), percent=True)
    note = "gray: guessing; dashed: from the others"
    return XYPlot(
        f"probes-{side}", f"Probes of the {side}", x, y, tuple(curves), dots=tuple(dots), names=tuple(names), note=note
    )


def _attribute_table(side: str, runs: Sequence[Probed], names: Sequence[str]) -> ShadedTable:
    lines = [
        (
            each.name,
            [100 * getattr(each, side)[n].accuracy if n in getattr(each, side) else math.nan for n in names],
        )
        for each in runs
    ]
    first = runs[0]
    chances = [100 * getattr(first, side)[n].chance if n in getattr(first, side) else math.nan for n in names]
    lines.append(("guessing", chances))
    for level in sorted({each.cooccurrence for each in runs if each.cooccurrence is not None}):
        at_level = next(each for each in runs if each.cooccurrence == level)
        lines.append(
            (f"from the others, co-occurrence {level:g}", [100 * at_level.others.get(n, math.nan) for n in names])
        )
    values = np.array([numbers for _, numbers in lines])
    rows = tuple(name for name, _ in lines)
    return ShadedTable(f"table-{side}", f"Read off the {side} (%)", rows, tuple(names), values, 1, top=100.0)


def _runs_table(runs: Sequence[Probed]) -> NumberTable:
    columns = ("objective", "co-occ.", "step", "recall (%)", "dirs image", "dirs text", "rank image", "rank text")
    lines = []
    for each in runs:
        cells = (
            objective_label(each.objective),
            "–" if each.cooccurrence is None else f"{each.cooccurrence:g}",
            f"{each.step:,}",
            f"{each.recall:.1f}" if each.recall == each.recall else "–",
            *(f"{each.directions[side]:,.0f}" if side in each.directions else "–" for side in ("image", "text")),
            *(f"{each.rank[side]:.1f}" if side in each.rank else "–" for side in ("image", "text")),
        )
        lines.append(NumberRow(each.name, "", cells))
    recall = recall_name("image_to_text", split=SPLIT_LABELS["val"])
    title = f"What was trained: {recall}, effective directions (99 %), effective rank"
    return NumberTable("runs", title, columns, tuple(lines), badges=False)


def _effect(side: str, runs: Sequence[Probed], names: Sequence[str]) -> ShadedTable | None:
    """Return accuracy with minus without co-occurrence for each objective trained both ways."""
    by: dict[tuple[str, float], Probed] = {
        (each.objective, each.cooccurrence): each for each in runs if each.cooccurrence is not None
    }
    lines = []
    for objective in dict.fromkeys(kind for kind, _ in by):
        with_ = max((level for kind, level in by if kind == objective), default=0.0)
        if with_ > 0 and (objective, 0.0) in by:
            correlated, free = (getattr(by[objective, level], side) for level in (with_, 0.0))
            differences = [
                100 * (correlated[n].accuracy - free[n].accuracy) if n in correlated and n in free else math.nan
                for n in names
            ]
            lines.append((f"{objective_label(objective)}, {with_:g} − 0", differences))
    if not lines:
        return None
    title = f"{side.capitalize()}: trained with minus without co-occurrence (points)"
    values = np.array([row for _, row in lines])
    key = "effect" if side == "images" else f"effect-{side}"
    return ShadedTable(key, title, tuple(name for name, _ in lines), tuple(names), values, 1, top=50.0)


CHART: Final = Chart(
    view="explaining",
    label="Attribute probes",
    question="Which attributes can be read off each run, and which are explained away?",
    cost="Grows with the pictures that are drawn, at most 20,000, times the attributes.",
    settings=ProbeSettings,
    compute=attribute_probes,
    draw=draw,
)
