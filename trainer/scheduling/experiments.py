"""Runs of an experiment in the queue: seed by seed over all arms, until it is decided or its budget ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trainer.config import ConfigError
from trainer.scheduling.paces import SEEDS_FOR_VERDICT
from trainer.store import RunRow, StoreError, Workspace

# The window imports this before its first paint: what computes comes when it is needed.
if TYPE_CHECKING:
    from trainer.experiments.experiment import Arm, Experiment
    from trainer.experiments.verdict import ExperimentVerdict
    from trainer.store.experiments import ExperimentRow

SEEDS_TO_DECIDE: Final = 5
"""Seeds that an experiment of a single one may go up to: looks at 3, 4 and 5 are then declared together."""
MORE_SEEDS: Final = 2
"""Of an experiment that repeats one without a winner."""
_REPEAT: Final = " (repeat)"


def start(workspace: Workspace, name: str) -> list[int]:
    """Let the queue train an experiment, going on with what was interrupted; return the runs queued now.

    Raises:
        StoreError: There is no such experiment, or the workspace is not this user's own.
        ConfigError: Its definition cannot be read, its data do not exist, or no run would be measured on its outcome.
    """
    from trainer.experiments.experiment import check_data, check_measured, from_toml

    row = workspace.experiments.get(name)
    experiment = from_toml(row.definition, source=row.name)
    check_measured(experiment)
    check_data(experiment)
    again = [
        run.id
        for run in workspace.runs.of_experiment(row.name)
        if run.status in ("interrupted", "stopped") and run.deleted_at is None and workspace.runs.enqueue(run.id)
    ]
    # Going only afterwards: until then no window adds runs, which would be there twice.
    made = _advance(workspace, experiment)
    if _in_progress(workspace.runs.of_experiment(row.name)):
        workspace.experiments.set_state(row.name, "going")
    return [*again, *made]


def extend(workspace: Workspace, name: str, most: int = SEEDS_FOR_VERDICT) -> list[int]:
    """Give an experiment whose budget is too small for a verdict the seeds that it lacks, and start them.

    The error rate stays that of a budget of so many from the start: with fewer nothing could be decided. The choice of
    the budget by the first seed makes 5 wrong verdicts of 100 at most 5.2, simulated for one who knows the deviation.

    Args:
        most: Seeds in all; above three they follow one by one until it is decided.

    Raises:
        StoreError: There is no such experiment, or the workspace is not this user's own.
        ConfigError: As from `start`.
    """
    from dataclasses import replace

    from trainer.experiments.experiment import from_toml, to_toml

    row = workspace.experiments.get(name)
    experiment = from_toml(row.definition, source=row.name)
    if missing_seeds(experiment):
        experiment = replace(experiment, least_seeds=SEEDS_FOR_VERDICT, most_seeds=most)
        workspace.experiments.replace_definition(row.name, to_toml(experiment))
    return start(workspace, row.name)


def missing_seeds(experiment: Experiment) -> int:
    """Return how many seeds an experiment of one seed lacks for a verdict; 0 of every other."""
    return SEEDS_FOR_VERDICT - 1 if experiment.most_seeds == 1 else 0


def is_stopping(row: ExperimentRow, verdict: ExperimentVerdict) -> bool:
    """Return whether no run is added, and some of those begun still train."""
    return row.state == "stopped" and bool(verdict.training)


def is_spent(row: ExperimentRow, experiment: Experiment, verdict: ExperimentVerdict) -> bool:
    """Return whether no seed can be added: a further look would decide wrongly more often than alpha."""
    return row.state == "ended" and not verdict.decided and len(verdict.seeds) >= experiment.most_seeds > 1


def repeat(workspace: Workspace, name: str) -> str:
    """Store the experiment again with other and two more seeds, start it, and return its name.

    Raises:
        StoreError, ConfigError: As from `begin`.
    """
    from trainer.experiments.experiment import free_name, from_toml

    row = workspace.experiments.get(name)
    experiment = from_toml(row.definition, source=row.name)
    seeds, first = experiment.most_seeds + MORE_SEEDS, experiment.first_seed + experiment.most_seeds
    name = free_name(
        experiment.name.partition(_REPEAT)[0] + _REPEAT, (each.name for each in workspace.experiments.all())
    )
    begin(workspace, replace(experiment, name=name, first_seed=first, least_seeds=seeds, most_seeds=seeds))
    return name


def begin(workspace: Workspace, experiment: Experiment) -> list[int]:
    """Store a new experiment and let the queue train it; return the runs queued now.

    Raises:
        StoreError: There is one of that name, or the workspace is not this user's own.
        ConfigError: Its data do not exist, or no run would be measured on its outcome; nothing is stored.
    """
    from trainer.experiments.experiment import check_data, check_measured, to_toml

    check_measured(experiment)
    check_data(experiment)
    workspace.experiments.add(experiment.name, to_toml(experiment))
    return start(workspace, experiment.name)


def stop(workspace: Workspace, name: str) -> list[int]:
    """Add no more runs and return those taken out of the queue; a run that trains continues."""
    row = workspace.experiments.get(name)
    workspace.experiments.set_state(row.name, "stopped")
    waiting = [run.id for run in workspace.runs.of_experiment(row.name) if run.status == "queued"]
    return [run for run in waiting if workspace.runs.unqueue(run)]


def advance(workspace: Workspace) -> list[int]:
    """Queue the next runs of every experiment that is going; called under the queue's lock, so that none comes twice.

    One that cannot go on is stopped, so that it holds up neither the queue nor the others.
    """
    queued: list[int] = []
    going = workspace.experiments.going()
    if not going:
        return queued
    from trainer.experiments.experiment import from_toml

    for row in going:
        try:
            queued += _advance(workspace, from_toml(row.definition, source=row.name))
        except (ConfigError, StoreError):
            workspace.experiments.set_state(row.name, "stopped")
    return queued


def is_going(workspace: Workspace) -> bool:
    """Return whether an experiment still waits for runs of its own, or has just been started."""
    return bool(workspace.experiments.going())


def next_runs(
    experiment: Experiment, runs: Sequence[RunRow], seeds: Sequence[int], verdict: ExperimentVerdict
) -> list[tuple[Arm, int]]:
    """Return the arms and seeds to train next, seed by seed; none while some train, or when it is over.

    Args:
        runs: All of its runs.
        seeds: The seed of each of them.
    """
    if _in_progress(runs):
        return []
    begun_pairs = {(run.arm, seed) for run, seed in zip(runs, seeds, strict=True)}
    begun = sorted({seed for _, seed in begun_pairs} & {*experiment.seeds})
    least = list(experiment.seeds[: experiment.least_seeds])
    seeds_to_fill = sorted({*begun, *least})
    missing = [(arm, seed) for seed in seeds_to_fill for arm in experiment.arms if (arm.name, seed) not in begun_pairs]
    if missing or is_over(experiment, runs, verdict):
        return missing
    left = [seed for seed in experiment.seeds if seed not in begun]
    return [(arm, left[0]) for arm in experiment.arms] if left else []


def is_over(experiment: Experiment, runs: Sequence[RunRow], verdict: ExperimentVerdict) -> bool:
    """Return whether no seed shall be added: all is decided, or the hours are used up."""
    hours = sum(run.trained_s for run in runs) / 3600
    return verdict.decided or bool(experiment.hours and hours >= experiment.hours)


def _in_progress(runs: Sequence[RunRow]) -> bool:
    """Return whether a run waits or trains; one that was deleted while it waited does neither."""
    return any(run.active and run.deleted_at is None for run in runs)


def _advance(workspace: Workspace, experiment: Experiment) -> list[int]:
    from trainer.experiments.verdict import judged

    runs = workspace.runs.of_experiment(experiment.name)
    if _in_progress(runs):
        return []
    verdict = judged(workspace, experiment)
    seeds = {outcome.run.id: outcome.seed for outcome in verdict.runs}
    chosen = next_runs(experiment, runs, [seeds[run.id] for run in runs], verdict)
    if not chosen:
        workspace.experiments.set_state(experiment.name, "ended")
        return []
    return [
        workspace.runs.create(
            experiment.run_of(arm, seed),
            status="queued",
            experiment=experiment.name,
            arm=arm.name,
            preset=experiment.preset,
        )
        for arm, seed in chosen
    ]


def progress(row: ExperimentRow, experiment: Experiment, verdict: ExperimentVerdict) -> str:
    """Return how far an experiment is: `running: CLIP 2/3 seeds, CLOOB 1/3`."""
    done, most = len(verdict.seeds), experiment.most_seeds
    seeds = f"{done} of {most} seed{'s' * (most != 1)}" if most else f"{done} seed{'s' * (done != 1)}"
    if row.state == "new":
        return f"not started: {most or 'any number of'} seeds of {' and '.join(arm.name for arm in experiment.arms)}"
    if row.state == "going":
        return f"{'waiting to start' if is_waiting(row, verdict) else 'running'}: {seeds_by_arm(experiment, verdict)}"
    if is_stopping(row, verdict):
        runs = [each.run for each in verdict.training]
        after = "" if all(run.asked == "stop" for run in runs) else "after "
        return f"stopping {after}{' and '.join(run.short_name for run in runs)}"
    if is_spent(row, experiment, verdict):
        return f"ended after {seeds}, no winner"
    return f"{'stopped' if row.state == 'stopped' else 'ended'} after {seeds}{', decided' * verdict.decided}"


def is_waiting(row: ExperimentRow, verdict: ExperimentVerdict) -> bool:
    """Return whether the next run of an experiment is in the queue, and none trains."""
    return row.state == "going" and not verdict.training and any(each.run.status == "queued" for each in verdict.runs)


def planned_seeds(experiment: Experiment, verdict: ExperimentVerdict) -> int:
    """Return how many seeds of an arm there are for now: the least, and those begun after them."""
    return max(experiment.least_seeds, len({run.seed for run in verdict.runs if run.seed >= 0}))


def seeds_by_arm(experiment: Experiment, verdict: ExperimentVerdict) -> str:
    """Return how many seeds of each arm count, of those that have a run."""
    planned = planned_seeds(experiment, verdict)
    counts = [sum(run.arm == arm.name and not run.note for run in verdict.runs) for arm in experiment.arms]
    parts = [f"{arm.name} {count}/{planned}" for arm, count in zip(experiment.arms, counts, strict=True)]
    return ", ".join([f"{parts[0]} seed{'s' * (planned != 1)}", *parts[1:]])
