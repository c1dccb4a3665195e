"""The verdict on an experiment: every run with its outcome, paired differences over seeds, and what they decide."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from trainer import config
from trainer.analysis.anytime_valid import Decision, Interval, decide, interval, p_value
from trainer.analysis.significance import holm
from trainer.experiments.definition import Arm, Experiment, Outcome, from_toml
from trainer.metrics import Metric, metric
from trainer.store import Question, RunRow, StoreError, Workspace

COUNTS_AS_ENDED: Final = "finished"


@dataclass(frozen=True)
class RunOutcome:
    """A run of an experiment.

    Attributes:
        run: Its row; it may be deleted.
        seed: Its seed; -1 where its configuration cannot be read.
        values: Of each outcome, the primary first; NaN where it was not measured.
        questions: What each value answers; None where it is not known.
        note: Why it is not counted; empty for one that is.
    """

    run: RunRow
    arm: str
    seed: int
    values: tuple[float, ...]
    questions: tuple[Question | None, ...]
    note: str = ""


@dataclass(frozen=True)
class ArmOutcome:
    """An arm's values of one outcome over seeds; `std` is NaN of a single one."""

    arm: str
    outcome: Outcome
    mean: float
    std: float
    n: int


@dataclass(frozen=True)
class ArmComparison:
    """An arm minus the control on one outcome, over the seeds on which both were measured.

    Attributes:
        interval: Of the mean difference: a confidence sequence at alpha over the number of arms compared (Bonferroni).
        differences: Seed and difference, in the order of the seeds.
        p: Anytime-valid p of no difference.
        adjusted: p after Holm: over the arms for the primary outcome, over arms and outcomes for secondaries.
        decision: Whether the arm is better; of secondaries too, where nothing depends on it.
    """

    arm: str
    control: str
    outcome: Outcome
    interval: Interval
    differences: tuple[tuple[int, float], ...]
    p: float
    adjusted: float
    decision: Decision


@dataclass(frozen=True)
class ExperimentVerdict:
    """Everything that an experiment came to.

    Attributes:
        state: Of the stored experiment.
        runs: Every run, by seed and arm, those that are not counted too.
        arms: Of each outcome, in the order of the arms.
        primary: Comparisons with the control on the outcome that decides.
        secondaries: The others.
        samples: Samples behind the primary outcome; None where it is not known or differs.
        notes: What must be known to read it.
    """

    experiment: Experiment
    state: str
    runs: tuple[RunOutcome, ...]
    arms: tuple[ArmOutcome, ...]
    primary: tuple[ArmComparison, ...]
    secondaries: tuple[ArmComparison, ...]
    samples: int | None
    notes: tuple[str, ...] = field(default=())

    @property
    def decided(self) -> bool:
        """Whether every comparison on the primary outcome is decided."""
        return all(one.decision != "undecided" for one in self.primary)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds on which every arm was measured."""
        counted = Counter(one.seed for one in self.runs if not one.note)
        return tuple(seed for seed in sorted(counted) if counted[seed] == len(self.experiment.arms))

    @property
    def words(self) -> str:
        """The verdict: a line for each arm that is compared, and one of what follows where some are undecided."""
        if not any(one.differences for one in self.primary):
            return "No result yet: no seed has been measured in two arms."
        follows = {"going": "More seeds follow.", "ended": "The budget is used up."}
        more = () if self.decided else (follows.get(self.state, "No seeds are being added."),)
        return "\n".join([*map(self._sentence, self.primary), *more])

    def _sentence(self, one: ArmComparison) -> str:
        n, known = len(one.differences), metric(f"val/{one.outcome.metric}")
        seeds = f"{n} seed{'s' if n != 1 else ''}"
        difference = f"{difference_text(known, one.interval.mean)} {interval_text(known, one.interval)}, {seeds}"
        if one.decision in ("better", "worse"):
            return f"{one.arm} is {one.decision} than {one.control}: {difference}."
        if one.decision == "equal":
            margin = difference_text(known, self.experiment.margin).removeprefix("+")
            return f"{one.arm} and {one.control} are equal within {margin}: {difference}."
        return f"{one.arm} against {one.control} is undecided: {difference}."


def judge(workspace: Workspace, ref: int | str) -> ExperimentVerdict:
    """Return the verdict on a stored experiment as its runs stand now.

    Raises:
        StoreError: There is no such experiment.
        ConfigError: Its definition cannot be read.
    """
    row = workspace.experiments.get(ref)
    return judged(workspace, from_toml(row.definition, source=row.name), row.state)


def judged(workspace: Workspace, experiment: Experiment, state: str = "new") -> ExperimentVerdict:
    """Return the verdict on a definition."""
    outcomes = (experiment.outcome, *experiment.secondaries)
    runs = _distinct([_outcome_of(workspace, experiment, row) for row in workspace.runs.of_experiment(experiment.name)])
    runs = _one_question(runs, len(outcomes))
    compared = [
        [_compare(experiment, runs, arm, place) for arm in experiment.arms[1:]] for place in range(len(outcomes))
    ]
    samples = {one.questions[0].asked(experiment.outcome.metric) for one in runs if not one.note and one.questions[0]}
    return ExperimentVerdict(
        experiment=experiment,
        state=state,
        runs=tuple(sorted(runs, key=lambda one: (one.seed, _place(experiment, one.arm), one.run.id))),
        arms=tuple(
            _arm(runs, arm, outcome, place) for place, outcome in enumerate(outcomes) for arm in experiment.arms
        ),
        primary=_adjusted(compared[0]),
        secondaries=_adjusted([one for group in compared[1:] for one in group]),
        samples=samples.pop() if len(samples) == 1 else None,
        notes=_notes(experiment, runs),
    )


def difference_text(known: Metric, value: float) -> str:
    """Format a difference with its sign, shares in points."""
    if math.isnan(value):
        return "–"
    shown = f"{100 * value:+.1f} points" if known.percent else f"{value:+.{known.digits}f}"
    return shown.replace("-", "−")


def interval_text(known: Metric, one: Interval) -> str:
    """Format an interval in brackets, shares in points; says so where it excludes nothing."""
    if math.isinf(one.low):
        return "[too few seeds]"
    factor, digits = (100, 1) if known.percent else (1, known.digits)
    return f"[{factor * one.low:+.{digits}f}, {factor * one.high:+.{digits}f}]".replace("-", "−")


def _outcome_of(workspace: Workspace, experiment: Experiment, row: RunRow) -> RunOutcome:
    outcomes = (experiment.outcome, *experiment.secondaries)
    nothing = (math.nan,) * len(outcomes), (None,) * len(outcomes)
    try:
        own = workspace.runs.config_of(row.id)
    except (StoreError, config.ConfigError) as error:
        return RunOutcome(row, row.arm, -1, *nothing, note=f"Its configuration cannot be read: {error}")
    arm = experiment.arm(row.arm)
    if arm is None:
        return RunOutcome(row, row.arm, own.seed, *nothing, note="The experiment has no such arm.")
    if (wrong := _foreign(experiment, arm, own)) or row.status != COUNTS_AS_ENDED:
        return RunOutcome(row, row.arm, own.seed, *nothing, note=wrong or f"{row.status}. {row.reason}".strip())
    found = [_value(workspace, row, outcome) for outcome in outcomes]
    values, questions = tuple(one[0] for one in found), tuple(one[1] for one in found)
    measured = math.isfinite(values[0])
    note = "" if measured else f"It was not measured on {experiment.outcome.label}, or the number is not finite."
    return RunOutcome(row, row.arm, own.seed, values, questions, note)


def _foreign(experiment: Experiment, arm: Arm, own: config.Run) -> str:
    """Return why a run does not count as one of the arm: its configuration or its seed is another."""
    changed = [name for name, _, _ in config.difference(experiment.run_of(arm, own.seed), own) if name != "name"]
    if changed:
        return f"It was not trained as the arm says: {', '.join(changed[:4])} differ."
    return "" if own.seed in experiment.seeds else f"Seed {own.seed} is outside of the budget."


def _value(workspace: Workspace, row: RunRow, outcome: Outcome) -> tuple[float, Question | None]:
    """Return the newest value at the last step, and what it answers; NaN without one."""
    for one in reversed(workspace.results.answers(row.id)):
        if one.step != row.step or one.split != outcome.split or outcome.dataset not in ("", one.dataset):
            continue
        plain = {name.rpartition("/")[2]: value for name, value in one.metrics.items()}
        if outcome.metric in plain:
            return float(plain[outcome.metric]), one.question
    return math.nan, None


def _distinct(runs: Iterable[RunOutcome]) -> list[RunOutcome]:
    """Count the first run of each arm and seed only; a second one could be chosen by its result."""
    seen: set[tuple[str, int]] = set()
    found = []
    for one in runs:
        key = (one.arm, one.seed)
        twice = not one.note and key in seen
        found.append(_noted(one, "Another run of this arm and seed came first.") if twice else one)
        if not one.note:
            seen.add(key)
    return found


def _one_question(runs: Sequence[RunOutcome], count: int) -> list[RunOutcome]:
    """Leave out values that answer another question than most; a run without its primary value is not counted."""
    found = list(runs)
    for place in range(count):
        asked = Counter(one.questions[place] for one in found if not one.note and math.isfinite(one.values[place]))
        if len(asked) < 2:
            continue
        usual = asked.most_common(1)[0][0]
        for at, one in enumerate(found):
            if one.note or one.questions[place] == usual:
                continue
            if place == 0:
                found[at] = _noted(one, "Its outcome answers another question (n, gallery or protocol differ).")
            else:
                values = tuple(math.nan if spot == place else value for spot, value in enumerate(one.values))
                found[at] = RunOutcome(one.run, one.arm, one.seed, values, one.questions)
    return found


def _noted(one: RunOutcome, note: str) -> RunOutcome:
    return RunOutcome(one.run, one.arm, one.seed, one.values, one.questions, note)


def _compare(experiment: Experiment, runs: Sequence[RunOutcome], arm: Arm, place: int) -> ArmComparison:
    outcome = (experiment.outcome, *experiment.secondaries)[place]
    control, other = (_by_seed(runs, one.name, place) for one in (experiment.control, arm))
    pairs = tuple((seed, other[seed] - control[seed]) for seed in sorted(control.keys() & other.keys()))
    gaps = np.array([gap for _, gap in pairs], dtype=np.float64)
    asked = {one.questions[place] for one in runs if not one.note} - {None}
    known = metric(f"val/{outcome.metric}")
    sizes = [one.asked(outcome.metric) for one in asked if one is not None]
    resolution = 1 / max(sizes) if known.percent and sizes else 0.0
    found = interval(gaps, experiment.alpha / (len(experiment.arms) - 1), resolution=resolution)
    ends = (found.low, found.high) if outcome.direction == "up" else (-found.high, -found.low)
    enough = place > 0 or len(pairs) >= experiment.least_seeds
    decision: Decision = decide(*ends, experiment.margin if place == 0 else 0.0) if enough else "undecided"
    p = p_value(gaps)
    return ArmComparison(arm.name, experiment.control.name, outcome, found, pairs, p, p, decision)


def _by_seed(runs: Sequence[RunOutcome], arm: str, place: int) -> dict[int, float]:
    return {
        one.seed: one.values[place]
        for one in runs
        if one.arm == arm and not one.note and math.isfinite(one.values[place])
    }


def _adjusted(compared: Sequence[ArmComparison]) -> tuple[ArmComparison, ...]:
    values = holm(np.array([one.p for one in compared], dtype=np.float64))
    return tuple(replace(one, adjusted=float(p)) for one, p in zip(compared, values, strict=True))


def _arm(runs: Sequence[RunOutcome], arm: Arm, outcome: Outcome, place: int) -> ArmOutcome:
    values = np.array(list(_by_seed(runs, arm.name, place).values()))
    mean = float(values.mean()) if len(values) else math.nan
    std = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return ArmOutcome(arm.name, outcome, mean, std, len(values))


def _place(experiment: Experiment, arm: str) -> int:
    names = [one.name for one in experiment.arms]
    return names.index(arm) if arm in names else len(names)


def _notes(experiment: Experiment, runs: Sequence[RunOutcome]) -> tuple[str, ...]:
    found = []
    failed = Counter(one.arm for one in runs if one.note and one.run.status == "failed")
    for arm, count in failed.items():
        found.append(
            f"{count} run{'s' if count > 1 else ''} of {arm} failed and cannot be compared: the interval is about the "
            "seeds on which both arms ended, and tells nothing about how often one fails."
        )
    gone = sum(one.run.deleted_at is not None for one in runs)
    if gone:
        found.append(f"{gone} of the runs were deleted; they are counted and listed all the same.")
    found.append(
        f"Interval: anytime-valid confidence sequence of the paired difference over seeds at alpha {experiment.alpha:g}"
        + (f" / {len(experiment.arms) - 1} (one for each arm compared)" if len(experiment.arms) > 2 else "")
        + ", Wang and Ramdas 2023 (arXiv:2310.03722). It holds at any stopping seed, if the differences are "
        "about normal; where one arm fails rarely but badly it does not. Two seeds never decide, and three hardly ever."
    )
    found.append("p: anytime-valid, adjusted by Holm; that of the secondaries over all of them and all arms.")
    return tuple(found)
