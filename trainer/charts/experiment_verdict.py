"""The verdict on an experiment: the interval of each arm against the control, its seeds, and every run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from trainer.analysis.progress import Progress
from trainer.charts import ChartError
from trainer.charts.experiment_tables import arms_table, compared_table, design_table, runs_table, scaled
from trainer.charts.marks import (
    Marker,
    NumberTable,
    Panel,
    Points,
    Series,
    XYPlot,
    axis_over,
    categories,
    run_tone,
)
from trainer.charts.outcome_by_field import outcome_by_field
from trainer.charts.settings import setting
from trainer.charts.spec import Chart, Request
from trainer.experiments.verdict import (
    ExperimentVerdict,
    judge,
)
from trainer.metrics import metric
from trainer.store import Workspace

METHOD: Final = """\
Every arm is trained on the same seeds, and each is compared with the first, the control, on one outcome that was \
fixed before the first run: the differences on equal seeds are averaged. The bar is an anytime-valid confidence \
sequence (Wang and Ramdas 2023, arXiv:2310.03722), alpha shared among the comparisons (Bonferroni): results may be \
checked after every seed, and the experiment stopped at any. Above 0 or below it decides; within the margin on both \
sides the arms are called equal; else it is undecided. It takes the differences as about normal; an arm that fails \
rarely but badly is not.

Secondary outcomes decide nothing. Their p is anytime-valid and adjusted for all of them and all arms (Holm)."""


@dataclass(frozen=True)
class ExperimentSettings:
    """Which experiment."""

    experiment: str = setting("", "Experiment", "Its name; empty: the newest.", control=False)


def newest(workspace: Workspace, name: str) -> str:
    """Return the name, or that of the newest experiment where it is empty.

    Raises:
        ChartError: There is no experiment at all.
    """
    if name:
        return name
    every = workspace.experiments.all()
    if not every:
        raise ChartError("There is no experiment yet. Make one: trainer experiment new FILE.toml.")
    return every[-1].name


def compute(
    workspace: Workspace, _request: Request, settings: ExperimentSettings, _progress: Progress
) -> ExperimentVerdict:
    """Return the verdict as the runs stand now."""
    return judge(workspace, newest(workspace, settings.experiment))


def draw(verdict: ExperimentVerdict, _settings: ExperimentSettings) -> Panel:
    """Draw the differences and the values over seeds, then the tables; nothing is left out."""
    experiment = verdict.experiment
    by_field = outcome_by_field(verdict)
    rows: list[tuple[Any, ...]] = [(_differences(verdict), _values(verdict)), *([(by_field,)] if by_field else [])]
    rows.append((_decisive(verdict),))
    if verdict.secondaries:
        rows.append((_secondary(verdict),))
    rows += [(arms_table(verdict),), (runs_table(verdict),), (design_table(verdict),)]
    head = tuple(filter(None, (experiment.question, *verdict.words.splitlines())))
    return Panel(title=f"Verdict: {experiment.name}", head=head, rows=tuple(rows), notes=verdict.notes)


def _differences(verdict: ExperimentVerdict) -> XYPlot:
    outcome = verdict.experiment.outcome
    factor, unit = scaled(metric(f"val/{outcome.metric}"))
    dots, points, reach = [], [], [0.0]
    for place, one in enumerate(verdict.primary):
        gaps = factor * np.array([gap for _, gap in one.differences], dtype=np.float64)
        if not len(gaps):
            continue
        known = math.isfinite(one.interval.low)
        low, high = (factor * one.interval.low, factor * one.interval.high) if known else (math.nan, math.nan)
        spread = _spread(place, len(gaps))
        points.append(Points("", run_tone(place + 1), np.column_stack([spread, gaps]), size=6.0))
        mean = factor * one.interval.mean
        dots.append(Marker(one.arm, run_tone(place + 1), place, mean, 11.0, "diamond", "", low, high))
        reach += [*gaps.tolist(), mean] + ([low, high] if known else [])
    names = tuple(one.arm for one in verdict.primary)
    margin = factor * verdict.experiment.margin
    x = categories("", names)
    ends = np.array([x.low, x.high])
    lines = [Series("", "quiet", ends, np.zeros(2), width=1.0)]
    for at in (margin, -margin) if margin else ():
        lines.append(Series("", "quiet", ends, np.full(2, at), dashed=True, width=1.0))
        reach.append(at)
    y = axis_over(f"{unit} over {verdict.experiment.control.name}", [reach])
    seeds = len(verdict.seeds)
    note = f"{seeds} seed{'s' if seeds != 1 else ''}" + (f", n = {verdict.samples:,}" if verdict.samples else "")
    return XYPlot(
        "difference", f"Difference in {outcome.label}", x, y, tuple(lines), dots=tuple(dots), points=tuple(points),
        names=names, note=note,
    )  # fmt: skip


def _values(verdict: ExperimentVerdict) -> XYPlot:
    outcome = verdict.experiment.outcome
    known = metric(f"val/{outcome.metric}")
    factor = 100.0 if known.percent else 1.0
    arms, seeds = verdict.experiment.arms, sorted({one.seed for one in verdict.runs if not one.note})
    points = []
    for place, arm in enumerate(arms):
        counted = [one for one in verdict.runs if one.arm == arm.name and not one.note]
        # Next to each other, so that equal values of two arms are both seen.
        x = [seeds.index(one.seed) + 0.3 * (place / (len(arms) - 1) - 0.5) for one in counted]
        xy = np.array([x, [factor * one.values[0] for one in counted]], dtype=np.float64).T
        points.append(Points(arm.name, run_tone(place), xy, size=8.0))
    names = tuple(f"seed {seed}" for seed in seeds)
    y = axis_over("%" if known.percent else known.unit, [one.xy[:, 1] for one in points])
    return XYPlot("values", outcome.label, categories("", names), y, points=tuple(points), names=names)


def _spread(place: int, n: int) -> np.ndarray:
    """Return places of points next to their mean, so that none hides another."""
    return place + 0.14 + 0.16 * np.arange(n) / max(n - 1, 1)


def _decisive(verdict: ExperimentVerdict) -> NumberTable:
    return compared_table("primary", f"Primary outcome: {verdict.experiment.outcome.label}", verdict.primary, verdict)


def _secondary(verdict: ExperimentVerdict) -> NumberTable:
    return compared_table("secondary", "Secondary outcomes (they decide nothing)", verdict.secondaries, verdict)


def values(verdict: ExperimentVerdict, _settings: ExperimentSettings) -> list[dict[str, Any]]:
    """Return one dictionary per comparison, the primary ones first."""
    found = []
    for place, one in enumerate((*verdict.primary, *verdict.secondaries)):
        column = {"outcome": one.outcome.label, "primary": place < len(verdict.primary)}
        column |= {"arm": one.arm, "control": one.control, "difference": one.interval.mean}
        column |= {"low": one.interval.low, "high": one.interval.high, "seeds": one.interval.n}
        found.append(column | {"p": one.p, "p_holm": one.adjusted, "decision": one.decision})
    return found


def records(verdict: ExperimentVerdict, _settings: ExperimentSettings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return every run with its outcomes, and why one is not counted."""
    outcomes = (verdict.experiment.outcome, *verdict.experiment.secondaries)
    header = ("run", "name", "arm", "seed", "status", *(outcome.label for outcome in outcomes), "not_counted")
    lines = [
        (one.run.id, one.run.name, one.arm, one.seed, one.run.status, *one.values, one.note) for one in verdict.runs
    ]
    return header, lines


def as_values(verdict: ExperimentVerdict) -> dict[str, Any]:
    """Return the whole verdict as plain values for JSON."""
    settings = ExperimentSettings(verdict.experiment.name)
    header, lines = records(verdict, settings)
    return {
        "experiment": verdict.experiment.name,
        "state": verdict.state,
        "question": verdict.experiment.question,
        "outcome": asdict(verdict.experiment.outcome),
        "samples": verdict.samples,
        "decided": verdict.decided,
        "seeds": list(verdict.seeds),
        "words": verdict.words,
        "comparisons": values(verdict, settings),
        "runs": [dict(zip(header, line, strict=True)) for line in lines],
        "notes": list(verdict.notes),
    }


CHART: Final = Chart(
    name="experiment-verdict",
    view="experiments",
    label="Verdict",
    question="Which arm is better, by how much, and over which seeds?",
    method=METHOD,
    settings=ExperimentSettings,
    needs="none",
    compute=compute,
    draw=draw,
    values=values,
    records=records,
)
