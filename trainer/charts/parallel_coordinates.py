"""Parallel coordinates: a line per run through the values of the fields in which the runs differ, to its outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.progress import Progress
from trainer.charts.marks import Axis, NumberRow, NumberTable, Panel, Series, Tone, XYPlot, categories
from trainer.charts.run_fields import RunFields, run_fields
from trainer.charts.spec import Chart, Request
from trainer.config.fields import option
from trainer.store import Workspace

METHOD: Final = """\
A line is a run. Each vertical axis is a field in which the runs differ, from its least value at the bottom to its \
largest on top. An axis that spans more than 30 to 1 is logarithmic, and words are in alphabetical order. The last \
axis is the outcome. The best quarter of the runs is drawn in color. Fields that tell how a run is watched are \
left out."""
MOST_FIELDS: Final = 10
WIDE: Final = 30.0
MOST_LISTED: Final = 50


@dataclass(frozen=True)
class ParallelSettings:
    """What is explained."""

    outcome: str = option("", "Outcome", "Logged or evaluated number; empty: the runs' main metric.")


def compute(workspace: Workspace, request: Request, settings: ParallelSettings, _progress: Progress) -> RunFields:
    """Read the fields and the outcomes."""
    return run_fields(workspace, request.targets, settings.outcome)


def scaled(values: Float[np.ndarray, " n"], *, is_word: bool = False) -> tuple[Float[np.ndarray, " n"], bool]:
    """Return values moved to 0..1, and whether by factors; .5 where all are equal, NaN stays."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return values, False
    low, high = float(finite.min()), float(finite.max())
    by_factors = not is_word and low > 0 and high / low > WIDE
    if by_factors:
        values, low, high = np.log(values), math.log(low), math.log(high)
    return (values - low) / (high - low) if high > low else np.where(np.isfinite(values), 0.5, values), by_factors


def best_quarter(data: RunFields) -> np.ndarray:
    """Return which runs are in the best quarter by the outcome, at least one; none where neither way is good."""
    finite = np.isfinite(data.values)
    if not finite.any() or data.better == "none":
        return np.zeros(len(data.values), bool)
    signed = np.where(finite, data.values if data.better == "up" else -data.values, -np.inf)
    count = max(1, int(finite.sum()) // 4)
    return finite & (signed >= np.sort(signed)[::-1][count - 1])


def draw(data: RunFields, _settings: ParallelSettings) -> Panel:
    """Draw the lines, and the best runs as a table."""
    names = list(data.fields)[:MOST_FIELDS]
    columns, labels = [], []
    for name in names:
        column, by_factors = scaled(data.fields[name], is_word=bool(data.words[name]))
        columns.append(column)
        labels.append(f"{name.rpartition('.')[2]}\n{_span(data, name)}{' (log)' if by_factors else ''}")
    columns.append(scaled(data.values)[0])
    labels.append(f"{data.label}\n{_range(data.values, 100 if data.percent else 1)}{' %' if data.percent else ''}")
    grid = np.stack(columns, axis=1)
    best = best_quarter(data)
    x = np.arange(grid.shape[1], dtype=np.float64)
    named = {False: "other runs", True: "best quarter"}
    curves = []
    for index in [*np.flatnonzero(~best).tolist(), *np.flatnonzero(best).tolist()]:
        is_best = bool(best[index])
        finite = np.isfinite(grid[index])
        tone: Tone = "first" if is_best else "quiet"
        curves.append(
            Series(
                named.pop(is_best, ""),
                tone,
                x[finite],
                grid[index][finite],
                faint=not is_best,
                width=2.0 if is_best else 1.0,
                marked=is_best,
            )
        )
    plot = XYPlot(
        "lines", f"{len(data.runs):,} runs", categories("", tuple(labels)), Axis("least to largest", -0.05, 1.05),
        tuple(curves), names=tuple(labels),
    )  # fmt: skip
    left = len(data.fields) - len(names)
    without = int((~np.isfinite(data.values)).sum())
    notes = [f"Outcome: {data.label} ({data.outcome}), the last value of each run."]
    notes += [f"{left} more fields differ; the configurations list them."] if left else []
    notes += [f"{without} runs have no such number; their lines end before it."] if without else []
    rows = ((plot,), (_table(data, names),))
    return Panel(title="Parallel coordinates", rows=rows, notes=tuple(notes), warnings=data.warnings)


def _table(data: RunFields, names: list[str]) -> NumberTable:
    signed = data.values if data.better != "down" else -data.values
    order = np.argsort(np.where(np.isfinite(signed), -signed, np.inf), kind="stable")[:MOST_LISTED]
    lines = []
    for index in order.tolist():
        cells = [_cell(data, field, index) for field in names]
        lines.append(NumberRow(data.runs[index][1], "", (_number(data.values[index], data.percent), *cells)))
    more = f"The best {MOST_LISTED} of {len(data.runs):,}." if len(data.runs) > MOST_LISTED else ""
    short = [name.rpartition(".")[2] for name in names]
    heads = [brief if short.count(brief) == 1 else name for brief, name in zip(short, names, strict=True)]
    return NumberTable("runs", "Runs, best first", (data.label, *heads), tuple(lines), badges=False, note=more)


def _cell(data: RunFields, field: str, index: int) -> str:
    value = float(data.fields[field][index])
    if not math.isfinite(value):
        return "–"
    return data.words[field][int(value)] if data.words[field] else f"{value:.6g}"


def _number(value: float, percent: bool) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{100 * value:.1f} %" if percent else f"{value:.4g}"


def _span(data: RunFields, name: str) -> str:
    if names := data.words[name]:
        return f"{names[0]} … {names[-1]}"
    return _range(data.fields[name])


def _range(values: Float[np.ndarray, " n"], factor: float = 1.0) -> str:
    finite = values[np.isfinite(values)]
    return f"{factor * finite.min():.4g} … {factor * finite.max():.4g}" if len(finite) else "no value"


def values(data: RunFields, _settings: ParallelSettings) -> list[dict[str, Any]]:
    """Return one column per run: its outcome and the fields that differ."""
    return [
        {"run": run, "name": name, data.outcome: None if math.isnan(data.values[index]) else float(data.values[index])}
        | {field: _cell(data, field, index) for field in data.fields}
        for index, (run, name) in enumerate(data.runs)
    ]


CHART: Final = Chart(
    view="run_comparison",
    label="Parallel coordinates",
    question="Which settings do the best runs share?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=ParallelSettings,
    needs="whole_runs",
    compute=compute,
    draw=draw,
    values=values,
)
