"""What if an update had been another one: recall of the real and of the changed continuation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from trainer.charts import ChartError
from trainer.charts.marks import NumberRow, NumberTable, Panel, Series, XYPlot, axis_over, dash_of, run_tone
from trainer.charts.settings import setting
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.metrics import recall_name
from trainer.store import Workspace
from trainer.store.what_if_files import WhatIfRecord, read_what_ifs

METHOD: Final = """\
Two continuations start from the same weights and moments before an update: as it was, and with a change (pairs left \
out, or another objective). Order, crops, learning rates and random numbers are the same. `trainer replay RUN --step N \
--without ... --objective KIND --continue K` makes both, and takes the real one on to the next checkpoint, where \
weights, buffers and moments must be the same bit by bit; this chart draws what is stored.

The difference is exact for this run: it has no noise of seeds. What a pair is worth to a model is estimated in this \
way for one path of training; influence functions estimate it without training again (Koh & Liang, 2017, \
https://arxiv.org/abs/1703.04730).

Caveats: one run, one place in it. A difference of a few pairs after a few updates says little of the end of training: \
another order would give another one. Another objective begins with the moments of the run's own, which are not those \
it would have had. Its own weights (a temperature) are new."""


@dataclass(frozen=True)
class WhatIfSettings:
    """Which of the stored answers is drawn."""

    asked: int = setting(0, "Earlier answers", "0: the last one; 1: the one before, and so on.", low=0, high=99)


@dataclass(frozen=True)
class RunWhatIf:
    """The answer shown of a run, None where none is stored, and how many are."""

    run: int
    name: str
    stored: int
    record: WhatIfRecord | None


def what_if_of(
    workspace: Workspace, target: Target, _request: Request, settings: WhatIfSettings, _progress: Progress
) -> RunWhatIf:
    """Return the stored answer that the settings select.

    Raises:
        ChartError: Fewer are stored.
        StoreError: No such run.
    """
    row = workspace.runs.get(target.run)
    found = read_what_ifs(row.folder)
    if found and settings.asked >= len(found):
        raise ChartError(f"{row.name} has {len(found)} answers. Choose from 0 to {len(found) - 1}.")
    return RunWhatIf(row.id, row.name, len(found), found[settings.asked] if found else None)


def draw(data: PerRun[RunWhatIf], _settings: WhatIfSettings) -> Panel:
    """Draw both recalls over the updates, a row of plots per run, and the differences."""
    shown = [(one, one.record, place) for one, place in zip(data.found, data.places, strict=True) if one.record]
    rows = tuple(tuple(_plots(one, record, place)) for one, record, place in shown)
    return Panel(
        title="What if",
        head=tuple(
            f"{one.name}, from step {record.step:,} on: {record.change}; {record.dataset} {record.split}, "
            f"n = {record.n:,}; without the change equal bit for bit to "
            f"the checkpoint of step {record.verified:,}"
            for one, record, _ in shown
        ),
        rows=(*rows, (_table(data),)),
        notes=tuple(dict.fromkeys(_strokes(place) for _, _, place in shown)),
        commands=tuple(
            f"Nothing was asked of {one.name} yet: trainer replay {one.run} --step N --without suspected --continue 10."
            for one in data.found
            if one.record is None
        ),
    )


def _strokes(place: int) -> str:
    """Return what the strokes of a run's two lines are: those of A are solid and dashed, of B dashed and dotted."""
    tone = run_tone(place)
    was, would = ("long dashes", "short dashes") if dash_of(tone) else ("solid", "dashed")
    would = "dotted" if dash_of(tone, dashed=True)[0] == 1 else would
    return f"{chr(ord('A') + place)}: {was} as it was, {would} with the change."


def _plots(one: RunWhatIf, record: WhatIfRecord, place: int) -> tuple[XYPlot, XYPlot]:
    x = np.array(record.steps, np.float64)

    def plot(key: str, label: str, was: tuple[float, ...], would: tuple[float, ...]) -> XYPlot:
        real, changed = 100 * np.array(was), 100 * np.array(would)
        curves = (
            Series("as it was", run_tone(place), x, real, marked=True),
            Series(record.change, run_tone(place), x, changed, marked=True, dashed=True),
        )
        y = axis_over("recall (%)", [real, changed])
        return XYPlot(f"{key}-{place}", label, axis_over("step", [x]), y, curves, note=one.name, tone=run_tone(place))

    forth = recall_name("image_to_text", split=record.split, n=record.n)
    back = recall_name("text_to_image", split=record.split, n=record.n_back)
    return (
        plot("recall", forth, record.was, record.would),
        plot("recall-back", back, record.was_back, record.would_back),
    )


def _table(data: PerRun[RunWhatIf]) -> NumberTable:
    nan, found = float("nan"), [one.record for one in data.found]

    def row(label: str, hint: str, value, digits: int) -> NumberRow:  # type: ignore[no-untyped-def]
        return NumberRow(label, hint, tuple(nan if r is None else float(value(r)) for r in found), digits)

    lines = (
        row("Step of the first changed update", "As on the curves.", lambda r: r.step, 0),
        row("Updates", "Made both ways.", lambda r: r.updates, 0),
        row("Pairs left out", "Of the training split.", lambda r: len(r.left_out), 0),
        row("Difference, image to text (points)", "In the end.", lambda r: 100 * (r.would[-1] - r.was[-1]), 2),
        row(
            "Difference, text to image (points)", "In the end.",
            lambda r: 100 * (r.would_back[-1] - r.was_back[-1]), 2,
        ),
        row("Only right with the change", "Held-out images, in the end.", lambda r: r.gained, 0),
        row("Only right as it was", "Held-out images, in the end.", lambda r: r.lost, 0),
        row("Equal bit for bit at", "Checkpoint, without the change.", lambda r: r.verified, 0),
    )  # fmt: skip
    return NumberTable("what-if", "With the change", tuple(one.name for one in data.found), lines, badges=False)


CHART: Final = Chart(
    name="what-if",
    view="explaining",
    label="What if",
    question="How would recall differ if this update had been different?",
    method=METHOD,
    settings=WhatIfSettings,
    compute=per_run(what_if_of),
    draw=draw,
)
