"""Training curves of several runs: one panel per metric; losses only with runs of the same objective."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from trainer.analysis.progress import Progress
from trainer.analysis.smoothing import thin
from trainer.charts.marks import Panel, Series, XYPlot, axis_over, run_tone
from trainer.charts.measures.curves import DEFAULT_METRICS, CurvePanel, CurveSettings, RunCurve, curves
from trainer.charts.spec import Chart, Records, Request
from trainer.metrics import metric
from trainer.store import Workspace

METHOD: Final = """\
Training metrics may be smoothed: an exponential moving average that starts unbiased, with the weight of the slider \
but over a tenth of a curve at most; the faint line is what was logged. Held-out metrics are drawn as measured, and \
share an axis where data, split and n are the same. Losses of different objectives are different quantities: each \
objective has its own plot."""
_POINTS: Final = 1500
"""Most points of a drawn line: more than a printed page resolves; peaks are kept."""
_FEW: Final = 40
"""A line of at most so many points has each marked."""


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
    plots = [_plot(key, panel, x_label, scale, settings) for key, panel in zip(_keys(data), data, strict=True)]
    rows = tuple(tuple(plots[index : index + 2]) for index in range(0, len(plots), 2))
    names = dict.fromkeys(line.name for panel in data for line in panel.series)
    smoothed = any(line.smooth is not line.raw for panel in data for line in panel.series)
    notes = (f"Training smoothed with weight {settings.smoothing:g}; faint: as logged.",) if smoothed else ()
    warnings = tuple(dict.fromkeys(warning for panel in data for warning in panel.warnings))
    return Panel(title="Training curves", head=(", ".join(names),), rows=rows, notes=notes, warnings=warnings)


def _keys(panels: Sequence[CurvePanel]) -> list[str]:
    """Return the name of each panel as a part to export: its metric, with the objective where that has an axis."""
    taken: Counter[str] = Counter(panel.metric for panel in panels)
    names = [
        f"{panel.metric}:{panel.series[0].objective}" if taken[panel.metric] > 1 and panel.series else panel.metric
        for panel in panels
    ]
    return [name if name not in names[:at] else f"{name}-{at}" for at, name in enumerate(names)]


def _plot(key: str, panel: CurvePanel, x_label: str, scale: float, settings: CurveSettings) -> XYPlot:
    lines = [series for line in panel.series for series in _lines(line, scale, 100 if panel.percent else 1)]
    x = axis_over(x_label, [line.x for line in lines], margin=0.015, integer=settings.axis == "step")
    y = axis_over("", [line.y for line in lines], percent=panel.percent)
    title = f"{panel.label} ({panel.unit})" if panel.unit else panel.label
    return XYPlot(
        key,
        title,
        x,
        y,
        tuple(lines),
        note=panel.about if metric(panel.metric).is_recall else f"n = {panel.n:,} pairs" if panel.n else "",
    )


def _lines(curve: RunCurve, scale: float, factor: float) -> list[Series]:
    smoothed, tone = curve.smooth is not curve.raw, run_tone(curve.index)
    few = len(curve.raw) <= _FEW and not smoothed
    raw = Series("" if smoothed else curve.name, tone, *_drawn(curve, curve.raw, scale, factor), marked=few)
    if not smoothed:
        return [raw]
    faint = Series("", tone, raw.x, raw.y, faint=True, width=1.0)
    return [faint, Series(curve.name, tone, *_drawn(curve, curve.smooth, scale, factor))]


def _drawn(curve: RunCurve, values: np.ndarray, scale: float, factor: float) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.isfinite(values), values, np.nan) * factor
    rows = thin(y, _POINTS)
    return curve.x[rows] / scale, y[rows]


def values(data: tuple[CurvePanel, ...], _settings: CurveSettings) -> list[dict[str, Any]]:
    """Return one dictionary per run and metric: the number of logged values, and the last one."""
    return [
        {"metric": panel.metric, "run": line.run, "name": line.name, "objective": line.objective, "n": panel.n}
        | {"logged": len(line.raw), "at": float(line.x[-1]), "value": float(line.raw[-1])}
        | {"smoothed": float(line.smooth[-1])}
        for panel in data
        for line in panel.series
    ]


def records(data: tuple[CurvePanel, ...], settings: CurveSettings) -> Records:
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
    view="runs",
    label="Curves",
    question="How do the runs learn?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=CurveSettings,
    needs="whole_runs",
    compute=compute,
    draw=draw,
    values=values,
    records=records,
)
