"""An accuracy of many runs over their number of parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import cycle
from typing import Final

from msgspec import Struct

from trainer.charts import ChartError
from trainer.charts.marks import HUES, Axis, Marker, NumberRow, NumberTable, Panel, XYPlot
from trainer.charts.spec import Chart, Progress, Request
from trainer.config.fields import option
from trainer.metrics import logged_name, metric
from trainer.store import Workspace
from trainer.store.number_series import number_series

METHOD: Final = """\
Each point is a run: the last value of a logged or an evaluated number over the parameters of its towers and \
objective, on a logarithmic axis. A run of the supervised baseline (objective cross_entropy) is a diamond, any other \
a disc. It is the form of SimCLR's figure 1 (Chen et al., 2020, https://arxiv.org/abs/2002.05709): linear probes of \
self-supervised towers with supervised ones. Probes of runs are comparable only on the same data, split and \
question; the table names them. One seed is one point: differences within the spread of the seeds say nothing."""

SUPERVISED: Final = "cross_entropy"
MOST_LABELS: Final = 12


@dataclass(frozen=True)
class AccuracyBySizeSettings:
    """The number."""

    outcome: str = option(
        "linear_probe_acc1", "Accuracy", "A logged or evaluated number: linear_probe_acc1, photos/zero_shot_acc1."
    )


class SizedRun(Struct, frozen=True):
    """A run with its size.

    Attributes:
        kind, objective: Of its objective: in configurations, and for people.
        parameters: Of towers and objective.
        value: The last one.
        source: Logged, or what it was evaluated on.
    """

    name: str
    kind: str
    objective: str
    parameters: int
    value: float
    source: str


class SizedRuns(Struct, frozen=True):
    """The runs that have the number and a size, and how many have not."""

    runs: tuple[SizedRun, ...]
    without: int


def compute(workspace: Workspace, request: Request, settings: AccuracyBySizeSettings, progress: Progress) -> SizedRuns:
    """Return the last value and the size of each run that has both.

    Raises:
        ChartError: None has.
    """
    sized = []
    rows = [workspace.runs.get(target.run) for target in request.targets]
    for index, row in enumerate(rows):
        progress(index / max(len(rows), 1), f"Reading {row.short_name}")
        series = number_series(workspace, row.id, settings.outcome)
        parameters = row.facts.get("parameters", 0)
        if len(series.values) and math.isfinite(series.values[-1]) and isinstance(parameters, int) and parameters > 0:
            objective = workspace.runs.config_of(row.id).objective
            value = float(series.values[-1])
            sized.append(SizedRun(row.short_name, objective.kind, objective.label, parameters, value, series.source))
    if not sized:
        raise ChartError(
            f"None of these runs has {logged_name(settings.outcome)}. Measure it: trainer evaluate RUN --task "
            "linear_probe, or name another number."
        )
    return SizedRuns(tuple(sized), len(rows) - len(sized))


def draw(data: SizedRuns, settings: AccuracyBySizeSettings) -> Panel:
    """Draw a point for each run, and a table of all."""
    kinds = dict(zip(dict.fromkeys(run.kind for run in data.runs), cycle(HUES[2:])))  # no objective is A or B
    named = len(data.runs) <= MOST_LABELS
    percent = metric(settings.outcome if "/" in settings.outcome else f"val/{settings.outcome}").percent
    scale = 100 if percent else 1
    dots = tuple(
        Marker(
            run.objective, kinds[run.kind], run.parameters, scale * run.value, 9,
            mark="diamond" if run.kind == SUPERVISED else "disc", label=run.name if named else "", hint=run.name,
        )
        for run in data.runs
    )  # fmt: skip
    sizes, values = [run.parameters for run in data.runs], [scale * run.value for run in data.runs]
    x = Axis("parameters", min(sizes) / 1.5, max(sizes) * 1.5, log=True)
    margin = 0.08 * (max(values) - min(values)) or 1.0
    label = f"{logged_name(settings.outcome)}{' (%)' * percent}"
    y = Axis(label, min(values) - margin, max(values) + margin, percent=percent)
    rows = tuple(
        NumberRow(run.name, f"{run.objective}; {run.source}", (run.parameters / 1e6, scale * run.value), 3)
        for run in sorted(data.runs, key=lambda run: (-run.value, run.name))
    )
    table = NumberTable("runs", "Runs", ("Parameters (M)", label), rows, badges=False)
    lacking = f"{data.without} of the chosen runs {'has' if data.without == 1 else 'have'} no such number or no size."
    return Panel(
        title="Accuracy by size",
        head=(f"{len(data.runs)} runs",),
        rows=((XYPlot("sizes", "Accuracy by size", x, y, dots=dots),), (table,)),
        warnings=(lacking,) if data.without else (),
    )


CHART: Final = Chart(
    view="run_comparison",
    label="Accuracy by size",
    question="Which runs are more accurate than others of their size?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=AccuracyBySizeSettings,
    needs="whole_runs",
    compute=compute,
    draw=draw,
)
