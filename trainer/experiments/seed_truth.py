"""What is known over seeds of the two runs that a view compares: one short sentence, and the experiment that knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from trainer import config
from trainer.experiments.counted import RunGroup, standing
from trainer.experiments.verdict import ArmComparison, ExperimentVerdict, difference_text, judge
from trainer.metrics import metric
from trainer.store import RunRow, StoreError, Workspace

MOST_NAMED: Final = 2
"""Runs that the sentence names before it says how many more do not count."""


@dataclass(frozen=True)
class SeedTruth:
    """What is known over seeds of two runs.

    Attributes:
        seeds: How many seeds these two runs are: `1 seed each`; empty where nothing is compared.
        verdict: What their experiment says, `over 3 seeds: undecided`; empty without one.
        not_counted: Which of its runs do not count, `1 run not counted: CLIP · s3 stopped at 46 of 384`; may be empty.
        experiment: Name of the experiment; empty without one.
    """

    SEPARATOR: ClassVar[str] = " · "
    seeds: str = ""
    verdict: str = ""
    not_counted: str = ""
    experiment: str = ""

    @property
    def text(self) -> str:
        """The sentence; empty where nothing is compared."""
        return self.SEPARATOR.join(filter(None, (self.seeds, self.verdict, self.not_counted)))


def seed_truth(workspace: Workspace, run_a: int | None, run_b: int | None) -> SeedTruth:
    """Return what is known over seeds of runs A and B; nothing where one is missing or both are one run."""
    if run_a is None or run_b is None or run_a == run_b:
        return SeedTruth()
    try:
        rows = [workspace.runs.get(run) for run in (run_a, run_b)]
    except StoreError:
        return SeedTruth()
    arms = list(dict.fromkeys(row.arm for row in rows))
    name = rows[0].experiment
    if not name or rows[1].experiment != name:
        return SeedTruth("1 seed each", "no experiment compares them", _runs_not_counted(rows, map(standing, rows)))
    try:
        verdict = judge(workspace, name)
    except (StoreError, config.ConfigError):
        return SeedTruth("1 seed each")
    seeds = "1 seed each" if len(arms) > 1 else f"2 seeds of {arms[0]}"
    return SeedTruth(seeds, _said_over_seeds(verdict, arms), _not_counted(verdict.groups, arms, verdict), name)


def _said_over_seeds(verdict: ExperimentVerdict, arms: Sequence[str]) -> str:
    control = verdict.experiment.control.name
    others = [arm for arm in arms if arm != control]
    compared = [comparison for comparison in verdict.primary if comparison.arm in others]
    if not compared:
        return "one variant: nothing is compared"
    return ", ".join(_of_comparison(verdict, comparison, several=len(compared) > 1) for comparison in compared)


def _of_comparison(verdict: ExperimentVerdict, comparison: ArmComparison, *, several: bool) -> str:
    n = len(comparison.differences)
    if not n:
        return f"waiting for the first seed of {comparison.arm} and {comparison.control}"
    if comparison.decision == "equal":
        measure = metric(f"val/{comparison.outcome.metric}")
        decision = f"equal within {difference_text(measure, verdict.experiment.margin).removeprefix('+')}"
    elif comparison.decision == "undecided":
        decision = f"{comparison.arm} undecided" if several else "undecided"
    else:
        decision = f"{comparison.arm} is {comparison.decision}"
    return f"over {n} seed{'s' * (n != 1)}: {decision}"


def _not_counted(groups: Sequence[RunGroup], arms: Sequence[str], verdict: ExperimentVerdict) -> str:
    """Return which runs of these arms do not count; those that still wait for their turn are no news."""
    notes = {outcome.run.id: outcome.note for outcome in verdict.runs}
    compared = {*arms, verdict.experiment.control.name}
    members = [member.run for group in groups if group.name in compared for member in group.members]
    started = [row for row in members if row.status != "queued"]
    return _runs_not_counted(started, [notes.get(row.id, "") for row in started])


def _runs_not_counted(rows: Sequence[RunRow], reasons: Sequence[str] | map[str]) -> str:
    sentences = [f"{row.short_name} {why}" for row, why in zip(rows, reasons, strict=True) if why]
    if not sentences:
        return ""
    more = f" and {len(sentences) - MOST_NAMED} more" if len(sentences) > MOST_NAMED else ""
    count = len(sentences)
    return f"{count} run{'s' * (count != 1)} not counted: {', '.join(sentences[:MOST_NAMED])}{more}"
