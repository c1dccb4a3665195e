"""The verdict on an experiment: the interval of each arm against the control, its seeds, and every run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

import numpy as np

from trainer.analysis.progress import Progress
from trainer.charts.experiment_curves import ArmCurve, arm_curves, arm_plot
from trainer.charts.experiment_tables import (
    arms_table,
    compared_table,
    design_table,
    difference_note,
    runs_table,
    scaled,
)
from trainer.charts.marks import (
    Axis,
    Marker,
    Panel,
    Points,
    Series,
    Tone,
    XYPlot,
    arm_tone,
    axis_over,
    categories,
    near_ends,
)
from trainer.charts.newest_experiment import NoResultYetError, newest
from trainer.charts.outcome_by_field import outcome_by_field
from trainer.charts.spec import Chart, Records, Request
from trainer.config.fields import option
from trainer.experiments.verdict import ArmComparison, ExperimentVerdict, interval_text, judge
from trainer.metrics import metric
from trainer.store import Workspace

METHOD: Final = """\
Every arm is trained on the same seeds, and each is compared with the first, the control, on one outcome that was \
fixed before the first run: the differences on equal seeds are averaged. The bar is a repeated confidence interval \
with exact t boundaries (Jennison and Turnbull 1989), alpha shared among the comparisons (Bonferroni): results may be \
checked after every seed from the least to the most, and the experiment stopped at any. Where exactly n seeds are \
asked for it is Student's interval, and where the budget has no end an anytime-valid confidence sequence (Wang and \
Ramdas 2023, arXiv:2310.03722). Above 0 or below it decides; within the margin on both sides the arms are called \
equal; else it is undecided. An arrow says that the bar is longer than the axis; its ends are the numbers at it. \
It assumes approximately normal differences, which an arm that fails rarely but severely has not; warnings name \
outliers, and seeds that are weak or collapsed.

At a true difference of 1, 2 and 4 standard deviations of the differences 3 seeds decide 18, 47 and 91 of 100 \
experiments, 3 to 5 seeds 30, 79 and 100, 3 to 8 seeds 50, 98 and 100.

Secondary outcomes are exploratory. Their intervals and p are Bonferroni-corrected over all of them and all arms."""


@dataclass(frozen=True)
class ExperimentSettings:
    """Which experiment."""

    experiment: str = option("", "Experiment", "Its name; empty: the newest.", control=False)


@dataclass(frozen=True)
class DrawnVerdict(ExperimentVerdict):
    """A verdict with the learning curves of its primary outcome, one an arm that has logged it."""

    curves: tuple[ArmCurve, ...] = ()


def compute(
    workspace: Workspace, _request: Request, settings: ExperimentSettings, _progress: Progress
) -> ExperimentVerdict:
    """Return the verdict as the runs stand now.

    Raises:
        ChartError: No run has been measured yet.
    """
    verdict = judge(workspace, newest(workspace, settings.experiment))
    curves = arm_curves(workspace, verdict.experiment, verdict.groups, (f"val/{verdict.experiment.outcome.metric}",))
    if not (curves or verdict.is_measured):
        raise NoResultYetError(verdict.experiment.name, verdict.state, len(verdict.experiment.arms))
    return DrawnVerdict(**{part.name: getattr(verdict, part.name) for part in fields(verdict)}, curves=curves)


def draw(verdict: ExperimentVerdict, _settings: ExperimentSettings) -> Panel:
    """Draw the learning curves, else the values over seeds, and the differences; then the tables."""
    experiment = verdict.experiment
    by_field = outcome_by_field(verdict)
    curves = verdict.curves if isinstance(verdict, DrawnVerdict) else ()
    plots = [arm_plot("learning", curves[0].metric, "", curves)] if curves else []
    if verdict.is_measured:
        plots = [*(plots or [_values(verdict)]), _differences(verdict)]
    rows: list[tuple[Any, ...]] = [tuple(each) for each in (plots, [by_field] if by_field else []) if each]
    rows.append((compared_table("primary", f"Primary outcome: {experiment.outcome.label}", verdict.primary, verdict),))
    if verdict.secondaries:
        rows.append((compared_table("secondary", "Secondary outcomes (exploratory)", verdict.secondaries, verdict),))
    rows += [(arms_table(verdict),), (runs_table(verdict),), (design_table(verdict),)]
    head = tuple(filter(None, (experiment.question, *verdict.words.splitlines(), verdict.not_counted, verdict.advice)))
    title = f"Verdict: {experiment.name}"
    return Panel(title=title, head=head, rows=tuple(rows), notes=verdict.notes, warnings=verdict.warnings)


def _differences(verdict: ExperimentVerdict) -> XYPlot:
    outcome = verdict.experiment.outcome
    factor, unit = scaled(metric(f"val/{outcome.metric}"))
    clouds = [factor * np.array([gap for _, gap in each.differences], np.float64) for each in verdict.primary]
    margin = factor * verdict.experiment.margin
    every = np.concatenate([*clouds, [0.0, margin, -margin]])
    # An interval that is still wide would squeeze the seeds into a line.
    bars = factor * np.array([(each.interval.low, each.interval.high) for each in verdict.primary])
    label = f"difference vs. {verdict.experiment.control.name} ({unit})"
    y = axis_over(label, [every, near_ends(every, bars.ravel().tolist())], margin=0.1)
    by_seed = len(verdict.primary) == 1 and bool(verdict.primary[0].differences)
    dots, points, lines = [], [], []
    for index, (comparison, gaps) in enumerate(zip(verdict.primary, clouds, strict=True)):
        if not len(gaps):
            continue
        tone = arm_tone(verdict.hue(index + 1))
        # Next to their mean, so that none hides another.
        x_of_seeds = np.arange(len(gaps), dtype=np.float64)
        spread = x_of_seeds if by_seed else index + 0.14 + 0.16 * x_of_seeds / max(len(gaps) - 1, 1)
        points.append(Points("", tone, np.column_stack([spread, gaps]), size=8.0 if by_seed else 6.0))
        stems = zip(spread, gaps, strict=True) if by_seed else ()
        lines += [Series("", tone, np.array([at, at]), np.array([0.0, gap]), width=2.0) for at, gap in stems]
        if len(gaps) > 1:
            dots += _bar(comparison, tone, len(gaps) if by_seed else index, factor, y)
    names = _seed_names(verdict) if by_seed else tuple(comparison.arm for comparison in verdict.primary)
    x = categories("", names)
    ends = np.array([x.low, x.high])
    lines.append(Series("", "quiet", ends, np.zeros(2), width=1.0))
    edges = ((f"margin ±{margin:.3g}", margin), ("", -margin)) if margin else ()
    lines += [Series(name, "quiet", ends, np.full(2, at), dashed=True, width=1.0) for name, at in edges]
    return XYPlot(
        "difference", f"Difference in {outcome.label}", x, y, tuple(lines), dots=tuple(dots), points=tuple(points),
        names=names, note=difference_note(verdict),
    )  # fmt: skip


def _seed_names(verdict: ExperimentVerdict) -> tuple[str, ...]:
    """Return what stands below each seed of the only comparison, and below its mean where there is one."""
    level = 100 * (1 - verdict.experiment.alpha / verdict.experiment.comparisons)
    mean = "mean" if math.isinf(verdict.primary[0].interval.low) else f"mean, {level:.4g} %"
    seeds = tuple(f"seed {seed}" for seed, _ in verdict.primary[0].differences)
    return (*seeds, mean) if len(seeds) > 1 else seeds


def _bar(comparison: ArmComparison, tone: Tone, x: int, factor: float, y: Axis) -> list[Marker]:
    """Return the mean with its interval at `x`, cut at the ends of the axis where arrows say that it is longer."""
    low, high = factor * comparison.interval.low, factor * comparison.interval.high
    mean = factor * comparison.interval.mean
    if math.isinf(low):
        return [Marker(comparison.arm, tone, x, mean, 11.0, "diamond")]
    hint = f"{comparison.arm}: {interval_text(metric(f'val/{comparison.outcome.metric}'), comparison.interval)}"
    markers = [Marker(comparison.arm, tone, x, mean, 11.0, "diamond", "", max(low, y.low), min(high, y.high), hint)]
    inside = 0.025 * (y.high - y.low)  # so that an arrow is seen whole
    markers += [Marker("", tone, x, y.high - inside, 9.0, "up", hint)] if high > y.high else []
    return markers + ([Marker("", tone, x, y.low + inside, 9.0, "down", hint)] if low < y.low else [])


def _values(verdict: ExperimentVerdict) -> XYPlot:
    outcome = verdict.experiment.outcome
    metric_of, arms = metric(f"val/{outcome.metric}"), verdict.experiment.arms
    factor = scaled(metric_of)[0]
    seeds = sorted({run_outcome.seed for run_outcome in verdict.runs if not run_outcome.note})
    points = []
    for index, arm in enumerate(arms):
        counted = [run_outcome for run_outcome in verdict.runs if run_outcome.arm == arm.name and not run_outcome.note]
        # Next to each other, so that equal values of two arms are both seen.
        x = [seeds.index(run_outcome.seed) + 0.3 * (index / (len(arms) - 1) - 0.5) for run_outcome in counted]
        xy = np.array([x, [factor * run_outcome.values[0] for run_outcome in counted]], dtype=np.float64).T
        points.append(Points(arm.name, arm_tone(verdict.hue(index)), xy, size=8.0))
    names = tuple(f"seed {seed}" for seed in seeds)
    unit = "%" if metric_of.percent else metric_of.unit
    y = axis_over(unit, [cloud.xy[:, 1] for cloud in points], percent=metric_of.percent)
    return XYPlot("values", outcome.label, categories("", names), y, points=tuple(points), names=names)


def values(verdict: ExperimentVerdict, _settings: ExperimentSettings) -> list[dict[str, Any]]:
    """Return one dictionary per comparison, the primary ones first."""
    columns = []
    for index, comparison in enumerate((*verdict.primary, *verdict.secondaries)):
        column = {"outcome": comparison.outcome.label, "primary": index < len(verdict.primary)}
        column |= {"arm": comparison.arm, "control": comparison.control, "difference": comparison.interval.mean}
        column |= {"low": comparison.interval.low, "high": comparison.interval.high, "seeds": comparison.interval.n}
        column |= {"p": comparison.p, "p_bonferroni": comparison.adjusted, "p_sign_flip": comparison.sign_flip}
        columns.append(column | {"decision": comparison.decision})
    return columns


def records(verdict: ExperimentVerdict, _settings: ExperimentSettings) -> Records:
    """Return every run with its outcomes, and why one is not counted."""
    outcomes = (verdict.experiment.outcome, *verdict.experiment.secondaries)
    header = ("run", "name", "arm", "seed", "status", *(outcome.label for outcome in outcomes), "not_counted")
    lines = []
    for outcome in verdict.runs:
        run = outcome.run
        lines.append((run.id, run.short_name, outcome.arm, outcome.seed, run.status, *outcome.values, outcome.note))
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
        "runs": [
            {"run": outcome.run.id, "name": outcome.run.name, "label": outcome.run.short_name}
            | dict(zip(header[2:], line[2:], strict=True))
            for outcome, line in zip(verdict.runs, lines, strict=True)
        ],
        "not_counted": verdict.not_counted,
        "warnings": list(verdict.warnings),
        "notes": list(verdict.notes),
    }


CHART: Final = Chart(
    view="experiments",
    label="Verdict",
    question="Which variant is better, and is it decided?",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=ExperimentSettings,
    needs="none",
    compute=compute,
    draw=draw,
    values=values,
    records=records,
)
