"""Data efficiency of groups of runs: their scores by pairs seen, with a band over seeds.

Pairs seen are updates times the pairs of a batch, repetitions counted: one epoch over 12,288 pairs and four epochs over
3,072 are the same budget. That is the horizontal axis of Radford et al., 2021, figure 2 (images processed).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from trainer.analysis.progress import Progress
from trainer.charts.marks import (
    Marker,
    NumberRow,
    NumberTable,
    Panel,
    Series,
    XYPlot,
    arm_tone,
    axis_over,
    run_tone,
    shade,
)
from trainer.charts.measures.data_efficiency import DEFAULT, PAIRS_SEEN, EfficiencyChart, EfficiencyGroup, efficiency
from trainer.charts.spec import Chart, Records, Request
from trainer.config.fields import option
from trainer.metrics import data_label
from trainer.store import Workspace

METHOD: Final = """\
Pairs seen: updates times the pairs of a batch, repetitions counted. One epoch over 12,288 pairs and four over 3,072 \
are the same budget (horizontal axis of Radford et al., 2021, figure 2).

The level is the worst of the groups' best means: what every group reaches. Where a group first has it is read off a \
straight line between its measurements. No ratio of these is given: the level is the largest mean of one of the \
groups, which flatters it, and it has no interval.

Baselines of that figure: `caption_prediction` names the class whose prompts are likeliest given the image, a bag of \
words the one whose name's words score highest, CLIP the one whose prompts are nearest. Their answers differ, their \
question is the same: a likelihood knows how frequent a name is in captions, a cosine does not.

The test compares the first two groups at the largest number of pairs at which both were measured (Welch). The band is \
one standard deviation over seeds."""

BY_WORDS: Final = "A bag of words scores a class by the words of its name."
BY_CAPTIONS: Final = "Caption prediction scores a class by the likelihood of its prompts."


@dataclass(frozen=True)
class EfficiencySettings:
    """The groups, the measure and the data."""

    group: tuple[str, ...] = option((), "Groups", "Patterns of names ('clip-*'), or an experiment.", control=False)
    metric: str = option(DEFAULT, "Measure", "Of an evaluation.", control=False)
    dataset: str = option("", "Data", "Of the evaluations; empty: those with most measurements.", control=False)
    split: str = option("", "Split", "Of the data.", control=False)


def compute(
    workspace: Workspace, _request: Request, settings: EfficiencySettings, _progress: Progress
) -> EfficiencyChart:
    """Return `efficiency` of the groups in the settings."""
    where = {"dataset": settings.dataset or None, "split": settings.split or None}
    return efficiency(workspace, settings.group, measure=settings.metric, **where)


def draw(chart: EfficiencyChart, _settings: EfficiencySettings) -> Panel:
    """Draw one line per group with a band over seeds, and where each reaches the level."""
    scale = 100.0 if chart.metric.percent else 1.0
    named = chart.metric.on(chart.split, chart.n)
    label = f"{named} (%)" if chart.metric.percent else named
    curves = [curve for group in chart.groups for curve in _curves(group, scale)]
    x = axis_over("pairs seen (thousands)", [curve.x for curve in curves], include=(0,))
    ends = [end for curve in curves for end in (curve.y, curve.low, curve.high) if end is not None]
    y = axis_over(label, ends, percent=chart.metric.percent)
    dots: tuple[Marker, ...] = ()
    if chart.all_reach:
        level = np.full(2, scale * chart.level)
        curves.append(Series("level", "quiet", np.array([x.low, x.high]), level, dashed=True, width=1))
        dots = tuple(
            Marker(
                f"{group.pattern} reaches the level",
                arm_tone(group.hue),
                reached / 1000,
                scale * chart.level,
                mark="diamond",
            )
            for group in chart.groups
            if (reached := group.reached) is not None
        )
    n = f"n = {chart.n:,}" if chart.n else ""
    plot = XYPlot("curves", label, x, y, tuple(curves), dots=dots, note="band: one standard deviation over seeds")
    sentence = chart.sentence()
    notes = [sentence, *([] if sentence == PAIRS_SEEN else [PAIRS_SEEN]), *([BY_WORDS] if chart.words else [])]
    notes += [BY_CAPTIONS] if chart.captions else []
    head = (", ".join(filter(None, (data_label(chart), n))), *filter(None, (chart.not_counted,)))
    return Panel(title="Data efficiency", head=head, rows=((plot,), (_table(chart, scale),)), notes=tuple(notes))


def _curves(group: EfficiencyGroup, scale: float) -> list[Series]:
    tone, band, several = arm_tone(group.hue), group.band, len(group.runs) > 1
    mean, reach = scale * band.mean, scale * np.nan_to_num(band.std)
    objectives = f" ({', '.join(group.objectives)})" if group.objectives != (group.pattern,) else ""
    name = f"{group.pattern}{objectives} · {len(group.runs)} seed{'s' * several}"
    low, high = (mean - reach, mean + reach) if several else (None, None)
    curves = [Series(name, tone, band.pairs / 1000, mean, low=low, high=high, marked=True)]
    for run in group.runs if several else ():
        tone, x = shade(run_tone(group.hue), max(run.seed, 0)), np.array(run.pairs) / 1000
        curves.append(Series("", tone, x, scale * np.array(run.values), width=1.0, hint=run.name))
    return curves


def _table(chart: EfficiencyChart, scale: float) -> NumberTable:
    digits = 1 if chart.metric.percent else 3
    rows = [
        NumberRow("Runs", "Seeds of the group.", tuple(float(len(group.runs)) for group in chart.groups), 0),
        NumberRow("Best mean", "Over the points where all its runs were measured.", _of(chart, "best", scale), digits),
        NumberRow("Pairs to the level", "Pairs seen when its mean first reaches the level.", _of(chart, "reached"), 0),
    ]
    return NumberTable("groups", "Groups", tuple(group.pattern for group in chart.groups), tuple(rows), badges=False)


def _of(chart: EfficiencyChart, name: str, scale: float = 1.0) -> tuple[float, ...]:
    values = (getattr(group, name) for group in chart.groups)
    return tuple(math.nan if value is None else scale * value for value in values)


def values(chart: EfficiencyChart, _settings: EfficiencySettings) -> list[dict[str, Any]]:
    """Return one dictionary per group: its points, and the shared level, budget and test."""
    test = vars(chart.test) if chart.test else None
    shared: dict[str, Any] = {"dataset": chart.dataset, "split": chart.split, "metric": chart.name, "n": chart.n}
    shared |= {"not_counted": chart.not_counted}
    shared |= {"level": chart.level, "budget": chart.budget, "test": test}
    return [
        shared
        | {
            "group": group.pattern,
            "objectives": list(group.objectives),
            "runs": [run.name for run in group.runs],
            "pairs_seen": group.band.pairs.tolist(),
            "mean": group.band.mean.tolist(),
            "std": group.band.std.tolist(),
            "best": group.best,
            "pairs_to_level": group.reached,
        }
        for group in chart.groups
    ]


def records(chart: EfficiencyChart, _settings: EfficiencySettings) -> Records:
    """Return one row per run and measurement; shares are in [0, 1]."""
    header = ("dataset", "split", "metric", "n", "group", "objective", "run", "name", "seed", "pairs_seen", "value")
    facts = (chart.dataset, chart.split, chart.name, chart.n)
    return header, [
        (*facts, group.pattern, ", ".join(group.objectives), run.run, run.name, run.seed, pairs, value)
        for group in chart.groups
        for run in group.runs
        for pairs, value in zip(run.pairs, run.values, strict=True)
    ]


CHART: Final = Chart(
    view="evaluate",
    label="Data efficiency",
    question="How many pairs does a group of runs need to reach the same score?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=EfficiencySettings,
    needs="none",
    compute=compute,
    draw=draw,
    values=values,
    records=records,
)
