"""What is known over seeds of the two runs that a view compares: one short sentence, and the experiment that knows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from trainer import config
from trainer.experiments.counted import CountedRun, RunGroup, counted_line, flaw_of, standing
from trainer.experiments.held_out import fewest, pairs_in_words, too_few, too_few_of
from trainer.experiments.verdict import ArmComparison, ExperimentVerdict, judge
from trainer.metrics import data_label, dataset_label
from trainer.store import RunRow, SplitKey, StoreError, Workspace

ONE_EACH: Final = "1 seed each"
TRAINING: Final = ("starting", "running")
NONE_COUNTS: Final = "No seed counts yet"
DIFFERENT_DATA: Final = "A and B were measured on different data"
TRAINED_APART: Final = "A and B were trained on different data, so a difference may come from the data"


@dataclass(frozen=True)
class SeedTruth:
    """What is known over seeds of two runs."""

    SEPARATOR: ClassVar[str] = " · "
    # How many seeds these two runs are: `1 seed each`; empty where the verdict says it or nothing is compared.
    seeds: str = ""
    verdict: str = ""  # What is decided: `over 3 seeds: undecided`, or `1 seed each: undecided`.
    # Which of its runs do not count, `1 run not counted: CLIP · s3 stopped at 46 of 384`; may be empty.
    not_counted: str = ""
    experiment: str = ""  # Name of the experiment; empty without one.
    comparable: bool = True  # Whether further seeds of both can decide between them.
    apart: bool = False  # Whether no value of one compares with one of the other: they were measured on different data.
    # With what two runs or arms are undecided: `with 1 seed each`, `with 4 held-out pairs`; empty where they are not.
    undecided: str = ""
    # What the runs ended with that their values do not show, `CLIP · s0 collapsed at step 48`.
    flaws: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The sentence; empty where nothing is compared."""
        return self.SEPARATOR.join(filter(None, (self.seeds, self.verdict, self.rest)))

    @property
    def of_runs(self) -> SeedTruth:
        """What holds of the two runs whatever is shown of them: without what is decided over seeds."""
        verdict = self.verdict * (self.apart or not (self.comparable or self.undecided))
        return SeedTruth(verdict=verdict, comparable=self.comparable, apart=self.apart, flaws=self.flaws)

    @property
    def rest(self) -> str:
        """What does not count, and what the runs ended with."""
        return self.SEPARATOR.join(filter(None, (self.not_counted, *self.flaws)))


def seed_truth(
    workspace: Workspace, run_a: int | None, run_b: int | None, *, evaluated: SplitKey | None = None
) -> SeedTruth:
    """Return what is known over seeds of runs A and B; nothing where one is missing or both are one run.

    Args:
        workspace: Of the runs.
        run_a, run_b: Numbers of the runs.
        evaluated: Data whose evaluations a view shows, which runs of other data may have in common and which may be
            more pairs than were held out; None: of what training has measured.
    """
    if run_a is None or run_b is None or run_a == run_b:
        return SeedTruth()
    try:
        rows = [workspace.runs.get(run) for run in (run_a, run_b)]
    except StoreError:
        return SeedTruth()
    if curves := next(filter(None, (row.curves_only for row in rows)), ""):
        return SeedTruth(verdict=curves.rstrip("."), comparable=False)
    flaws = tuple(f"{row.short_name} {flaw}" for row in rows if (flaw := flaw_of(row)))
    return replace(_truth_of(workspace, rows, evaluated), flaws=flaws)


def _truth_of(workspace: Workspace, rows: Sequence[RunRow], evaluated: SplitKey | None) -> SeedTruth:
    arms = list(dict.fromkeys(row.arm for row in rows))
    name = rows[0].experiment
    if measured_apart(workspace, [row.id for row in rows]):
        if evaluated is not None and evaluated_alike(workspace, [row.id for row in rows]):
            return SeedTruth(verdict=TRAINED_APART, comparable=False)
        keys = [dict.fromkeys(snapshot.key for snapshot in workspace.results.snapshots(row.id)) for row in rows]
        return SeedTruth(verdict=f"{DIFFERENT_DATA}: {_data_names(*keys)}", comparable=False, apart=True)
    if (few := _too_few(workspace, rows, evaluated)) is not None:
        experiment, undecided = name if rows[1].experiment == name else "", f"with {pairs_in_words(few)}"
        return SeedTruth(verdict=too_few(few), experiment=experiment, comparable=False, undecided=undecided)
    if not name or rows[1].experiment != name:
        both = RunGroup("", tuple(CountedRun(row, -1, standing(row)) for row in rows))
        return _none_counts([both], "") or SeedTruth(
            verdict=f"{ONE_EACH}: undecided",
            not_counted=counted_line([both], brief=True),
            undecided=f"with {ONE_EACH}",
        )
    try:
        verdict = judge(workspace, name)
    except (StoreError, config.ConfigError):
        return SeedTruth(ONE_EACH)
    control, groups = verdict.experiment.control.name, _begun_groups(verdict, arms)
    not_counted = counted_line(groups, brief=True)
    compared = [each for each in verdict.primary if each.arm in arms and each.arm != control]
    seeds = ONE_EACH if len(arms) > 1 else f"2 seeds of {arms[0]}"
    if not compared:
        return SeedTruth(seeds, "one variant: nothing is compared", not_counted, name)
    if none := _none_counts(groups, name):
        return none
    is_single = len(arms) > 1 and all(len(each.differences) == 1 for each in compared)
    said = [_of_comparison(verdict, each, several=len(compared) > 1, is_single=is_single) for each in compared]
    is_undecided = len(compared) == 1 and compared[0].decision == "undecided" and compared[0].differences
    undecided = f"{'with ' * is_single}{_of_seeds(compared[0], is_single=is_single)}" if is_undecided else ""
    return SeedTruth("" if is_single else seeds, ", ".join(said), not_counted, name, undecided=undecided)


def _too_few(workspace: Workspace, rows: Sequence[RunRow], evaluated: SplitKey | None) -> int | None:
    """Return on how many pairs the runs were measured where that is too few, of data that they were evaluated on."""
    name = rows[0].metric.rpartition("/")[2]
    counts = []
    for row in rows if evaluated is not None else ():
        answers = workspace.results.answers(row.id)
        asked = [each.question for each in answers if SplitKey(each.dataset, each.split) == evaluated]
        counts += [max((question.independent(name) for question in asked if question), default=0)]
    measured = [*filter(None, counts)]
    return fewest(measured) if measured else too_few_of(rows)


def measured_apart(workspace: Workspace, runs: Iterable[int]) -> bool:
    """Return whether the snapshots of these runs are of `different_data`."""
    return different_data([snapshot.key for snapshot in workspace.results.snapshots(run)] for run in runs)


def _data_names(data_a: Iterable[SplitKey], data_b: Iterable[SplitKey]) -> str:
    """Return the data of A and of B by name, with the splits where the names are the same."""
    names = [" and ".join(dict.fromkeys(dataset_label(key.dataset) for key in data)) for data in (data_a, data_b)]
    if names[0] == names[1]:
        return "; ".join(" and ".join(map(data_label, data)) for data in (data_a, data_b))
    return ", ".join(names)


def evaluated_alike(workspace: Workspace, runs: Iterable[int]) -> list[SplitKey]:
    """Return the data that each of these runs was evaluated on, the newest first."""
    numbers = [{SplitKey(row.dataset, row.split): row.id for row in workspace.results.answers(run)} for run in runs]
    shared = set.intersection(*map(set, numbers))
    return sorted(shared, key=lambda key: max(of_run[key] for of_run in numbers), reverse=True)


def different_data(data: Iterable[Collection[SplitKey]]) -> bool:
    """Return whether runs that are each measured on these have none in common; one not measured yet is left out."""
    measured = [{*keys} for keys in data if keys]
    return len(measured) > 1 and not set.intersection(*measured)


def _of_comparison(verdict: ExperimentVerdict, comparison: ArmComparison, *, several: bool, is_single: bool) -> str:
    if not comparison.differences:
        trained = {group.name for group in verdict.groups if group.counted}
        waiting = [arm for arm in (comparison.arm, comparison.control) if arm not in trained]
        return f"waiting for {' and '.join(waiting) or 'a seed of both'}"
    if comparison.decision == "equal":
        decision = verdict.equal_text(comparison)
    elif comparison.decision == "undecided":
        decision = f"{comparison.arm} undecided" if several else "undecided"
    else:
        decision = f"{comparison.arm} is {comparison.decision}"
    return f"{_of_seeds(comparison, is_single=is_single)}: {decision}"


def _of_seeds(comparison: ArmComparison, *, is_single: bool) -> str:
    n = len(comparison.differences)
    return ONE_EACH if is_single else f"over {n} seed{'s' * (n != 1)}"


def _begun_groups(verdict: ExperimentVerdict, arms: Sequence[str]) -> list[RunGroup]:
    """Return these arms with their runs; those that still wait for their turn are no news."""
    compared = {*arms, verdict.experiment.control.name}
    return [
        replace(group, members=tuple(member for member in group.members if member.run.status != "queued"))
        for group in verdict.groups
        if group.name in compared
    ]


def _none_counts(groups: Sequence[RunGroup], experiment: str) -> SeedTruth | None:
    """Return that no seed counts, and why; None where one does or no run has begun."""
    members = [member for group in groups for member in group.members]
    if not members or not all(member.reason for member in members):
        return None
    runs = [member.run for member in members]
    if len(runs) == 2 and all(run.status in TRAINING for run in runs):
        return SeedTruth("", f"{NONE_COUNTS}: both runs are still training", "", experiment)
    if len(runs) == 2 and all(run.status == "stopped" and run.total_steps for run in runs):
        steps = ", ".join(f"{run.step:,} of {run.total_steps:,}" for run in runs)
        return SeedTruth("", f"{NONE_COUNTS}: both runs stopped early (step {steps})", "", experiment)
    return SeedTruth("", NONE_COUNTS, counted_line(groups, brief=True), experiment)
