"""What samples of decoders give back: attributes that an independent judge reads off them, by step or by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from trainer.charts.marks import Axis, Bars, NumberRow, NumberTable, Panel, Series, Tone, XYPlot, run_tone
from trainer.metrics import split_label

_TONES: Final[tuple[Tone, ...]] = ("first", "second", "third", "fifth", "sixth", "fourth")
"""Of attributes: those of runs A and B are for runs."""

Interval = tuple[float, float, float]
"""A share with the ends of its 95 % interval."""


@dataclass(frozen=True)
class RecoveryRow:
    """One decoder: which run it decodes at which step, and attribute -> share of samples that the judge reads right."""

    of_name: str
    of_step: int
    recovered: Mapping[str, Interval]


def recovery_panel(rows: Sequence[RecoveryRow], judge: Mapping[str, Interval], *, split: str, n: int) -> Panel:
    """Return a plot for each run over the steps that are decoded, or bars where each run is decoded at one step.

    What comes back at an early step appears first. The judge's own share on the originals is the most that any decoder
    can reach.
    """
    names = list(dict.fromkeys(row.of_name for row in rows))
    by_run = [sorted((row for row in rows if row.of_name == name), key=lambda row: row.of_step) for name in names]
    question = f"{split_label(split)}, n = {n:,} pictures, one sample each; bands: Wilson 95 %"
    if any(len(steps) > 1 for steps in by_run):
        plots = tuple(_over_steps(index, steps, question) for index, steps in enumerate(by_run))
    else:
        plots = (_beside(rows, list(judge), question),)
    return Panel(title="Recovered", rows=(*((plot,) for plot in plots), (_table(rows, judge),)))


def _over_steps(index: int, steps: Sequence[RecoveryRow], question: str) -> XYPlot:
    attributes = list(dict.fromkeys(name for row in steps for name in row.recovered))
    at = np.array([row.of_step for row in steps], float)
    curves = []
    for number, attribute in enumerate(attributes):
        shares = np.array([row.recovered[attribute] for row in steps], float) * 100
        curves.append(
            Series(
                attribute,
                _TONES[number % len(_TONES)],
                at,
                shares[:, 0],
                low=shares[:, 1],
                high=shares[:, 2],
                marked=True,
            )
        )
    spread = max(at[-1] - at[0], 1.0) * 0.04
    return XYPlot(
        f"recovered-{index}", steps[0].of_name,
        Axis("step of the decoded run", at[0] - spread, at[-1] + spread, integer=True),
        Axis("recognized by the judge (%)", 0, 100), curves=tuple(curves), note=question,
    )  # fmt: skip


def _beside(rows: Sequence[RecoveryRow], attributes: Sequence[str], question: str) -> XYPlot:
    bars = []
    for index, row in enumerate(rows):
        ends = list(zip(*(row.recovered[name] for name in attributes), strict=True))
        share, low, high = (tuple(100 * value for value in part) for part in ends)
        bars.append(Bars(f"{row.of_name} at step {row.of_step:,}", run_tone(index), share, low, high))
    return XYPlot(
        "recovered", "Recovered attributes", Axis("attribute", -0.5, len(attributes) - 0.5),
        Axis("recognized by the judge (%)", 0, 100), bars=tuple(bars), names=tuple(attributes), note=question,
    )  # fmt: skip


def _table(rows: Sequence[RecoveryRow], judge: Mapping[str, Interval]) -> NumberTable:
    columns = ("originals", *(f"{row.of_name} at step {row.of_step:,}" for row in rows))
    lines = tuple(
        NumberRow(name, "", (100 * share[0], *(100 * row.recovered[name][0] for row in rows)), 1)
        for name, share in judge.items()
    )
    return NumberTable("judge", "Recognized by the judge (%)", columns, lines, badges=False)
