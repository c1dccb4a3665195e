"""Which runs count in a mean over seeds, and why each other one does not: one answer for every chart and command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from trainer import config
from trainer.experiments.definition import Arm, Experiment, from_toml
from trainer.store import RunRow, StoreError, Workspace

FINISHED: Final = "finished"
MOST_NAMED: Final = 6
"""Runs that a line names before it says how many more there are."""


@dataclass(frozen=True)
class CountedRun:
    """A run of a group.

    Attributes:
        seed: Of its configuration; -1 where that cannot be read.
        reason: Why it does not count; empty for one that does.
    """

    run: RunRow
    seed: int
    reason: str = ""


@dataclass(frozen=True)
class RunGroup:
    """The runs of a group, an arm or a pattern.

    Attributes:
        members: Every run, those that do not count too.
        missing: Seeds at which another group has a run and this one has none.
    """

    name: str
    members: tuple[CountedRun, ...]
    missing: tuple[int, ...] = ()

    @property
    def counted(self) -> tuple[RunRow, ...]:
        """The runs that count."""
        return tuple(one.run for one in self.members if not one.reason)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Each run that does not count with its reason, and each seed that has none."""
        found = [
            f"{self.name} seed {one.seed}" if one.seed >= 0 else one.run.name for one in self.members if one.reason
        ]
        reasons = [one.reason for one in self.members if one.reason]
        return (
            *(f"{name}, {reason}" for name, reason in zip(found, reasons, strict=True)),
            *(f"{self.name} seed {seed}, there is no such run" for seed in self.missing),
        )


def counted_line(groups: Iterable[RunGroup]) -> str:
    """Return which runs are not counted, and why, in one line; empty where all are."""
    found = [words for group in groups for words in group.left_out]
    if not found:
        return ""
    more = f"; and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"{len(found)} run{'s' * (len(found) != 1)} not counted: {'; '.join(found[:MOST_NAMED])}{more}."


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


def arm_groups(experiment: Experiment, runs: Sequence[CountedRun]) -> tuple[RunGroup, ...]:
    """Return the arms of an experiment with their runs, as `counted_in` has them; runs of no arm form groups too."""
    names = dict.fromkeys([*(arm.name for arm in experiment.arms), *(one.run.arm for one in runs)])
    groups = [RunGroup(name, tuple(one for one in runs if one.run.arm == name)) for name in names]
    return _paired(groups) if len([group for group in groups if group.members]) > 1 else tuple(groups)


def _paired(groups: Sequence[RunGroup]) -> tuple[RunGroup, ...]:
    """Return the groups with the seeds that others have and they have not, if they have any in common."""
    seeds = [{one.seed for one in group.members if one.seed >= 0} for group in groups]
    every = set[int]().union(*seeds)
    # Groups without a seed in common are not paired by it, and then none is missing.
    if len(groups) < 2 or not set.intersection(*seeds):
        return tuple(groups)
    return tuple(replace(group, missing=tuple(sorted(every - own))) for group, own in zip(groups, seeds, strict=True))


def counted_in(workspace: Workspace, experiment: Experiment, rows: Sequence[RunRow]) -> list[CountedRun]:
    """Return the runs of an experiment: a finished one counts that was trained as its arm says and came first."""
    seen: set[tuple[str, int]] = set()
    found = []
    for row in rows:
        one = _counted_as_arm(workspace, experiment, row)
        if not one.reason and not _measured(workspace, row):
            one = replace(one, reason=f"it was not measured at its last step, {row.step:,}")
        if not one.reason and (row.arm, one.seed) in seen:
            # The second could be chosen by its result.
            one = replace(one, reason="another run of this arm and seed came first")
        if not one.reason:
            seen.add((row.arm, one.seed))
        found.append(one)
    return found


def standing(row: RunRow) -> str:
    """Return why the state of a run keeps it from counting, such as `stopped at 46 of 384`; empty if it finished."""
    if row.status == FINISHED:
        return ""
    why = f" ({row.reason.rstrip('.')})" if row.reason and row.status == "failed" else ""
    if row.status == "queued" or not row.total_steps:
        return f"{row.status}{why}"
    return f"{row.status} at {row.step:,} of {row.total_steps:,}{why}"


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
        return {one.run.id: one for one in counted_in(self._workspace, experiment, rows)}


def _members(workspace: Workspace, rows: Sequence[RunRow], definitions: _Definitions) -> tuple[CountedRun, ...]:
    found: dict[int, CountedRun] = {}
    plain = []
    for row in rows:
        own = definitions.counted(row.experiment)
        if own is not None and row.id in own:
            found[row.id] = own[row.id]
        else:
            plain.append(row)
    found |= {one.run.id: one for one in _alike(workspace, plain)}
    return tuple(found[row.id] for row in rows)


def _alike(workspace: Workspace, rows: Sequence[RunRow]) -> list[CountedRun]:
    """Return runs of no experiment: those count that are finished, on the data and budget of most."""
    configs = {row.id: _config(workspace, row) for row in rows}
    found = [CountedRun(row, -1 if (own := configs[row.id]) is None else own.seed, standing(row)) for row in rows]

    def trained_on(one: CountedRun) -> tuple[object, ...] | None:
        own = configs[one.run.id]
        return None if own is None else (own.data, one.run.total_steps or one.run.step)

    usual = Counter(trained_on(one) for one in found if not one.reason).most_common(1)
    if not usual or usual[0][0] is None:
        return found
    data, budget = usual[0][0]
    for place, one in enumerate(found):
        mine = trained_on(one)
        if one.reason or mine is None or mine == (data, budget):
            continue
        other = "other data than most" if mine[0] != data else f"{mine[1]:,} steps where most have {budget:,}"
        found[place] = replace(one, reason=other)
    return found


def _config(workspace: Workspace, row: RunRow) -> config.Run | None:
    try:
        return workspace.runs.config_of(row.id)
    except (StoreError, config.ConfigError):
        return None


def _measured(workspace: Workspace, row: RunRow) -> bool:
    return any(one.step == row.step for one in workspace.results.answers(row.id))


def _counted_as_arm(workspace: Workspace, experiment: Experiment, row: RunRow) -> CountedRun:
    try:
        own = workspace.runs.config_of(row.id)
    except (StoreError, config.ConfigError) as error:
        return CountedRun(row, -1, f"its configuration cannot be read: {error}")
    arm = experiment.arm(row.arm)
    if arm is None:
        return CountedRun(row, own.seed, "the experiment has no such arm")
    return CountedRun(row, own.seed, _foreign(experiment, arm, own) or standing(row))


def _foreign(experiment: Experiment, arm: Arm, own: config.Run) -> str:
    """Return why a run does not count as one of the arm: its configuration or its seed is another."""
    changed = [name for name, _, _ in config.difference(experiment.run_of(arm, own.seed), own) if name != "name"]
    if changed:
        return f"it was not trained as the arm says: {', '.join(changed[:4])} differ"
    return "" if own.seed in experiment.seeds else f"seed {own.seed} is outside of the budget"
