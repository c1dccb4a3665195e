"""The verdict on an experiment: every run with its outcome, paired differences over seeds, and what they decide."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from trainer.analysis.anytime_valid import Decision, Interval, decide
from trainer.analysis.repeated_intervals import OPEN, interval, p_value
from trainer.analysis.significance import FEWEST_FLIPS, holm, sign_flip_p
from trainer.experiments.counted import CountedRun, RunGroup, arm_groups, counted_in, counted_line
from trainer.experiments.definition import Arm, Experiment, Outcome, from_toml
from trainer.experiments.outliers import collapsed, outlying
from trainer.metrics import Metric, metric
from trainer.store import Question, RunRow, Workspace


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
        interval: Of the mean difference: a repeated confidence interval at alpha over the number of arms compared
            (Bonferroni); a confidence sequence where the budget has no end. That of a share is cut at 100 points.
        differences: Seed and difference, in the order of the seeds.
        p: Repeated p of no difference, or the anytime-valid one.
        adjusted: p after Holm: over the arms for the primary outcome, over arms and outcomes for secondaries.
        sign_flip: Exact p of the signs at this look alone, without an assumption about the distribution; NaN with
            fewer than six seeds.
        decision: Whether the arm is better; of secondaries too, where nothing depends on it.
    """

    arm: str
    control: str
    outcome: Outcome
    interval: Interval
    differences: tuple[tuple[int, float], ...]
    p: float
    adjusted: float
    sign_flip: float
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
        warnings: Seeds that are outlying or collapsed, by name.
        groups: The arms with every run of theirs, and the seeds that have none.
    """

    experiment: Experiment
    state: str
    runs: tuple[RunOutcome, ...]
    arms: tuple[ArmOutcome, ...]
    primary: tuple[ArmComparison, ...]
    secondaries: tuple[ArmComparison, ...]
    samples: int | None
    notes: tuple[str, ...] = field(default=())
    warnings: tuple[str, ...] = field(default=())
    groups: tuple[RunGroup, ...] = field(default=())

    @property
    def not_counted(self) -> str:
        """The runs that are not counted, in one line; empty where all are."""
        notes = {one.run.id: one.note for one in self.runs}
        groups = (
            replace(group, members=tuple(replace(one, reason=notes[one.run.id]) for one in group.members))
            for group in self.groups
        )
        return counted_line(groups)

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
            return "Waiting for the first seed of two arms: none has been measured in both."
        follows = {"going": "More seeds follow.", "ended": "The budget is used up."}
        more = () if self.decided else (follows.get(self.state, self._stopped()),)
        return "\n".join([*map(self.sentence, self.primary), *more])

    def _stopped(self) -> str:
        if self.experiment.most_seeds == OPEN:
            return "No seeds are being added; more may decide it."
        left = self.experiment.most_seeds - len(self.seeds)
        return f"No seeds are being added; its budget has {left} more." if left > 0 else "No seeds are being added."

    def sentence(self, one: ArmComparison) -> str:
        """Return what a comparison says, with its difference, interval and seeds."""
        n, known = len(one.differences), metric(f"val/{one.outcome.metric}")
        seeds = f"{n} seed{'s' if n != 1 else ''}"
        difference = f"{difference_text(known, one.interval.mean)} {interval_text(known, one.interval)}, {seeds}"
        if one.decision in ("better", "worse"):
            return f"{one.arm} is {one.decision} than {one.control}: {difference}."
        if one.decision == "equal":
            margin = difference_text(known, self.experiment.margin).removeprefix("+")
            return f"{one.arm} and {one.control} are equal within {margin}: {difference}."
        spread = ""
        if n > 1:
            ends = [difference_text(known, end(gap for _, gap in one.differences)) for end in (min, max)]
            spread = f"; seeds range from {ends[0].removesuffix(' points')} to {ends[1]}"
        return f"{one.arm} against {one.control} is undecided: {difference}{spread}."


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
    rows = workspace.runs.of_experiment(experiment.name)
    counted = counted_in(workspace, experiment, rows)
    runs = _one_question([_outcome_of(workspace, experiment, one) for one in counted], len(outcomes))
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
        notes=_notes(experiment, runs, compared[0]),
        warnings=_warnings(experiment, runs),
        groups=arm_groups(experiment, counted),
    )


def difference_text(known: Metric, value: float) -> str:
    """Format a difference with its sign, shares in points."""
    if math.isnan(value):
        return "–"
    shown = f"{100 * value:+.1f} points" if known.percent else f"{value:+.{known.digits}f}"
    return shown.replace("-", "−")


def interval_text(known: Metric, one: Interval) -> str:
    """Format an interval in brackets, shares in points; says so where there is none yet."""
    if math.isinf(one.low):
        return "[no interval yet]"
    factor, digits = (100, 1) if known.percent else (1, known.digits)
    return f"[{factor * one.low:+.{digits}f}, {factor * one.high:+.{digits}f}]".replace("-", "−")


def _outcome_of(workspace: Workspace, experiment: Experiment, one: CountedRun) -> RunOutcome:
    outcomes = (experiment.outcome, *experiment.secondaries)
    if one.reason:
        nothing = (math.nan,) * len(outcomes), (None,) * len(outcomes)
        return RunOutcome(one.run, one.run.arm, one.seed, *nothing, note=one.reason)
    found = [_value(workspace, one.run, outcome) for outcome in outcomes]
    values, questions = tuple(one[0] for one in found), tuple(one[1] for one in found)
    measured = math.isfinite(values[0])
    note = "" if measured else f"it was not measured on {experiment.outcome.label}, or the number is not finite"
    return RunOutcome(one.run, one.run.arm, one.seed, values, questions, note)


def _value(workspace: Workspace, row: RunRow, outcome: Outcome) -> tuple[float, Question | None]:
    """Return the newest value at the last step, and what it answers; NaN without one."""
    for one in reversed(workspace.results.answers(row.id)):
        if one.step != row.step or one.split != outcome.split or outcome.dataset not in ("", one.dataset):
            continue
        plain = {name.rpartition("/")[2]: value for name, value in one.metrics.items()}
        if outcome.metric in plain:
            return float(plain[outcome.metric]), one.question
    return math.nan, None


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
                found[at] = _noted(one, "its outcome answers another question (n, gallery or protocol differ)")
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
    known, resolution = metric(f"val/{outcome.metric}"), _resolution(outcome, runs, place)
    budget = experiment.least_seeds, experiment.most_seeds
    bounds = (-1.0, 1.0) if known.percent else (-math.inf, math.inf)
    alpha = experiment.alpha / experiment.comparisons
    found = interval(gaps, alpha, *budget, resolution=resolution, bounds=bounds)
    ends = (found.low, found.high) if outcome.direction == "up" else (-found.high, -found.low)
    decision: Decision = decide(*ends, experiment.margin if place == 0 else 0.0)
    p = p_value(gaps, *budget, resolution=resolution)
    return ArmComparison(arm.name, experiment.control.name, outcome, found, pairs, p, p, sign_flip_p(gaps), decision)


def _resolution(outcome: Outcome, runs: Sequence[RunOutcome], place: int) -> float:
    """Return the smallest step of a share, 1 over its questions; 0 of what is no share, or where they are not known."""
    asked = {one.questions[place] for one in runs if not one.note} - {None}
    sizes = [one.asked(outcome.metric) for one in asked if one is not None]
    return 1 / max(sizes) if metric(f"val/{outcome.metric}").percent and sizes else 0.0


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


def _warnings(experiment: Experiment, runs: Sequence[RunOutcome]) -> tuple[str, ...]:
    """Return the outlying and the collapsed seeds of the primary outcome."""
    name, known = experiment.outcome.metric, metric(f"val/{experiment.outcome.metric}")
    seeds = {arm.name: _by_seed(runs, arm.name, 0) for arm in experiment.arms}
    asked = next((one.questions[0] for one in runs if not one.note and one.questions[0]), None)
    control = experiment.control.name
    found = [
        words
        for arm, values in seeds.items()
        for words in collapsed(arm, dict(sorted(values.items())), known, name, asked)
    ]
    step = _resolution(experiment.outcome, runs, 0)
    for arm in experiment.arms[1:]:
        both = sorted(seeds[control].keys() & seeds[arm.name].keys())
        pairs = {seed: (seeds[control][seed], seeds[arm.name][seed]) for seed in both}
        found += outlying((control, arm.name), pairs, known, resolution=step)
    return tuple(found)


def _notes(experiment: Experiment, runs: Sequence[RunOutcome], primary: Sequence[ArmComparison]) -> tuple[str, ...]:
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
    flips = [f"{one.arm} {one.sign_flip:.3f}" for one in primary if math.isfinite(one.sign_flip)]
    if flips:
        found.append(
            f"Exact test of the signs of the differences, without an assumption about their distribution: p = "
            f"{', '.join(flips)}, of this look alone and not adjusted."
        )
    return (*found, *method_notes(experiment))


def method_notes(experiment: Experiment) -> tuple[str, ...]:
    """Return how the intervals and the p of an experiment are made, in sentences."""
    least, most, alpha = experiment.least_seeds, experiment.most_seeds, experiment.alpha
    shared = f" / {experiment.comparisons} (one for each arm compared)" if experiment.comparisons > 1 else ""
    normal = (
        "if the differences are about normal. Where one arm fails rarely but badly more verdicts are wrong: look at "
        "the points."
    )
    if most == OPEN:
        kind = "anytime-valid confidence sequence of the paired difference over seeds"
        source, holds = "Wang and Ramdas 2023, arXiv:2310.03722", f"It holds at any number of seeds, {normal}"
        p = "anytime-valid"
    elif least == most:
        kind, source = "Student's t of the paired difference over seeds", f"exactly {most} seeds"
        holds, p = f"It holds {normal}", "Student's t"
    else:
        kind = f"repeated confidence interval of the paired difference at {least} to {most} seeds"
        source = "exact t boundaries, Jennison and Turnbull 1989"
        holds, p = f"All looks hold together, whenever it stops, {normal}", "repeated, of all looks together"
    flips = (
        f" A test of signs alone follows from {FEWEST_FLIPS} seeds on." if most == OPEN or most >= FEWEST_FLIPS else ""
    )
    return (
        f"Interval: {kind} at alpha {alpha:g}{shared} ({source}). {holds}{flips}",
        f"p: {p}, adjusted by Holm; that of the secondaries over all of them and all arms.",
    )
