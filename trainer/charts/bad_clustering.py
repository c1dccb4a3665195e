"""The clusterings of a PCL run, and what one of them does when it is random."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.charts import ChartError
from trainer.charts.marks import Axis, Mark, NumberRow, NumberTable, Panel, Series, Tone, XYPlot, axis_over, heading_row
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.store import Workspace

METHOD: Final = """\
PCL clusters all training pictures before every epoch, M times, each time twice as fine, and compares with the mean \
of the M terms (Li et al., 2021, https://arxiv.org/abs/2005.04966, equation 11). Numbers of the E steps of the run \
itself, by the momentum encoder. Purity: share of the labeled pictures whose cluster has their label most often. \
Loss: cross-entropy of the own prototype. Random: the same clusters, given to the pictures in a random order. \
Cosine: between the gradients of the mean over all M on the embeddings, with this clustering random and as it was. \
With one clustering a random one is all there is; of M it is a part in M, which is why PCL takes several."""

TONES: Final[tuple[Tone, ...]] = ("first", "second", "fourth", "third", "fifth", "sixth")
_NAME: Final = re.compile(r"train/clusters(\d+)_loss")
MEASURES: Final = ("purity", "loss", "random_loss", "random_cosine")


@dataclass(frozen=True)
class BadClusteringSettings:
    """None."""


class LoggedClusterings(Struct, frozen=True):
    """The clusterings of a run: number of clusters -> measure -> steps and values."""

    name: str
    series: dict[int, dict[str, tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]]]


def of_run(
    workspace: Workspace, target: Target, _request: Request, _settings: BadClusteringSettings, _progress: Progress
) -> LoggedClusterings:
    """Return what the E steps of a run logged, up to the chosen step.

    Raises:
        ChartError: The run is no PCL run, or has had no E step yet.
    """
    row = workspace.runs.get(target.run)
    sizes = sorted(int(match[1]) for name in workspace.results.scalar_names(row.id) if (match := _NAME.fullmatch(name)))
    if not sizes:
        raise ChartError(
            f"{row.short_name} logged no clusterings. Choose a run of PCL that has trained past its warm-up."
        )
    end = row.step if target.step is None else target.step
    series = {
        size: {measure: _until(workspace, row.id, f"train/clusters{size}_{measure}", end) for measure in MEASURES}
        for size in sizes
    }
    return LoggedClusterings(row.short_name, series)


def _until(workspace: Workspace, run: int, name: str, end: int) -> tuple[np.ndarray, np.ndarray]:
    steps, values, _ = workspace.results.series(run, name)
    return steps[steps <= end], values[steps <= end]


def draw(data: PerRun[LoggedClusterings], _settings: BadClusteringSettings) -> Panel:
    """Draw purity, loss and gradient of each clustering over the steps, and the last ones as a table."""
    rows: list[tuple[Mark, ...]] = []
    for index, run in enumerate(data.found):
        measured = {measure: [of[measure] for of in run.series.values()] for measure in MEASURES}
        step = axis_over("step", [steps for steps, _ in measured["loss"]], integer=True)
        losses = [*_curves(run, "loss"), *_curves(run, "random_loss", dashed=True)]
        rows.append((
            XYPlot(f"purity-{index}", f"{run.name}: purity", step, Axis("labeled pictures (%)", 0, 100, percent=True),
                   _curves(run, "purity", scale=100)),
            XYPlot(f"loss-{index}", "Loss, dashed if random", step, axis_over("loss", [curve.y for curve in losses]),
                   tuple(losses)),
            XYPlot(f"cosine-{index}", "Gradient with a random one", step, Axis("cosine", -1, 1.02),
                   _curves(run, "random_cosine")),
        ))  # fmt: skip
    rows.append((_table(data),))
    return Panel(title="One bad clustering", head=(), rows=tuple(rows))


def _curves(run: LoggedClusterings, measure: str, *, scale: float = 1.0, dashed: bool = False) -> tuple[Series, ...]:
    curves = []
    for (size, of), tone in zip(run.series.items(), TONES * len(run.series)):
        steps, values = of[measure]
        name = "" if dashed else f"{size:,} clusters"
        curves.append(Series(name, tone, steps.astype(np.float64), scale * values, dashed=dashed))
    return tuple(curves)


def _table(data: PerRun[LoggedClusterings]) -> NumberTable:
    lines = []
    for run in data.found:
        lines.append(heading_row(run.name))
        for size, of in run.series.items():
            last = tuple(float(values[-1]) if len(values) else float("nan") for _, values in of.values())
            lines.append(NumberRow(f"{size:,} clusters", "At the last step.", (100 * last[0], *last[1:]), 3))
    columns = ("Purity (%)", "Loss", "Loss, random", "Cosine, random")
    return NumberTable("clusterings", "Last E step", columns, tuple(lines), badges=False)


CHART: Final = Chart(
    view="geometry",
    label="Bad clustering",
    question="How good is each clustering of PCL, and what does a bad one do?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=BadClusteringSettings,
    compute=per_run(of_run),
    draw=draw,
)
