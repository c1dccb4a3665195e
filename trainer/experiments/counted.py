"""Which runs count in a mean over seeds, and why each other one does not: one answer for every chart and command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from trainer import config
from trainer.alerts import ENDED_WORDS
from trainer.experiments.experiment import Arm, Experiment, from_toml
from trainer.store import RunRow, StoreError, Workspace
from trainer.store.run_label import parts_of

FINISHED: Final = "finished"
MOST_NAMED: Final = 6
"""Runs that a line names before it says how many more there are."""
MOST_NAMED_BRIEFLY: Final = 2
"""The same of a brief line."""


@dataclass(frozen=True)
class CountedRun:
    """A run of a group."""

    run: RunRow
    seed: int  # Of its configuration; -1 where that cannot be read.
    reason: str = ""  # Why it does not count; empty for one that does.


@dataclass(frozen=True)
class RunGroup:
    """The runs of a group, an arm or a pattern."""

    name: str
    members: tuple[CountedRun, ...]  # Every run, those that do not count too.
    missing: tuple[int, ...] = ()  # Seeds at which another group has a run and this one has none.

    @property
    def counted(self) -> tuple[RunRow, ...]:
        """The runs that count."""
        return tuple(member.run for member in self.members if not member.reason)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Each run that does not count with its reason, and each seed that has none."""
        left_out = [member for member in self.members if member.reason]
        names = [f"{self.name} seed {run.seed}" if run.seed >= 0 else run.run.short_name for run in left_out]
        return (
            *(f"{name}, {run.reason}" for name, run in zip(names, left_out, strict=True)),
            *(f"{self.name} seed {seed}, there is no such run" for seed in self.missing),
        )

    @property
    def left_out_briefly(self) -> tuple[str, ...]:
        """The same by the short names of the runs."""
        return (
            *(f"{member.run.short_name} {member.reason}" for member in self.members if member.reason),
            *(f"{self.name} · s{seed} is missing" for seed in self.missing),
        )


def counted_line(groups: Iterable[RunGroup], *, brief: bool = False) -> str:
    """Return which runs are not counted, and why, in one line; empty where all are."""
    sentences = [each for group in groups for each in (group.left_out_briefly if brief else group.left_out)]
    if not sentences:
        return ""
    count, most, end = len(sentences), *((MOST_NAMED_BRIEFLY, "") if brief else (MOST_NAMED, "."))
    more = f"; and {count - most} more" if count > most else ""
    return f"{count} run{'s' * (count != 1)} not counted: {'; '.join(sentences[:most])}{more}{end}"


def run_groups(
    workspace: Workspace, named: Iterable[tuple[str, Sequence[RunRow]]], *, paired: bool = True
) -> tuple[RunGroup, ...]:
    """Return each group with the runs of it that count, and if `paired` the seeds that only other groups have.

    A run of an experiment counts as its arm's, as in the verdict. Of the others those count that are finished and have
    the data and the budget of most of their group.
    """
    definitions = _Definitions(workspace)
    groups = tuple(RunGroup(name, _members(workspace, rows, definitions)) for name, rows in named)
    return _paired(groups) if paired else groups


def labeled(groups: Sequence[RunGroup]) -> tuple[RunGroup, ...]:
    """Return the groups under what their runs share, an arm or the label without its seed, if it is of one alone."""
    labels = []
    for group in groups:
        runs = [member.run for member in group.members]
        arms = {(run.experiment, run.arm) for run in runs}
        shared = {run.arm for run in runs} if len(arms) == 1 and runs[0].arm else set()
        shared = shared or {parts_of(run.short_name)[0] for run in runs}
        labels.append(shared.pop() if len(shared) == 1 and len(runs) > 1 else group.name)
    if len({*labels}) < len(labels):
        return tuple(groups)
    return tuple(replace(group, name=label) for group, label in zip(groups, labels, strict=True))


def arm_groups(experiment: Experiment, runs: Sequence[CountedRun]) -> tuple[RunGroup, ...]:
    """Return the arms of an experiment with their runs, as `counted_in` has them; runs of no arm form groups too."""
    names = dict.fromkeys([*(arm.name for arm in experiment.arms), *(member.run.arm for member in runs)])
    groups = [RunGroup(name, tuple(member for member in runs if member.run.arm == name)) for name in names]
    return _paired(groups) if len([group for group in groups if group.members]) > 1 else tuple(groups)


def seeds_of_all(groups: Iterable[RunGroup]) -> set[int]:
    """Return the seeds that count in every one of the groups."""
    return set.intersection(*({member.seed for member in group.members if not member.reason} for group in groups))


def _paired(groups: Sequence[RunGroup]) -> tuple[RunGroup, ...]:
    """Return the groups with the seeds that others have and they have not, if they have any in common."""
    seeds = [{member.seed for member in group.members if member.seed >= 0} for group in groups]
    every = set[int]().union(*seeds)
    # Groups without a seed in common are not paired by it, and then none is missing.
    if len(groups) < 2 or not set.intersection(*seeds):
        return tuple(groups)
    return tuple(replace(group, missing=tuple(sorted(every - mine))) for group, mine in zip(groups, seeds, strict=True))


def counted_in(workspace: Workspace, experiment: Experiment, rows: Sequence[RunRow]) -> list[CountedRun]:
    """Return the runs of an experiment: a finished one counts that was trained as its arm says and came first."""
    seen: set[tuple[str, int]] = set()
    members = []
    for row in rows:
        member = _counted_as_arm(workspace, experiment, row)
        if not member.reason and not any(answer.step == row.step for answer in workspace.results.answers(row.id)):
            member = replace(member, reason=f"it was not measured at its last step, {row.step:,}")
        if not member.reason and (row.arm, member.seed) in seen:
            # The second could be chosen by its result.
            member = replace(member, reason="another run of this arm and seed came first")
        if not member.reason:
            seen.add((row.arm, member.seed))
        members.append(member)
    return members


def standing(row: RunRow) -> str:
    """Return why the state of a run keeps it from counting, such as `stopped at 46 of 384`; empty if it finished.

    Of one that trains no step: it would be another one a second later.
    """
    if row.status == FINISHED:
        return ""
    why = f" ({row.reason.rstrip('.')})" if row.reason and row.status == "failed" else ""
    if row.status in ("queued", "running") or not row.total_steps:
        return f"{row.status}{why}"
    return f"{row.status} at {row.step:,} of {row.total_steps:,}{why}"


def flaws_of(row: RunRow) -> dict[str, dict[str, Any]]:
    """Return what a run ended with that its value does not show, such as `collapsed` -> the alert that told it."""
    return {} if row.active else {ENDED_WORDS[kind]: row.alerts[kind] for kind in row.alerts if kind in ENDED_WORDS}


def flaw_of(row: RunRow, *, fully: bool = False) -> str:
    """Return `flaws_of` with their steps, `collapsed at step 48`; empty for none.

    With `fully` what was measured and the advice follow.
    """
    flaws = flaws_of(row)
    flaw = ", ".join(f"{word} at step {alert.get('step', 0)}" for word, alert in flaws.items())
    return f"{flaw}: {' '.join(str(alert.get('words', '')) for alert in flaws.values())}" if flaw and fully else flaw


class _Definitions:
    """Experiments of a workspace with all their counted runs, each read once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._found: dict[str, Mapping[int, CountedRun] | None] = {}

    def counted(self, name: str) -> Mapping[int, CountedRun] | None:
        """Return the runs of the experiment by their number; None where there is no such experiment to be read."""
        if name not in self._found:
            self._found[name] = self._read(name) if name else None
        return self._found[name]

    def _read(self, name: str) -> Mapping[int, CountedRun] | None:
        try:
            row = self._workspace.experiments.get(name)
            experiment = from_toml(row.definition, source=row.name)
        except (StoreError, config.ConfigError):
            return None
        rows = self._workspace.runs.of_experiment(name)
        return {member.run.id: member for member in counted_in(self._workspace, experiment, rows)}


def _members(workspace: Workspace, rows: Sequence[RunRow], definitions: _Definitions) -> tuple[CountedRun, ...]:
    by_id: dict[int, CountedRun] = {}
    plain = []
    for row in rows:
        counted = definitions.counted(row.experiment)
        if counted is not None and row.id in counted:
            by_id[row.id] = counted[row.id]
        else:
            plain.append(row)
    by_id |= {member.run.id: member for member in _alike(workspace, plain)}
    return tuple(by_id[row.id] for row in rows)


def _alike(workspace: Workspace, rows: Sequence[RunRow]) -> list[CountedRun]:
    """Return runs of no experiment: those count that are finished, on the data and budget of most."""
    configs = {row.id: _config(workspace, row) for row in rows}
    members = [
        CountedRun(row, -1 if (run_config := configs[row.id]) is None else run_config.seed, standing(row))
        for row in rows
    ]

    def trained_on(counted: CountedRun) -> tuple[object, ...] | None:
        run_config = configs[counted.run.id]
        return None if run_config is None else (run_config.data, counted.run.total_steps or counted.run.step)

    usual = Counter(trained_on(member) for member in members if not member.reason).most_common(1)
    if not usual or usual[0][0] is None:
        return members
    data, budget = usual[0][0]
    for index, member in enumerate(members):
        mine = trained_on(member)
        if member.reason or mine is None or mine == (data, budget):
            continue
        other = "other data than most" if mine[0] != data else f"{mine[1]:,} steps where most have {budget:,}"
        members[index] = replace(member, reason=other)
    return members


def _config(workspace: Workspace, row: RunRow) -> config.Run | None:
    try:
        return workspace.runs.config_of(row.id)
    except (StoreError, config.ConfigError):
        return None


def _counted_as_arm(workspace: Workspace, experiment: Experiment, row: RunRow) -> CountedRun:
    try:
        run_config = workspace.runs.config_of(row.id)
    except (StoreError, config.ConfigError) as error:
        return CountedRun(row, -1, f"its configuration cannot be read: {error}")
    arm = experiment.arm(row.arm)
    if arm is None:
        return CountedRun(row, run_config.seed, "the experiment has no such arm")
    return CountedRun(row, run_config.seed, _foreign(experiment, arm, run_config) or standing(row))


def _foreign(experiment: Experiment, arm: Arm, run_config: config.Run) -> str:
    """Return why a run does not count as one of the arm: its configuration or its seed is another."""
    changed = [
        name for name, _, _ in config.difference(experiment.run_of(arm, run_config.seed), run_config) if name != "name"
    ]
    if changed:
        return f"it was not trained as the arm says: {', '.join(changed[:4])} differ"
    return "" if run_config.seed in experiment.seeds else f"seed {run_config.seed} is outside of the budget"
