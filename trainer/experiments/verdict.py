"""The verdict on an experiment: every run with its outcome, paired differences over seeds, and what they decide."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from msgspec import Struct

from trainer import config
from trainer.alerts import ENDED_WORDS
from trainer.analysis.anytime_valid import Decision, Interval, decide
from trainer.analysis.number_text import signed
from trainer.analysis.repeated_intervals import OPEN, interval, p_value
from trainer.analysis.significance import FEWEST_FLIPS, sign_flip_p
from trainer.config.small_batches import longer_run
from trainer.experiments.counted import CountedRun, RunGroup, arm_groups, counted_in, counted_line, flaw_of, flaws_of
from trainer.experiments.experiment import Arm, Experiment, Outcome, from_toml
from trainer.experiments.outliers import AT_CHANCE, BELOW_HALF, chance_sentence, outlying, weak
from trainer.experiments.run_style import arm_hues
from trainer.metrics import Metric, metric
from trainer.store import Question, RunRow, StoreError, Workspace


@dataclass(frozen=True)
class RunOutcome:
    """A run of an experiment."""

    run: RunRow  # Its row; it may be deleted.
    arm: str
    seed: int  # Its seed; -1 where its configuration cannot be read.
    values: tuple[float, ...]  # Of each outcome, the primary first; NaN where it was not measured.
    questions: tuple[Question | None, ...]  # What each value answers; None where it is not known.
    note: str = ""  # Why it is not counted; empty for one that is.


class ArmOutcome(Struct, frozen=True):
    """An arm's values of one outcome over seeds; `std` is NaN of a single one."""

    arm: str
    outcome: Outcome
    mean: float
    std: float
    n: int


@dataclass(frozen=True)
class ArmComparison:
    """An arm minus the control on one outcome, over the seeds on which both were measured."""

    arm: str
    control: str
    outcome: Outcome
    # Of the mean difference: a repeated confidence interval at alpha over the number of arms compared
    # (Bonferroni); a confidence sequence where the budget has no end. That of a share is cut at 100 points.
    interval: Interval
    differences: tuple[tuple[int, float], ...]  # Seed and difference, in the order of the seeds.
    p: float  # Repeated p of no difference, or the anytime-valid one.
    # p after Bonferroni, by which the interval is as wide: over the arms for the primary outcome, over arms and
    # outcomes for secondaries.
    adjusted: float
    # Exact p of the signs at this look alone, without an assumption about the distribution; NaN with fewer than
    # six seeds.
    sign_flip: float
    decision: Decision  # Whether the arm is better; of secondaries too, where nothing depends on it.


class LongerTraining(Struct, frozen=True, order=True):
    """What to do about weak seeds: of fewer steps than suit their pairs, or collapsed in small batches."""

    steps: int  # That suit the pairs.
    made: int  # By the run.
    run: int  # Number of a weak run.
    batch: int = 0  # Pairs of a batch in which a run that collapsed may not; 0 where steps lack.

    @property
    def button(self) -> str:
        """What a button says that does it."""
        return f"Train again with batches of {self.batch}…" if self.batch else f"Train longer ({self.steps:,} steps)…"

    @property
    def text(self) -> str:
        """The advice as a sentence."""
        if self.batch:
            return f"Train again with batches of {self.batch}: CLOOB may collapse in smaller ones."
        return f"Train longer: {self.steps:,} steps suit these pairs, these runs made {self.made:,}."


@dataclass(frozen=True)
class ExperimentVerdict:
    """Everything that an experiment came to."""

    experiment: Experiment
    state: str
    runs: tuple[RunOutcome, ...]  # Every run, by seed and arm, those that are not counted too.
    arms: tuple[ArmOutcome, ...]  # Of each outcome, in the order of the arms.
    primary: tuple[ArmComparison, ...]  # Comparisons with the control on the outcome that decides.
    secondaries: tuple[ArmComparison, ...]  # The others.
    samples: int | None  # Samples behind the primary outcome; None where it is not known or differs.
    notes: tuple[str, ...] = field(default=())  # What must be known to read it.
    # Seeds that are outlying, weak or collapsed, by name, with what was told while they trained.
    warnings: tuple[str, ...] = field(default=())
    # Arm and number of each seed that is weak or collapsed -> which of these.
    weak: Mapping[tuple[str, int], str] = field(default_factory=dict)
    longer: LongerTraining | None = None  # None where no weak seed lacks steps or has too small batches.
    # The arms with every run of theirs, its reason that of `runs`, and the seeds that have none.
    groups: tuple[RunGroup, ...] = field(default=())
    hues: tuple[int, ...] = field(default=())  # Of the arms, as of `arm_hues`.

    def hue(self, index: int) -> int:
        """Return the hue of an arm: that of its runs, or its place where no workspace was read for a chart."""
        return self.hues[index] if self.hues else index

    @property
    def not_counted(self) -> str:
        """The runs that are not counted, in one line; empty where all are."""
        return counted_line(self.groups)

    @property
    def is_measured(self) -> bool:
        """Whether an arm and the control have been measured on a seed."""
        return any(comparison.differences for comparison in self.primary)

    @property
    def training(self) -> tuple[RunOutcome, ...]:
        """The runs that have started and not ended."""
        return tuple(each for each in self.runs if each.run.active and each.run.status != "queued")

    @property
    def decided(self) -> bool:
        """Whether every comparison on the primary outcome is decided."""
        return all(comparison.decision != "undecided" for comparison in self.primary)

    @property
    def too_few_pairs(self) -> str:
        """Why no number of seeds can tell the margin of equality, which one held-out pair exceeds; empty otherwise."""
        margin, n = self.experiment.margin, self.samples
        if not (margin and n and metric(f"val/{self.experiment.outcome.metric}").percent and margin < 1 / n):
            return ""
        return f"one held-out pair is {100 / n:.1f} points, more than the margin of ±{100 * margin:.3g}"

    @property
    def advice(self) -> str:
        """What helps where more seeds do not, as a sentence; empty where they may, or are not needed."""
        if self.longer is not None:
            return self.longer.text
        return f"Hold out more pairs: {self.too_few_pairs}." if self.too_few_pairs and not self.decided else ""

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds on which every arm was measured."""
        counted = Counter(run.seed for run in self.runs if not run.note)
        return tuple(seed for seed in sorted(counted) if counted[seed] == len(self.experiment.arms))

    @property
    def words(self) -> str:
        """The verdict: why there is none, or a line for each arm that is compared; and what follows if undecided."""
        if not self.is_measured:
            return "Waiting for the first seed of two arms: none has been measured in both."
        follows = {"going": "More seeds follow.", "ended": "The budget is used up."}
        more = () if self.decided else (follows.get(self.state, self._stopped()),)
        verdict = [f"{self.no_comparison}."] if self.no_comparison else map(self.sentence, self.primary)
        return "\n".join([*verdict, *more])

    def _stopped(self) -> str:
        if self.experiment.most_seeds == OPEN:
            return "No seed is training; add seeds to decide."
        left = self.experiment.most_seeds - len(self.seeds)
        return f"No seed is training; the budget has {left} more." if left > 0 else "No seed is training."

    def sentence(self, comparison: ArmComparison) -> str:
        """Return what a comparison says, with its difference, interval and seeds."""
        n, measure = len(comparison.differences), metric(f"val/{comparison.outcome.metric}")
        seeds = f"{n} seed{'s' if n != 1 else ''}"
        bounds = comparison.interval
        difference = f"{difference_text(measure, bounds.mean)} {interval_text(measure, bounds)}"
        over_seeds = f"{difference}, {seeds}"
        if comparison.decision in ("better", "worse"):
            return f"{comparison.arm} is {comparison.decision} than {comparison.control}: {over_seeds}."
        if comparison.decision == "equal":
            return f"{comparison.arm} and {comparison.control} are {self.equal_text(comparison)}: {over_seeds}."
        spread = ""
        if n > 1:
            ends = [difference_text(measure, end(gap for _, gap in comparison.differences)) for end in (min, max)]
            spread = f"; seeds range from {ends[0].removesuffix(' points')} to {ends[1]}"
        return f"No clear winner after {seeds}: {comparison.arm} against {comparison.control} {difference}{spread}."

    def equal_text(self, comparison: ArmComparison) -> str:
        """Return what an arm is that differs from the control by less than the margin, `equal within 2.0 points`."""
        margin = difference_text(metric(f"val/{comparison.outcome.metric}"), self.experiment.margin)
        return f"equal within {margin.removeprefix('+')}"

    @property
    def headline(self) -> str:
        """The verdict in one line a comparison, for everybody: no interval, no p; that of noise says what it is."""
        return self.no_comparison or "\n".join(map(self._headline_of, self.primary))

    @property
    def no_comparison(self) -> str:
        """Why there is no comparison: at least half of the runs are at chance or collapsed; empty where there is one.

        A decided difference is one: an arm may be worse because it collapses.
        """
        of = sum(not run.note for run in self.runs)
        states = [word for word in self.weak.values() if word != BELOW_HALF]
        apart = any(comparison.decision in ("better", "worse") for comparison in self.primary)
        if apart or not self.is_measured or 2 * len(states) < of:
            return ""
        are = "are at chance" if {*states} == {AT_CHANCE} else "have collapsed"
        are = "are at chance or collapsed" if len({*states}) > 1 else are
        return f"No comparison yet: {len(states)} of {of} runs {are}"

    @property
    def points(self) -> str:
        """The mean difference of each arm, `CLOOB −1.3 points`, in one line."""
        measured = (each for each in self.primary if each.differences)
        texts = ((each.arm, metric(f"val/{each.outcome.metric}"), each.interval.mean) for each in measured)
        return ", ".join(f"{arm} {difference_text(measure, mean)}" for arm, measure, mean in texts)

    def _headline_of(self, comparison: ArmComparison) -> str:
        measure, gaps = metric(f"val/{comparison.outcome.metric}"), [gap for _, gap in comparison.differences]
        arm, control, n = comparison.arm, comparison.control, len(gaps)
        if not n:
            waits, arms = self.state in ("new", "going"), f"{control} and {arm}"
            half = self._half_of_a_seed(comparison) if waits or self.training else ""
            none = f"Waiting for the first seed of {arms}" if waits else f"No seed has finished in both {arms}"
            return half or none
        mean = difference_text(measure, comparison.interval.mean)
        if comparison.decision in ("better", "worse"):
            weak = "".join(map(self._weak_of, (control, arm)))
            return f"{arm} is {comparison.decision} than {control}: {mean} after {n} seeds{weak}"
        if comparison.decision == "equal":
            return f"{arm} and {control} are {self.equal_text(comparison)}, after {n} seeds"
        if n == 1 and self.experiment.most_seeds == 1:
            return f"One seed cannot decide: {arm} {mean}"
        if n < self.experiment.least_seeds:
            seeds = "the one seed" if n == 1 else f"the {n} seeds"
            return f"Too early to say: {arm} {mean} on {seeds} that both have finished"
        low, high = (difference_text(measure, end(gaps)) for end in (min, max))
        return (
            f"Not decided after {n} seed{'s' * (n != 1)}: {arm} {mean}, seeds from {low.removesuffix(' points')} to "
            + high
        )

    def _weak_of(self, arm: str) -> str:
        """Return `, 2 of 3 CLOOB seeds collapsed`, or what else they are; empty where no seed of the arm is weak."""
        of = sum(run.arm == arm and not run.note for run in self.runs)
        counts = Counter(word for (name, _), word in self.weak.items() if name == arm)
        return "".join(f", {n} of {of} {arm} seeds {word}" for word, n in sorted(counts.items()))

    def _half_of_a_seed(self, comparison: ArmComparison) -> str:
        """Return the value of the only arm that has finished, and what the other does; empty before."""
        pair = (comparison.control, comparison.arm)
        means = {each.arm: each.mean for each in self.arms if each.outcome == comparison.outcome and each.n}
        finished = [arm for arm in pair if arm in means]
        if len(finished) != 1:
            return ""
        other = next(arm for arm in pair if arm not in means)
        trains = any(outcome.arm == other for outcome in self.training)
        value = metric(f"val/{comparison.outcome.metric}").text(means[finished[0]])
        return f"{finished[0]} {value}; {other} is {'training' if trains else 'waiting'}"


def judge(workspace: Workspace, ref: int | str) -> ExperimentVerdict:
    """Return the verdict on a stored experiment as its runs stand now.

    Raises:
        StoreError: There is no such experiment.
        ConfigError: Its definition cannot be read.
    """
    row = workspace.experiments.get(ref)
    experiment = from_toml(row.definition, source=row.name)
    hues = arm_hues(workspace, row.name, experiment.arms)
    return replace(judged(workspace, experiment, row.state), hues=hues)


def judged(workspace: Workspace, experiment: Experiment, state: str = "new") -> ExperimentVerdict:
    """Return the verdict on a definition."""
    outcomes = (experiment.outcome, *experiment.secondaries)
    rows = workspace.runs.of_experiment(experiment.name)
    counted = counted_in(workspace, experiment, rows)
    runs = _one_question([_outcome_of(workspace, experiment, member) for member in counted], len(outcomes))
    compared = [
        [_compare(experiment, runs, arm, index) for arm in experiment.arms[1:]] for index in range(len(outcomes))
    ]
    members = [replace(member, reason=run.note) for member, run in zip(counted, runs, strict=True)]
    samples = {run.questions[0].asked(experiment.outcome.metric) for run in runs if not run.note and run.questions[0]}
    warnings, fallen, longer = _warnings(workspace, experiment, runs)
    return ExperimentVerdict(
        experiment=experiment,
        state=state,
        runs=tuple(sorted(runs, key=lambda run: (run.seed, _place(experiment, run.arm), run.run.id))),
        arms=tuple(
            _arm(runs, arm, outcome, index) for index, outcome in enumerate(outcomes) for arm in experiment.arms
        ),
        primary=tuple(compared[0]),
        secondaries=tuple(comparison for group in compared[1:] for comparison in group),
        samples=samples.pop() if len(samples) == 1 else None,
        notes=_notes(experiment, runs, compared[0]),
        warnings=warnings,
        weak=fallen,
        longer=longer,
        groups=arm_groups(experiment, members),
    )


def difference_text(measure: Metric, value: float) -> str:
    """Format a difference with its sign, shares in points."""
    if math.isnan(value):
        return "–"
    return f"{signed(100 * value)} points" if measure.percent else signed(value, measure.digits)


def interval_text(measure: Metric, bounds: Interval) -> str:
    """Format an interval in brackets, shares in points; says so where there is none yet."""
    if math.isinf(bounds.low):
        return "[no interval yet: needs more seeds]"
    factor, digits = (100, 1) if measure.percent else (1, measure.digits)
    return f"[{signed(factor * bounds.low, digits)}, {signed(factor * bounds.high, digits)}]"


def _outcome_of(workspace: Workspace, experiment: Experiment, member: CountedRun) -> RunOutcome:
    outcomes = (experiment.outcome, *experiment.secondaries)
    if member.reason:
        nothing = (math.nan,) * len(outcomes), (None,) * len(outcomes)
        return RunOutcome(member.run, member.run.arm, member.seed, *nothing, note=member.reason)
    answers = [_value(workspace, member.run, outcome) for outcome in outcomes]
    values, questions = tuple(value for value, _ in answers), tuple(question for _, question in answers)
    measured = math.isfinite(values[0])
    note = "" if measured else f"it was not measured on {experiment.outcome.label}, or the number is not finite"
    return RunOutcome(member.run, member.run.arm, member.seed, values, questions, note)


def _value(workspace: Workspace, row: RunRow, outcome: Outcome) -> tuple[float, Question | None]:
    """Return the newest value at the last step, and what it answers; NaN without one."""
    for answer in reversed(workspace.results.answers(row.id)):
        if answer.step != row.step or answer.split != outcome.split or outcome.dataset not in ("", answer.dataset):
            continue
        plain = {name.rpartition("/")[2]: value for name, value in answer.metrics.items()}
        if outcome.metric in plain:
            return float(plain[outcome.metric]), answer.question
    return math.nan, None


def _one_question(runs: Sequence[RunOutcome], count: int) -> list[RunOutcome]:
    """Leave out values that answer another question than most; a run without its primary value is not counted."""
    outcomes = list(runs)
    for index in range(count):
        questions = Counter(
            run.questions[index] for run in outcomes if not run.note and math.isfinite(run.values[index])
        )
        if len(questions) < 2:
            continue
        usual = questions.most_common(1)[0][0]
        for at, run in enumerate(outcomes):
            if run.note or run.questions[index] == usual:
                continue
            if index == 0:
                note = "its outcome answers another question (n, gallery or protocol differ)"
                outcomes[at] = replace(run, note=note)
            else:
                values = tuple(math.nan if spot == index else value for spot, value in enumerate(run.values))
                outcomes[at] = replace(run, values=values)
    return outcomes


def _compare(experiment: Experiment, runs: Sequence[RunOutcome], arm: Arm, index: int) -> ArmComparison:
    outcome = (experiment.outcome, *experiment.secondaries)[index]
    control, other = (_by_seed(runs, compared.name, index) for compared in (experiment.control, arm))
    pairs = tuple((seed, other[seed] - control[seed]) for seed in sorted(control.keys() & other.keys()))
    gaps = np.array([gap for _, gap in pairs], dtype=np.float64)
    measure, resolution = metric(f"val/{outcome.metric}"), _resolution(outcome, runs, index)
    budget = experiment.least_seeds, experiment.most_seeds
    bounds = (-1.0, 1.0) if measure.percent else (-math.inf, math.inf)
    together = tests_together(experiment, primary=index == 0)
    alpha = experiment.alpha / together
    around = interval(gaps, alpha, *budget, resolution=resolution, bounds=bounds)
    ends = (around.low, around.high) if outcome.direction == "up" else (-around.high, -around.low)
    decision: Decision = decide(*ends, experiment.margin if index == 0 else 0.0)
    p = p_value(gaps, *budget, resolution=resolution)
    return ArmComparison(
        arm.name,
        experiment.control.name,
        outcome,
        around,
        pairs,
        p,
        min(together * p, 1.0),
        sign_flip_p(gaps),
        decision,
    )


def tests_together(experiment: Experiment, *, primary: bool) -> int:
    """Return how many comparisons share alpha: those of the primary outcome, or those of all secondary ones."""
    return experiment.comparisons * (1 if primary else max(len(experiment.secondaries), 1))


def _resolution(outcome: Outcome, runs: Sequence[RunOutcome], index: int) -> float:
    """Return the smallest step of a share, 1 over its questions; 0 of what is no share, or where they are not known."""
    questions = {run.questions[index] for run in runs if not run.note} - {None}
    sizes = [question.asked(outcome.metric) for question in questions if question is not None]
    return 1 / max(sizes) if metric(f"val/{outcome.metric}").percent and sizes else 0.0


def _by_seed(runs: Sequence[RunOutcome], arm: str, index: int) -> dict[int, float]:
    return {
        run.seed: run.values[index]
        for run in runs
        if run.arm == arm and not run.note and math.isfinite(run.values[index])
    }


def _arm(runs: Sequence[RunOutcome], arm: Arm, outcome: Outcome, index: int) -> ArmOutcome:
    values = np.array(list(_by_seed(runs, arm.name, index).values()))
    mean = float(values.mean()) if len(values) else math.nan
    std = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return ArmOutcome(arm.name, outcome, mean, std, len(values))


def _place(experiment: Experiment, arm: str) -> int:
    names = [listed.name for listed in experiment.arms]
    return names.index(arm) if arm in names else len(names)


def _warnings(
    workspace: Workspace, experiment: Experiment, runs: Sequence[RunOutcome]
) -> tuple[tuple[str, ...], dict[tuple[str, int], str], LongerTraining | None]:
    """Return sentences about doubtful seeds of the primary outcome, which of them are weak, and what to do."""
    name, measure = experiment.outcome.metric, metric(f"val/{experiment.outcome.metric}")
    seeds = {arm.name: _by_seed(runs, arm.name, 0) for arm in experiment.arms}
    question = next((run.questions[0] for run in runs if not run.note and run.questions[0]), None)
    control, counted = experiment.control.name, {(run.arm, run.seed): run.run for run in runs if not run.note}
    warnings = [
        f"{arm} seed {seed} {flaw}" for (arm, seed), row in counted.items() if (flaw := flaw_of(row, fully=True))
    ]
    collapse = ENDED_WORDS["collapse"]
    fallen = {key: collapse for key, row in counted.items() if collapse in flaws_of(row)}
    at_chance = {}
    for arm_name, values in seeds.items():
        for seed, word, sentence in weak(arm_name, dict(sorted(values.items())), measure, name, question):
            if sentence:
                warnings.append(f"{sentence}.")
            else:
                at_chance[arm_name, seed] = values[seed]
            fallen.setdefault((arm_name, seed), word)
    again = [
        _trained_again(workspace, experiment, counted[key], collapsed=word == collapse) for key, word in fallen.items()
    ]
    longer = max(filter(None, again), default=None)
    if at_chance and question is not None:
        every = sum(map(len, seeds.values()))
        warnings.append(chance_sentence(at_chance, every, measure, name, question))
    step = _resolution(experiment.outcome, runs, 0)
    for arm in experiment.arms[1:]:
        both = sorted(seeds[control].keys() & seeds[arm.name].keys())
        pairs = {seed: (seeds[control][seed], seeds[arm.name][seed]) for seed in both}
        warnings += outlying((control, arm.name), pairs, measure, resolution=step)
    return tuple(warnings), fallen, longer


def _trained_again(
    workspace: Workspace, experiment: Experiment, row: RunRow, *, collapsed: bool
) -> LongerTraining | None:
    """Return how a weak run is trained again; None where it made enough steps, or collapsed in large batches."""
    pairs = row.facts.get("train_pairs")
    with contextlib.suppress(config.ConfigError, StoreError):
        run = workspace.runs.config_of(row.id)
        if isinstance(pairs, int) and pairs > 1 and not config.continues_training(run):
            optimizer = longer_run(run, pairs, (arm.run.objective for arm in experiment.arms)).optimizer
            steps = pairs // optimizer.batch_size * optimizer.epochs
            batch = optimizer.batch_size if collapsed and optimizer.batch_size > run.optimizer.batch_size else 0
            if batch or (not collapsed and 0 < row.step < steps):
                return LongerTraining(steps, row.step, row.id, batch)
    return None


def _notes(experiment: Experiment, runs: Sequence[RunOutcome], primary: Sequence[ArmComparison]) -> tuple[str, ...]:
    notes = []
    failed = Counter(run.arm for run in runs if run.note and run.run.status == "failed")
    for arm, count in failed.items():
        notes.append(
            f"{count} run{'s' if count > 1 else ''} of {arm} failed and cannot be compared: the interval is about the "
            "seeds on which both arms ended, and tells nothing about how often one fails."
        )
    gone = sum(run.run.deleted_at is not None for run in runs)
    if gone:
        notes.append(f"{gone} run{'s were' if gone > 1 else ' was'} deleted since, and counted all the same.")
    signs = [
        f"{comparison.arm} {comparison.sign_flip:.3f}" for comparison in primary if math.isfinite(comparison.sign_flip)
    ]
    if signs:
        notes.append(
            f"Exact test of the signs of the differences, without an assumption about their distribution: p = "
            f"{', '.join(signs)}, for this look alone, not corrected."
        )
    # How an interval is made helps nobody before there is one.
    has_interval = any(math.isfinite(comparison.interval.low) for comparison in primary)
    return (*notes, *(method_notes(experiment) if has_interval else ()))


def method_notes(experiment: Experiment) -> tuple[str, ...]:
    """Return how the intervals and the p of an experiment are made, in sentences."""
    least, most, alpha = experiment.least_seeds, experiment.most_seeds, experiment.alpha
    shared = f" / {experiment.comparisons} (one for each arm compared)" if experiment.comparisons > 1 else ""
    normal = "for roughly normal differences (not with a collapsed seed)."
    if most == OPEN:
        kind = "anytime-valid confidence sequence of the paired difference over seeds"
        source, holds = "Wang and Ramdas 2023, arXiv:2310.03722", f"It holds at any number of seeds, {normal}"
        p = "is anytime-valid"
    elif least == most:
        kind, source = "Student's t of the paired difference over seeds", f"exactly {most} seeds"
        holds, p = f"It holds {normal}", "is that of the paired t test"
    else:
        kind = f"repeated confidence interval of the paired difference at {least} to {most} seeds"
        source = "exact t boundaries, Jennison and Turnbull 1989"
        holds, p = (
            f"The error rate holds over all looks, at any stopping time, {normal}",
            "stays valid however often you look",
        )
    flips = (
        f" A test of signs alone follows from {FEWEST_FLIPS} seeds on." if most == OPEN or most >= FEWEST_FLIPS else ""
    )
    return (
        f"Interval: {kind} at alpha {alpha:g}{shared} ({source}). {holds}{flips}",
        f"The p {p}.{_shared_words(experiment)}",
    )


def _shared_words(experiment: Experiment) -> str:
    """Return what intervals and p are corrected for together; empty where each stands alone."""
    arms, outcomes = experiment.comparisons, len(experiment.secondaries)
    primary = f" p of the primary outcome is Bonferroni-corrected over {arms} arms, as its interval is." * (arms > 1)
    several = tests_together(experiment, primary=False) > 1 and outcomes > 0
    over = "all of them and all arms" if arms > 1 else "all of them"
    return primary + f" Intervals and p of secondary outcomes are Bonferroni-corrected over {over}." * several
