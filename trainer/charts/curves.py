"""Training curves of several runs: one panel per metric; losses only with runs of the same objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float

from trainer.analysis.curves import smooth, thin
from trainer.analysis.progress import Progress
from trainer.charts import ChartError, objective_label
from trainer.charts.copied_pictures import copies_notes
from trainer.charts.marks import Panel, Series, XYPlot, axis_over, run_tone
from trainer.charts.settings import setting
from trainer.charts.snapshots import PREFERRED_SPLITS
from trainer.charts.spec import Chart, Request
from trainer.metrics import Metric, logged_name, metric, noted_n
from trainer.store import RunRow, Workspace

METHOD: Final = """\
Smoothed: an exponential moving average that starts unbiased, with the weight of the slider but over a tenth of a \
curve at most; the faint line is what was logged. Held-out metrics share an axis. Losses of different objectives are \
different quantities: each objective has its own plot."""
DEFAULT_METRICS: Final = ("val/image_to_text_R@1", "val/text_to_image_R@1", "val/knn_acc1", "train/loss")
Axis = Literal["step", "time"]
_POINTS: Final = 1500
"""Most points of a drawn line: more than a printed page resolves; peaks are kept."""
_FEW: Final = 40
"""A line of at most so many points has each marked."""


@dataclass(frozen=True)
class CurveSettings:
    """The metrics, and how to draw them."""

    metrics: tuple[str, ...] = setting((), "Metrics", "Logged names; empty: the default ones.", control=False)
    axis: Literal["step", "time"] = setting(
        "step", "Axis", "The horizontal axis.", named={"step": "Step", "time": "Time"}
    )
    smoothing: float = setting(0.0, "Smoothing", "Weight of the moving average.", low=0.0, high=0.999)


@dataclass(frozen=True)
class RunCurve:
    """One run's curve of one metric.

    Attributes:
        index: Place of the run among those asked for; decides its color.
        x: Steps, or seconds since the start.
        raw: As logged; NaN and infinities included.
        smooth: Smoothed, over a tenth of the curve at most; equal to `raw` without smoothing.
    """

    index: int
    run: int
    name: str
    objective: str
    x: Float[np.ndarray, " n"]
    raw: Float[np.ndarray, " n"]
    smooth: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class CurvePanel:
    """The curves that share an axis.

    Attributes:
        metric: Logged name.
        label: Title for people; names the objective where objectives may not share the axis, and split and n of
            a recall.
        unit: Of the values as drawn; `%` where `percent`.
        percent: The values are shares, drawn times 100.
        n: Pairs behind each point of a held-out metric, of a recall its distinct questions; None for others, or where
            runs differ in it.
    """

    metric: str
    label: str
    unit: str
    percent: bool
    n: int | None
    series: tuple[RunCurve, ...]
    warnings: tuple[str, ...] = ()
    """Of a held-out metric, how many held-out pictures the runs were trained on."""


def curves(
    workspace: Workspace,
    runs: Sequence[int | str],
    metrics: Sequence[str],
    *,
    axis: Axis = "step",
    smoothing: float = 0.0,
) -> tuple[CurvePanel, ...]:
    """Return the curves of `runs` for each of `metrics` that any of them logged, in metric order.

    Args:
        workspace: Where the runs are.
        runs: Ids or names; their order decides the colors.
        metrics: Logged names.
        axis: Training steps, or seconds since the start.
        smoothing: Weight of the moving average, in [0, 1).

    Raises:
        ChartError: None of the metrics was logged by any run; names those that were.
        StoreError: No such run.
    """
    if not 0 <= smoothing < 1:
        raise ChartError(f"Smoothing {smoothing:g} is out of range: choose 0 (none) up to, but not including, 1.")
    rows = [workspace.runs.get(run) for run in runs]
    panels = [panel for name in dict.fromkeys(metrics) for panel in _panels(workspace, rows, name, axis, smoothing)]
    if not panels:
        logged = sorted({name for row in rows for name in workspace.results.scalar_names(row.id)})
        there = f"choose among {', '.join(logged)}" if logged else "nothing is logged yet, wait for the first step"
        raise ChartError(f"No run has logged {' or '.join(metrics)}; {there}.")
    return tuple(panels)


def _panels(workspace: Workspace, rows: list[RunRow], name: str, axis: Axis, smoothing: float) -> list[CurvePanel]:
    known = metric(name)
    drawn = [
        (row, series)
        for index, row in enumerate(rows)
        if (series := _series(workspace, row, index, name, axis, smoothing)) is not None
    ]
    if known.shared_axis:
        return [_panel(workspace, known, known.label, drawn)] if drawn else []
    # Losses of two objectives are different quantities: one axis for both would invite comparing them.
    kinds = dict.fromkeys(row.objective for row, _ in drawn)
    return [
        _panel(
            workspace, known, f"{known.label}, {objective_label(kind)}", [d for d in drawn if d[0].objective == kind]
        )
        for kind in kinds
    ]


def _panel(workspace: Workspace, known: Metric, label: str, drawn: list[tuple[RunRow, RunCurve]]) -> CurvePanel:
    sizes = {_pairs_behind(workspace, row, known.name) for row, _ in drawn}
    n = sizes.pop() if len(sizes) == 1 else None
    label = logged_name(known.name, n) if known.is_recall else label
    unit = "%" if known.percent else known.unit
    held = known.name.startswith(("val/", "combinations/"))
    warnings = copies_notes([row for row, _ in drawn]) if held else ()
    return CurvePanel(known.name, label, unit, known.percent, n, tuple(series for _, series in drawn), warnings)


def _series(workspace: Workspace, row: RunRow, index: int, name: str, axis: Axis, smoothing: float) -> RunCurve | None:
    steps, values, seconds = workspace.results.series(row.id, name)
    if not len(values):
        return None
    x = np.asarray(seconds if axis == "time" else steps, dtype=np.float64)
    # Over a dozen evaluations the average asked for would lag behind the curve: it spans a tenth of it at most.
    weight = min(smoothing, max(0.0, 1 - 10 / len(values)))
    return RunCurve(index, row.id, row.name, row.objective, x, values, smooth(values, weight))


def _pairs_behind(workspace: Workspace, row: RunRow, name: str) -> int | None:
    prefix = name.partition("/")[0]
    if prefix not in ("val", "combinations"):
        return None
    splits = PREFERRED_SPLITS if prefix == "val" else (prefix,)
    noted = [n for split in splits if (n := noted_n(name, split, row.facts)) is not None]
    if noted:
        return noted[0]
    sizes = {snapshot.n for snapshot in workspace.results.snapshots(row.id) if snapshot.split in splits}
    return sizes.pop() if len(sizes) == 1 else None


def compute(
    workspace: Workspace, request: Request, settings: CurveSettings, _progress: Progress
) -> tuple[CurvePanel, ...]:
    """Return `curves` of the runs."""
    runs = [target.run for target in request.targets]
    metrics = settings.metrics or DEFAULT_METRICS
    return curves(workspace, runs, metrics, axis=settings.axis, smoothing=settings.smoothing)


def draw(data: tuple[CurvePanel, ...], settings: CurveSettings) -> Panel:
    """Draw one plot per metric, two per row, with faint raw lines under smoothed ones."""
    longest = max(float(line.x.max(initial=0)) for panel in data for line in panel.series)
    unit, seconds = ("s", 1) if longest < 180 else ("min", 60) if longest < 3 * 3600 else ("h", 3600)
    x_label, scale = ("Step", 1) if settings.axis == "step" else (f"Training time ({unit})", seconds)
    plots = [_plot(f"curves-{place}", panel, x_label, scale, settings) for place, panel in enumerate(data)]
    rows = tuple(tuple(plots[place : place + 2]) for place in range(0, len(plots), 2))
    names = dict.fromkeys(line.name for panel in data for line in panel.series)
    notes = (f"Smoothed with weight {settings.smoothing:g}; faint: as logged.",) if settings.smoothing else ()
    warnings = tuple(dict.fromkeys(words for panel in data for words in panel.warnings))
    return Panel(title="Training curves", head=(", ".join(names),), rows=rows, notes=notes, warnings=warnings)


def _plot(key: str, panel: CurvePanel, x_label: str, scale: float, settings: CurveSettings) -> XYPlot:
    lines = [one for line in panel.series for one in _lines(line, scale, 100 if panel.percent else 1, settings)]
    x = axis_over(x_label, [line.x for line in lines], margin=0.015)
    y = axis_over(panel.unit if panel.percent else "", [line.y for line in lines])
    title = f"{panel.label} ({panel.unit})" if panel.unit else panel.label
    return XYPlot(
        key,
        title,
        x,
        y,
        tuple(lines),
        note=f"n = {panel.n:,} pairs" if panel.n and not metric(panel.metric).is_recall else "",
    )


def _lines(curve: RunCurve, scale: float, factor: float, settings: CurveSettings) -> list[Series]:
    smoothed, tone = settings.smoothing > 0, run_tone(curve.index)
    few = len(curve.raw) <= _FEW and not smoothed
    raw = Series("" if smoothed else curve.name, tone, *_drawn(curve, curve.raw, scale, factor), marked=few)
    if not smoothed:
        return [raw]
    faint = Series("", tone, raw.x, raw.y, faint=True, width=1.0)
    return [faint, Series(curve.name, tone, *_drawn(curve, curve.smooth, scale, factor))]


def _drawn(curve: RunCurve, values: np.ndarray, scale: float, factor: float) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.isfinite(values), values, np.nan) * factor
    kept = thin(y, _POINTS)
    return curve.x[kept] / scale, y[kept]


def values(data: tuple[CurvePanel, ...], _settings: CurveSettings) -> list[dict[str, Any]]:
    """Return one dictionary per run and metric: the number of logged values, and the last one."""
    return [
        {"metric": panel.metric, "run": line.run, "name": line.name, "objective": line.objective, "n": panel.n}
        | {"logged": len(line.raw), "at": float(line.x[-1]), "value": float(line.raw[-1])}
        | {"smoothed": float(line.smooth[-1])}
        for panel in data
        for line in panel.series
    ]


def records(data: tuple[CurvePanel, ...], settings: CurveSettings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return every logged value, with the smoothed one; shares are in [0, 1]."""
    by_step = settings.axis == "step"
    lines = []
    for panel in data:
        for line in panel.series:
            facts = (panel.metric, line.run, line.name, line.objective, panel.n)
            xs = line.x.astype(np.int64).tolist() if by_step else line.x.round(3).tolist()
            both = zip(xs, line.raw.tolist(), line.smooth.tolist(), strict=True)
            lines += [(*facts, x, raw, smoothed) for x, raw, smoothed in both]
    return ("metric", "run", "name", "objective", "n", "step" if by_step else "seconds", "value", "smoothed"), lines


CHART: Final = Chart(
    name="curves",
    view="runs",
    label="Curves",
    question="How do the runs learn?",
    method=METHOD,
    settings=CurveSettings,
    needs="whole_runs",
    compute=compute,
    draw=draw,
    values=values,
    records=records,
)
