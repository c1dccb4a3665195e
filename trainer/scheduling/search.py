"""A search over configurations: Optuna proposes, the queue trains ordinary runs, and those that are behind are stopped.

Nothing but the runs is stored. A study is made anew from them at each start, so that a search goes on after any end of
the process, on any copy of the workspace, and no file of Optuna is ever read.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainer import config
from trainer.errors import UserError
from trainer.experiments.search_space import Range, Search
from trainer.scheduling import launch
from trainer.store import RunRow, StoreError, Workspace

if TYPE_CHECKING:
    import optuna

POLL_S: Final = 1.0
_AGAIN: Final = "interrupted"


@dataclass(frozen=True)
class SearchTrial:
    """The state of a run of a search."""

    run: RunRow
    values: dict[str, Any]  # Of the searched fields, as its configuration says.
    course: dict[int, float]  # Step -> value of the metric, in the order of the steps.
    state: str  # `going`, `complete`, `pruned`, `failed`.

    @property
    def value(self) -> float:
        """The last value of the metric; NaN without one."""
        return next(reversed(self.course.values()), math.nan)


def trials_of(workspace: Workspace, search: Search) -> list[SearchTrial]:
    """Return the runs of a search, oldest first; damaged ones, and deleted ones that never trained, are left out."""
    trials = []
    for row in workspace.runs.of_experiment(search.name):
        try:
            flat = config.flatten(workspace.runs.config_of(row.id))
        except (StoreError, config.ConfigError):
            continue
        if not all(field in flat for field in search.ranges):
            continue
        values = {field: _plain(flat[field], field_range) for field, field_range in search.ranges.items()}
        steps, numbers, _ = workspace.results.series(row.id, search.metric)
        course = {
            int(step): float(value)
            for step, value in zip(steps.tolist(), numbers.tolist(), strict=True)
            if step > 0 and math.isfinite(value)
        }
        if row.deleted_at is None or course:
            trials.append(SearchTrial(row, values, course, _state(row, course)))
    return trials


def best_of(trials: list[SearchTrial], search: Search) -> SearchTrial | None:
    """Return the complete trial with the best value; None without one."""
    ended = [trial for trial in trials if trial.state == "complete"]
    sign = 1.0 if search.direction == "up" else -1.0
    return max(ended, key=lambda trial: sign * trial.value, default=None)


def run_search(
    workspace: Workspace,
    search: Search,
    *,
    say: Callable[[str], None] = lambda words: None,
    wait: Callable[[], None] | None = None,
) -> list[SearchTrial]:
    """Train until there are as many trials as the search says, and return them; earlier ones are counted.

    Args:
        say: Told of each start and end.
        wait: Called between two looks; by default it starts what is due in the queue and sleeps a second.

    Raises:
        UserError: Optuna is not installed, or an experiment has the name of the search.
    """
    earlier = trials_of(workspace, search)
    study = _study(search, len(earlier))
    if search.name in {row.name for row in workspace.experiments.all()}:
        raise UserError(f"There is an experiment called {search.name!r}. Give the search another name.")
    wait = wait or (lambda: _wait(workspace))
    going: dict[int, optuna.Trial] = {}
    for trial in earlier:
        if trial.run.status == _AGAIN and trial.run.deleted_at is None:
            workspace.runs.enqueue(trial.run.id)
        elif trial.state != "going":
            _add(study, search, trial)
    reported: dict[int, set[int]] = {}
    while True:
        trials = trials_of(workspace, search)
        for trial in trials:
            if trial.run.id not in going and trial.state == "going":
                going[trial.run.id] = _asked_again(study, search, trial)
            if (optuna_trial := going.get(trial.run.id)) is not None:
                _follow(workspace, search, study, optuna_trial, trial, reported.setdefault(trial.run.id, set()), say)
                if trial.state != "going":
                    del going[trial.run.id]
        while len(trials) < search.trials and len(going) < search.at_once:
            optuna_trial = study.ask(_distributions(search))
            number = len(trials) + 1
            made = search.run_of(number, optuna_trial.params)
            run = workspace.runs.create(made, status="queued", experiment=search.name, arm=f"trial {number}")
            going[run] = optuna_trial
            values = ", ".join(f"{field} {value:.4g}" if isinstance(value, float) else f"{field} {value}"
                             for field, value in optuna_trial.params.items())  # fmt: skip
            say(f"Trial {number} of {search.trials}: {values}.")
            trials = trials_of(workspace, search)
        if not going:
            return trials
        wait()


def _follow(
    workspace: Workspace,
    search: Search,
    study: optuna.Study,
    trial: optuna.Trial,
    followed: SearchTrial,
    reported: set[int],
    say: Callable[[str], None],
) -> None:
    """Report what a run has logged; stop it if it is behind, and tell its end."""
    import optuna

    for step, value in followed.course.items():
        if step in reported:
            continue
        reported.add(step)
        trial.report(value, step)
        if search.prune and followed.state == "going" and followed.run.status == "running" and trial.should_prune():
            launch.stop(workspace, followed.run.id)
            say(f"{followed.run.name} is behind at step {step} ({value:.4g}) and is stopped.")
            break
    if followed.state == "going":
        return
    states = {"pruned": optuna.trial.TrialState.PRUNED, "failed": optuna.trial.TrialState.FAIL}
    if followed.state in states:
        study.tell(trial, state=states[followed.state])
    else:
        study.tell(trial, followed.value)
    say(f"{followed.run.name}: {followed.state}, {followed.value:.4g}.")


def _state(row: RunRow, course: dict[int, float]) -> str:
    if row.active or row.status == _AGAIN:
        return "going"
    if row.status == "finished":
        return "complete" if course else "failed"
    return "pruned" if row.status == "stopped" and course else "failed"


def _study(search: Search, earlier: int) -> optuna.Study:
    try:
        import optuna
    except ImportError as error:
        raise UserError("A search needs Optuna. Install it: pip install 'contrastive-explorer[search]'.") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    samplers = {"random": optuna.samplers.RandomSampler, "tpe": optuna.samplers.TPESampler}
    pruner = (
        optuna.pruners.SuccessiveHalvingPruner(
            min_resource=search.run.watching.evaluate_every, reduction_factor=search.reduction
        )
        if search.prune
        else optuna.pruners.NopPruner()
    )
    return optuna.create_study(
        direction="maximize" if search.direction == "up" else "minimize",
        # With the seed alone it would draw again what it drew at the first start.
        sampler=samplers[search.sampler](seed=search.seed + earlier),
        pruner=pruner,
    )


def _distributions(search: Search) -> dict[str, Any]:
    import optuna

    def distribution(field_range: Range) -> Any:
        if field_range.choices:
            return optuna.distributions.CategoricalDistribution(field_range.choices)
        if field_range.whole:
            return optuna.distributions.IntDistribution(
                int(field_range.low), int(field_range.high), log=field_range.log
            )
        return optuna.distributions.FloatDistribution(field_range.low, field_range.high, log=field_range.log)

    return {field: distribution(searched) for field, searched in search.ranges.items()}


def _plain(value: Any, field_range: Range) -> Any:
    """Return a configuration's value as Optuna holds it."""
    if not field_range.choices:
        return value
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return next((choice for choice in field_range.choices if choice == text or _same(choice, value)), text)


def _same(choice: str, value: Any) -> bool:
    try:
        return not isinstance(value, bool) and isinstance(value, int | float) and float(choice) == float(value)
    except ValueError:
        return False


def _fits(search: Search, trial: SearchTrial) -> bool:
    """Return whether a run's values lie in the ranges; a definition may have been changed since."""
    return all(
        trial.values[field] in field_range.choices
        if field_range.choices
        else field_range.low <= trial.values[field] <= field_range.high
        for field, field_range in search.ranges.items()
    )


def _add(study: optuna.Study, search: Search, trial: SearchTrial) -> None:
    """Pass the study the result of a trial that has ended."""
    import optuna

    if not _fits(search, trial):
        return
    states = {
        "complete": optuna.trial.TrialState.COMPLETE,
        "pruned": optuna.trial.TrialState.PRUNED,
        "failed": optuna.trial.TrialState.FAIL,
    }
    study.add_trial(
        optuna.trial.create_trial(
            state=states[trial.state],
            value=trial.value if trial.state == "complete" else None,
            params=trial.values,
            distributions=_distributions(search),
            intermediate_values=trial.course,
        )
    )


def _asked_again(study: optuna.Study, search: Search, trial: SearchTrial) -> optuna.Trial:
    """Return a trial of the study with the values of a run that trains already."""
    study.enqueue_trial(trial.values)
    return study.ask(_distributions(search))


def _wait(workspace: Workspace) -> None:
    from trainer.scheduling import queue

    workspace.reconcile()
    queue.start_due(workspace)
    time.sleep(POLL_S)
