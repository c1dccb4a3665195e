"""Fine-tuning: what is gained on the own data and forgotten on a reference set, over the steps or over alpha."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from trainer.analysis.number_text import signed, signed_ends
from trainer.charts.marks import Axis, Marker, NumberRow, NumberTable, Panel, Series, XYPlot, axis_over, run_tone
from trainer.charts.measure import filled
from trainer.charts.measures.forgetting import (
    MEASURES,
    Course,
    Forgetting,
    ForgettingSettings,
    StepShare,
    course_rows,
    measure_run,
)
from trainer.charts.spec import Chart, PerRun, Records, Request, Target, per_run
from trainer.metrics import data_label
from trainer.store import Workspace

METHOD: Final = """\
A fine-tuning has two lines: the held-out pairs of its own data and, in shorter dashes, the reference set, which it \
measures from step 0 on. Another run has one. \
Bands: 95 % Wilson intervals of each share at its n. A run that mixes has alpha on x: its weights are (1 - alpha) base \
+ alpha tuned (Wortsman et al., 2022, https://arxiv.org/abs/2109.01903), of several runs their mean (model soups, \
https://arxiv.org/abs/2203.05482).

The change is since the first step, paired by question: Newcombe's interval (1998, method 10). A triangle marks where \
the reference set has fallen by a whole interval; each evaluation is a test of its own, so among twenty one in forty \
of no effect is marked. A diamond is the alpha that the rule chose, which was stated before anything was measured; it \
was chosen on the pairs that it is drawn on.

Chance alone keeps some recall: compare the end with step 0, not with 0."""


def _without_steps(_workspace: Workspace, request: Request, _settings: Any) -> Request:
    """Return the request without steps: a run is drawn over all of them."""
    return replace(request, targets=tuple(dict.fromkeys(Target(target.run) for target in request.targets)))


def draw(data: PerRun[Forgetting], settings: ForgettingSettings) -> Panel:
    """Draw both sets of every run in one plot, over the changes in numbers."""
    runs = list(zip(data.found, data.places, strict=True))
    plots = [
        _plot([each for each in runs if each[0].mixes == mixes], settings, mixes=mixes)
        for mixes in (False, True)
        if any(run.mixes == mixes for run, _ in runs)
    ]
    return Panel(
        title="Gained and forgotten",
        head=tuple(_head(run, settings.measure) for run in data.found),
        rows=(tuple(plots), (_table(data.found, settings),)),
        notes=tuple(dict.fromkeys(f"Rule of the best alpha: {run.rule}" for run in data.found if run.rule)),
    )


def _head(run: Forgetting, measure: str) -> str:
    data = f"{data_label(run.own)}, n = {run.own.n(measure):,}"
    if run.reference is None:
        return f"{run.name}: {data}; no reference set, so what was forgotten is not known"
    return f"{run.name}: own data {data}; reference set {data_label(run.reference)}, n = {run.reference.n(measure):,}"


def _plot(runs: Sequence[tuple[Forgetting, int]], settings: ForgettingSettings, *, mixes: bool) -> XYPlot:
    curves, dots = [], []
    scale = 100 if mixes else 1
    for run, index in runs:
        for course, name in ((run.own, "own data"), (run.reference, "reference set")):
            shares = course.shares.get(settings.measure, {}) if course else {}
            if shares:
                is_reference = course is run.reference
                name = run.name if run.reference is None else f"{run.name}, {name}"
                curves.append(_curve(name, run_tone(index), shares, scale, dashed=is_reference))
                dots += _dots(run, run_tone(index), shares, scale, is_reference=is_reference)
    last = max((float(curve.x[-1]) for curve in curves), default=1.0)
    x = Axis("alpha", 0, 1) if mixes else Axis("step", 0, max(last, 1) * 1.02, integer=True)
    drawn = [part for curve in curves for part in (curve.low, curve.high)]
    y = axis_over(f"{MEASURES[settings.measure]} (%)", drawn, include=(0,), percent=True)
    is_of_a = any(index == 0 for _, index in runs)
    cursor = settings.at / scale if settings.at >= 0 and is_of_a else math.nan
    title = f"{MEASURES[settings.measure]} over {'alpha' if mixes else 'training'}"
    key = "alpha" if mixes else "course"
    return XYPlot(key, title, x, y, tuple(curves), dots=tuple(dots), cursor=cursor)


def _curve(name: str, tone: str, shares: Mapping[int, StepShare], scale: int, *, dashed: bool) -> Series:
    x = np.array([step / scale for step in shares], np.float64)
    y = np.array([100 * share.value for share in shares.values()])
    low, high = (100 * np.array([share.interval[side] for share in shares.values()]) for side in (0, 1))
    return Series(name, tone, x, y, dashed=dashed, low=low, high=high, marked=len(x) <= 20)


def _dots(
    run: Forgetting, tone: str, shares: Mapping[int, StepShare], scale: int, *, is_reference: bool
) -> list[Marker]:
    """Return the marks on a curve: where the reference set has fallen, and the chosen alpha."""
    dots = []
    for step, share in shares.items():
        at = step / scale, 100 * share.value
        if is_reference and share.change is not None and share.change.high < 0:
            low, fallen, high = (100 * part for part in (share.change.low, share.change.difference, share.change.high))
            hint = f"fallen: {signed(fallen)} points, 95 % {signed_ends(low, high)}"
            dots.append(Marker("", "bad", *at, size=9, mark="down", hint=hint))
        if step == run.best and not is_reference:
            dots.append(Marker("", tone, *at, size=13, mark="diamond", label=f"best alpha {step / 100:g}"))
    return dots


_COUNTS: Final = ("n", "Step, or alpha in %")


def _table(runs: Sequence[Forgetting], settings: ForgettingSettings) -> NumberTable:
    """Return a column a run and set: the share at first and at the step that is looked at, and the change."""
    columns, values_of_columns = [], []
    for run in runs:
        for course, name in ((run.own, "own"), (run.reference, "reference")):
            if course is not None and course.shares.get(settings.measure):
                columns.append(run.name if run.reference is None else f"{run.name}, {name}")
                values_of_columns.append(_values(course, settings))
    hints = {
        "Step, or alpha in %": "The last, or the chosen one.",
        "Start (%)": "At step 0, or alpha 0.",
        "Chosen step (%)": "At that step.",
        "Change (points)": "Paired by question.",
        "95 % from": "Newcombe's interval of the change.",
        "95 % to": "Below 0 on the reference set: forgotten.",
        "n": "Distinct questions.",
    }
    rows = [
        NumberRow(label, hint, tuple(values[label] for values in values_of_columns), 0 if label in _COUNTS else 1)
        for label, hint in hints.items()
    ]
    return NumberTable("changes", f"{MEASURES[settings.measure]}", tuple(columns), tuple(rows), badges=False)


def _values(course: Course, settings: ForgettingSettings) -> dict[str, float]:
    shares = course.shares[settings.measure]
    steps = [step for step in shares if settings.at < 0 or step <= settings.at] or [min(shares)]
    step = max(steps)
    share, change = shares[step], shares[step].change
    of_change = (math.nan,) * 3 if change is None else (change.difference, change.low, change.high)
    difference, low, high = (100 * value for value in of_change)
    return {
        "Step, or alpha in %": step,
        "Start (%)": 100 * shares[min(shares)].value,
        "Chosen step (%)": 100 * share.value,
        "Change (points)": difference,
        "95 % from": low,
        "95 % to": high,
        "n": share.questions,
    }


def records(data: PerRun[Forgetting], _settings: ForgettingSettings) -> Records:
    """Return every share with its interval as rows."""
    rows = filled([row for run in data.found for row in course_rows(run)])
    return tuple(rows[0]) if rows else (), [tuple(row.values()) for row in rows]


CHART: Final = Chart(
    view="fine_tuning",
    label="Gained and forgotten",
    question="What did fine-tuning gain on its own data, and what did it forget?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    settings=ForgettingSettings,
    needs="whole_runs",
    method=METHOD,
    compute=per_run(measure_run),
    draw=draw,
    targets=_without_steps,
    records=records,
)
