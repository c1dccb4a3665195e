"""Effective robustness: recall under a shift against the line of baseline runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import cycle
from typing import Final

import numpy as np
from msgspec import Struct

from trainer.analysis.effective_robustness import LEAST_RUNS, RobustnessLine, robustness_line
from trainer.charts import ChartError
from trainer.charts.marks import HUES, Axis, Marker, NumberRow, NumberTable, Panel, Points, Series, XYPlot
from trainer.charts.spec import Chart, Progress, Request
from trainer.config.fields import option
from trainer.metrics import logged_name
from trainer.store import Workspace
from trainer.store.number_series import number_series

METHOD: Final = """\
Each point is an evaluation of a run: a share on held-out pairs like the training pairs, and one on shifted pairs (for \
Scenes: combinations that training never shows). A line is fitted to those of the runs that have the \
baseline objective, in logits. \
Effective robustness of a run: what its last point has above the line (Taori et al., 2020, \
https://arxiv.org/abs/2007.00644; CLIP's figure 13: Radford et al., 2021, https://arxiv.org/abs/2103.00020). \
Intervals: 95 %, 2,000 bootstrap draws of whole baseline runs.

Caveats: the line of a few runs of one family is uncertain, and extrapolated where no baseline run is. The interval is \
of the line alone: noise of the run itself, n pairs and one seed, comes on top. A model that is merely better has no \
effective robustness."""

MOST_RUNS: Final = 40


@dataclass(frozen=True)
class RobustnessSettings:
    """The numbers and the baseline."""

    own: str = option("val/image_to_text_R@1", "On own data", "A logged or an evaluated share.", control=False)
    shifted: str = option(
        "combinations/image_to_text_R@1",
        "Shifted",
        "A logged or evaluated share of shifted pairs: shift (evaluate --shift), imagenet-a/zero_shot_acc1.",
    )
    baseline: str = option("clip", "Baseline", "Kind of the objective whose runs the line is fitted to.")


class RunShares(Struct, frozen=True):
    """The shares of one run at its evaluations, and where they come from: logged, or what was evaluated."""

    name: str
    kind: str
    own: np.ndarray
    shifted: np.ndarray
    source: str = "logged"


class Robustness(Struct, frozen=True):
    """The newest of the runs that have both numbers, and the line of the baseline runs; None for too few."""

    runs: tuple[RunShares, ...]
    line: RobustnessLine | None


def compute(workspace: Workspace, request: Request, settings: RobustnessSettings, progress: Progress) -> Robustness:
    """Return the shares of the runs that have both numbers, and the line of the baseline runs among them.

    Raises:
        ChartError: None has.
    """
    runs = []
    rows = [workspace.runs.get(target.run) for target in request.targets]
    for index, row in enumerate(rows):
        progress(index / max(len(rows), 1), f"Reading {row.short_name}")
        moved = number_series(workspace, row.id, settings.shifted)
        held = number_series(workspace, row.id, settings.own, beside=moved.data)
        common, mine, theirs = np.intersect1d(held.steps, moved.steps, return_indices=True)
        standard, shifted = held.values[mine], moved.values[theirs]
        run = workspace.runs.config_of(row.id)
        # A run that is trained here has learned nothing at step 0; a published model has no other step.
        finite = np.isfinite(standard) & np.isfinite(shifted) & ((common > 0) | (not run.optimizer.epochs))
        if finite.any():
            source = ", ".join(dict.fromkeys(filter(None, (held.source, moved.source))))
            runs.append(RunShares(row.short_name, run.objective.kind, standard[finite], shifted[finite], source))
    if not runs:
        both = f"{logged_name(settings.own)} and {logged_name(settings.shifted)}"
        raise ChartError(
            f"None of these runs has both {both} at one step. Runs on Scenes log them: train one. Or measure a shift: "
            "trainer evaluate RUN --task zero_shot robustness --shift PATH, and choose --own zero_shot_acc1 --shifted "
            "shift."
        )
    baseline = [(run.own, run.shifted) for run in runs if run.kind == settings.baseline]
    return Robustness(tuple(runs[-MOST_RUNS:]), robustness_line(baseline))


def draw(data: Robustness, settings: RobustnessSettings) -> Panel:
    """Draw all points with the line and its interval, and each run's effective robustness."""
    kinds = list(dict.fromkeys(run.kind for run in data.runs))
    tones = dict(zip(kinds, cycle(HUES[2:])))  # no objective is A or B
    points = tuple(
        Points(kind, tone, 100 * np.concatenate(
            [np.stack([run.own, run.shifted], 1) for run in data.runs if run.kind == kind]))
        for kind, tone in tones.items()
    )  # fmt: skip
    ends = tuple(Marker("", tones[run.kind], 100 * run.own[-1], 100 * run.shifted[-1], size=7) for run in data.runs)
    curves: tuple[Series, ...] = ()
    if data.line is not None:
        x = np.linspace(0.005, 0.995, 100)
        low, high = data.line.interval(x)
        fitted = 100 * data.line.at(x)
        curves = (Series(f"line of {settings.baseline}", "quiet", 100 * x, fitted, low=100 * low, high=100 * high),)
    x_label, shifted = (f"{logged_name(name)} (%)" for name in (settings.own, settings.shifted))
    plot = XYPlot("robustness", "Shifted against own data", Axis(x_label, 0, 100, percent=True),
                  Axis(shifted, 0, 100, percent=True), curves, dots=ends, points=points)  # fmt: skip
    lacking = f"The line needs {LEAST_RUNS} runs of {settings.baseline} with both numbers."
    return Panel(
        title="Effective robustness",
        head=(f"{len(data.runs)} runs that have both numbers",),
        rows=((plot,), (_table(data),)),
        notes=("Small points: evaluations. Large: the last one of each run.", _sources(data)),
        warnings=() if data.line is not None else (lacking,),
    )


def _sources(data: Robustness) -> str:
    """Return where the numbers come from, each source with its number of runs."""
    counts = Counter(run.source for run in data.runs)
    said = [f"{source} ({n} run{'s' * (n != 1)})" for source, n in counts.items()]
    return f"Numbers: {'; '.join(said)}."


def _table(data: Robustness) -> NumberTable:
    lines = []
    for run in data.runs:
        ends_at = tuple(100 * float(side[-1]) for side in (run.own, run.shifted))
        above, low, high = float("nan"), float("nan"), float("nan")
        if data.line is not None:
            last = run.own[-1:]
            ends = data.line.interval(last)
            above = 100 * float(run.shifted[-1] - data.line.at(last)[0])
            low, high = (100 * float(run.shifted[-1] - end[0]) for end in (ends[1], ends[0]))
        values = (*ends_at, above, low, high)
        lines.append(NumberRow(run.name, f"{run.kind}; {run.source}", values, 1))
    columns = ("Own (%)", "Shifted (%)", "Above the line", "95 % from", "to")
    return NumberTable("runs", "Effective robustness, in points", columns, tuple(lines), badges=False)


CHART: Final = Chart(
    view="run_comparison",
    label="Robustness",
    question="Which runs hold up better under a shift than their accuracy explains?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=RobustnessSettings,
    needs="whole_runs",
    compute=compute,
    draw=draw,
)
