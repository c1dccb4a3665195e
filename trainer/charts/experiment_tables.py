"""The tables of an experiment: its comparisons, arms, runs and design."""

from __future__ import annotations

import math

from trainer import config
from trainer.analysis.repeated_intervals import OPEN
from trainer.charts.marks import NumberRow, NumberTable, heading_row
from trainer.experiments.experiment import Experiment, Outcome
from trainer.experiments.verdict import (
    ArmComparison,
    ArmOutcome,
    ExperimentVerdict,
    RunOutcome,
    difference_text,
    interval_text,
    tests_together,
)
from trainer.metrics import Metric, metric
from trainer.store.question import question_text


def scaled(measure: Metric) -> tuple[float, str]:
    """Return the factor of a metric in a plot, and the unit of its differences."""
    return (100.0, "points") if measure.percent else (1.0, measure.unit)


def compared_table(
    key: str, title: str, compared: tuple[ArmComparison, ...], verdict: ExperimentVerdict
) -> NumberTable:
    """Return the comparisons of arms with the control: a difference, its interval, and p for each outcome."""
    lines = []
    for outcome in dict.fromkeys(comparison.outcome for comparison in compared):
        if key != "primary":
            lines.append(heading_row(outcome.label))
        metric_of = metric(f"val/{outcome.metric}")
        for comparison in (each for each in compared if each.outcome == outcome):
            says = comparison.decision if key == "primary" else ""
            lines.append(
                NumberRow(
                    f"{comparison.arm} against {comparison.control}",
                    "Mean difference over seeds, with its interval.",
                    (
                        difference_text(metric_of, comparison.interval.mean),
                        interval_text(metric_of, comparison.interval),
                        str(len(comparison.differences)),
                        # Without an interval there is nothing that p could say.
                        p_text(math.nan if math.isinf(comparison.interval.low) else comparison.adjusted),
                        *((says,) if key == "primary" else ()),
                    ),
                    strong=comparison.decision in ("better", "worse") and key == "primary",
                )
            )
    experiment = verdict.experiment
    together = tests_together(experiment, primary=key == "primary")
    share = f"{100 * (1 - experiment.alpha / together):.4g} %"
    adjusted = ["Bonferroni"] if together > 1 else []
    kind = [] if experiment.least_seeds == experiment.most_seeds else ["repeated"]
    kind = ["anytime"] if experiment.most_seeds == OPEN else kind
    adjustment = f" ({', '.join([*kind, *adjusted])})" if kind or adjusted else ""
    columns = (
        "Difference",
        f"{share} interval",
        "Seeds",
        f"p{adjustment}",
        *(("Verdict",) if key == "primary" else ()),
    )
    return NumberTable(key, title, columns, tuple(lines), badges=False)


def p_text(p: float) -> str:
    """Format a p-value."""
    return "–" if math.isnan(p) else "< .001" if p < 0.001 else f"{p:.3f}"


def arms_table(verdict: ExperimentVerdict) -> NumberTable:
    """Return mean and standard deviation of each arm over its seeds."""
    experiment = verdict.experiment
    lines = []
    for outcome in (experiment.outcome, *experiment.secondaries):
        metric_of = metric(f"val/{outcome.metric}")
        spreads = tuple(
            _spread_text(metric_of, arm_outcome) for arm_outcome in verdict.arms if arm_outcome.outcome == outcome
        )
        lines.append(NumberRow(outcome.label, "Mean ± standard deviation (seeds).", spreads))
    names = tuple(arm.name for arm in experiment.arms)
    return NumberTable("arms", "Arms: mean ± standard deviation (seeds)", names, tuple(lines), badges=False)


def _spread_text(measure: Metric, arm: ArmOutcome) -> str:
    mean = measure.text(None if math.isnan(arm.mean) else arm.mean)
    return f"{mean} ± {measure.text(arm.std)} ({arm.n})" if arm.n > 1 else f"{mean} ({arm.n})"


def runs_table(verdict: ExperimentVerdict) -> NumberTable:
    """Return every run with its outcomes, and why one is not counted."""
    outcomes = (verdict.experiment.outcome, *verdict.experiment.secondaries)
    lines = tuple(
        NumberRow(
            run_outcome.run.short_name,
            run_outcome.run.name,
            _cells(run_outcome, outcomes),
        )
        for run_outcome in verdict.runs
    )
    columns = ("Arm", "Seed", "Status", *(outcome.label for outcome in outcomes), "Included")
    return NumberTable("runs", f"Every run ({len(verdict.runs)})", columns, lines, badges=False)


def _cells(run_outcome: RunOutcome, outcomes: tuple[Outcome, ...]) -> tuple[str, ...]:
    values = (
        metric(f"val/{outcome.metric}").text(None if math.isnan(value) else value)
        for outcome, value in zip(outcomes, run_outcome.values, strict=True)
    )
    status = f"{run_outcome.run.status}, deleted" if run_outcome.run.deleted_at is not None else run_outcome.run.status
    return (run_outcome.arm, str(run_outcome.seed), status, *values, run_outcome.note or "yes")


def _budget(experiment: Experiment) -> str:
    """Return the seeds, hours and epochs in words."""
    least, most, epochs = experiment.least_seeds, experiment.most_seeds, experiment.control.run.optimizer.epochs
    seeds = f"{most} seed{'s' * (most != 1)}" if least == most else f"{least} to {most} seeds"
    seeds = f"{least} seeds or more, without an end" if most == OPEN else seeds
    hours = f", {experiment.hours:g} hours" if experiment.hours else ""
    return f"{seeds} from {experiment.first_seed}{hours}; {epochs:g} epoch{'s' * (epochs != 1)} a run"


def design_table(verdict: ExperimentVerdict) -> NumberTable:
    """Return the question, outcome, arms and stopping rule of the experiment."""
    experiment = verdict.experiment
    better = "more" if experiment.outcome.direction == "up" else "less"
    question = next((run_outcome.questions[0] for run_outcome in verdict.runs if not run_outcome.note), None)
    facts = {
        "Question": experiment.question or "–",
        "Primary outcome": f"{experiment.outcome.label} ({better} is better), at the last step",
        "Measured on": question_text(question, task=True) if question else "–",
        "Control": experiment.control.name,
        "The arms differ in": ", ".join(experiment.fields),
        "Data": config.data_name(experiment.control.run.data),
        "Budget": _budget(experiment),
        "Equivalence margin": difference_text(metric(f"val/{experiment.outcome.metric}"), experiment.margin).lstrip("+")
        if experiment.margin
        else "none",
        "Error rate": f"≤ {100 * experiment.alpha:g} % at any stopping time within the budget, for "
        "approximately normal differences",
    }
    lines = tuple(NumberRow(title, "", (value,)) for title, value in facts.items())
    return NumberTable("asked", "Design", ("",), lines, badges=False)


def difference_note(verdict: ExperimentVerdict) -> str:
    """Return seeds and samples behind the differences, and whether the margin of equality can be told at all."""
    outcome = metric(f"val/{verdict.experiment.outcome.metric}")
    factor, unit = scaled(outcome)
    seeds, n, margin = len(verdict.seeds), verdict.samples, factor * verdict.experiment.margin
    note = f"{seeds} seed{'s' if seeds != 1 else ''}" + (f", n = {n:,}" if n else "")
    if not margin:
        return note
    if verdict.too_few_pairs:
        return f"{note}; {verdict.too_few_pairs} (dashed)"
    return f"{note}; dashed: within ±{margin:.3g} {unit} both are equal"
