"""The tables of an experiment: its comparisons, arms, runs and design."""

from __future__ import annotations

import math

from trainer import config
from trainer.analysis.repeated_intervals import OPEN
from trainer.charts.marks import (
    NumberRow,
    NumberTable,
    heading_row,
)
from trainer.experiments.definition import Experiment, Outcome
from trainer.experiments.verdict import (
    ArmComparison,
    ArmOutcome,
    ExperimentVerdict,
    RunOutcome,
    difference_text,
    interval_text,
)
from trainer.metrics import Metric, metric
from trainer.store.question import question_text


def scaled(known: Metric) -> tuple[float, str]:
    """Return the factor of a metric in a plot, and the unit of its differences."""
    return (100.0, "points") if known.percent else (1.0, known.unit)


def compared_table(
    key: str, title: str, compared: tuple[ArmComparison, ...], verdict: ExperimentVerdict
) -> NumberTable:
    """Return the comparisons of arms with the control: a difference, its interval, and p for each outcome."""
    lines = []
    for outcome in dict.fromkeys(one.outcome for one in compared):
        if key != "primary":
            lines.append(heading_row(outcome.label))
        known = metric(f"val/{outcome.metric}")
        for one in (one for one in compared if one.outcome == outcome):
            says = one.decision if key == "primary" else ""
            lines.append(
                NumberRow(
                    f"{one.arm} against {one.control}",
                    "Mean difference over seeds, with its interval.",
                    (
                        difference_text(known, one.interval.mean),
                        interval_text(known, one.interval),
                        str(len(one.differences)),
                        p_text(one.adjusted),
                        *((says,) if key == "primary" else ()),
                    ),
                    strong=one.decision in ("better", "worse") and key == "primary",
                )
            )
    experiment = verdict.experiment
    share = f"{100 * (1 - experiment.alpha / experiment.comparisons):.4g} %"
    kind = "" if experiment.least_seeds == experiment.most_seeds else "repeated, "
    kind = "anytime, " if experiment.most_seeds == OPEN else kind
    columns = (
        "Difference",
        f"{share} interval",
        "Seeds",
        f"p ({kind}Holm)",
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
        known = metric(f"val/{outcome.metric}")
        shown = tuple(_spread_text(known, one) for one in verdict.arms if one.outcome == outcome)
        lines.append(NumberRow(outcome.label, "Mean ± standard deviation (seeds).", shown))
    names = tuple(arm.name for arm in experiment.arms)
    return NumberTable("arms", "Arms: mean ± standard deviation (seeds)", names, tuple(lines), badges=False)


def _spread_text(known: Metric, one: ArmOutcome) -> str:
    mean = known.text(None if math.isnan(one.mean) else one.mean)
    return f"{mean} ± {known.text(one.std)} ({one.n})" if one.n > 1 else f"{mean} ({one.n})"


def runs_table(verdict: ExperimentVerdict) -> NumberTable:
    """Return every run with its outcomes, and why one is not counted."""
    outcomes = (verdict.experiment.outcome, *verdict.experiment.secondaries)
    lines = tuple(
        NumberRow(f"#{one.run.id} {one.run.name}", one.run.name, _cells(one, outcomes)) for one in verdict.runs
    )
    columns = ("Arm", "Seed", "Status", *(outcome.label for outcome in outcomes), "Counted")
    return NumberTable("runs", f"Every run ({len(verdict.runs)})", columns, lines, badges=False)


def _cells(one: RunOutcome, outcomes: tuple[Outcome, ...]) -> tuple[str, ...]:
    values = (
        metric(f"val/{outcome.metric}").text(None if math.isnan(value) else value)
        for outcome, value in zip(outcomes, one.values, strict=True)
    )
    status = f"{one.run.status}, deleted" if one.run.deleted_at is not None else one.run.status
    return (one.arm, str(one.seed), status, *values, one.note or "yes")


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
    question = next((one.questions[0] for one in verdict.runs if not one.note), None)
    facts = {
        "Question": experiment.question or "–",
        "Primary outcome": f"{experiment.outcome.label} ({better} is better), at the last step",
        "Measured on": question_text(question, task=True) if question else "–",
        "Control": experiment.control.name,
        "The arms differ in": ", ".join(experiment.fields),
        "Data": config.data_name(experiment.control.run.data),
        "Budget": _budget(experiment),
        "Equal within": difference_text(metric(f"val/{experiment.outcome.metric}"), experiment.margin).lstrip("+")
        if experiment.margin
        else "nothing is called equal",
        "Wrong verdicts": f"at most {100 * experiment.alpha:g} % at any stop within the budget, if differences are "
        "about normal",
    }
    lines = tuple(NumberRow(words, "", (value,)) for words, value in facts.items())
    return NumberTable("asked", "Design", ("",), lines, badges=False)
