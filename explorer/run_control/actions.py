"""What is done to the store on a person's behalf, off the GUI thread."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from trainer import catalog, config
from trainer.config.ablation import PRESET as ABLATION
from trainer.config.ablation import four_way
from trainer.scheduling import launch
from trainer.store import EVALUATING, Workspace
from trainer.store.branch import branch as branch_of

DEMO: Final = (("clip-scenes", "CLIP demo"), ("cloob-scenes", "CLOOB demo"))
"""Preset and name of the demo runs, in the order they train: together they would each take twice as long."""


def demo_runs() -> list[tuple[str, config.Run]]:
    """Preset name and run of both demo runs, in training order."""
    return [(preset, dataclasses.replace(catalog.preset(preset), name=name)) for preset, name in DEMO]


def free_name(name: str, taken: set[str]) -> str:
    """`name copy`, or `name copy 2` and so on: the first that no run has."""
    stem = f"{name} copy"
    if stem not in taken:
        return stem
    return next(f"{stem} {n}" for n in range(2, len(taken) + 3) if f"{stem} {n}" not in taken)


def create_and_launch(workspace: Workspace, run: config.Run, preset: str) -> int:
    """Makes a run and starts its trainer; its number."""
    config.check(run)
    created = workspace.runs.create(_placed(run), preset=preset)
    launch.start_detached(workspace, created)
    return created


def create_demo(workspace: Workspace) -> int:
    """Queues all demo runs; the first one's id.

    The poll that follows starts it.
    """
    created = [workspace.runs.create(run, status="queued", preset=preset) for preset, run in demo_runs()]
    return created[0]


def create_ablation(workspace: Workspace, levels: Sequence[float], template: config.Run | None) -> int:
    """Queues the runs of the ablation; the first one's id. The poll that follows starts it."""
    template = template or catalog.preset("clip-scenes")
    created = []
    for level in levels:
        data = template.data
        if isinstance(data, config.Scenes):
            data = dataclasses.replace(data, cooccurrence=level)
        for run in four_way(dataclasses.replace(template, data=data)):
            created.append(workspace.runs.create(run, status="queued", preset=ABLATION))
    return created[0]


def branch(workspace: Workspace, run: int, step: int, name: str) -> int:
    """Makes a branch and puts it into the queue; its number."""
    made = branch_of(workspace, run, step, name)
    workspace.runs.enqueue(made)
    return made


def enqueue(
    workspace: Workspace, runs: Sequence[config.Run], preset: str, parent: int | None, priority: int, after: int | None
) -> int:
    """Puts new runs into the queue; the first one's number."""
    first, *_others = [
        workspace.runs.create(
            _placed(run), status="queued", preset=preset, parent=parent, priority=priority, after=after
        )
        for run in runs
    ]
    return first


def _placed(run: config.Run) -> config.Run:
    """The run with absolute paths: its trainer works in another folder."""
    return dataclasses.replace(run, data=config.absolute(run.data))


def ask(workspace: Workspace, run: int, what: str) -> None:
    """Asks the run's trainer for something; the empty word takes a wish back."""
    workspace.runs.ask(run, what)


def resume(workspace: Workspace, run: int) -> int:
    """Starts a trainer that goes on; the run's number."""
    launch.start_detached(workspace, run)
    return run


def copy_of(workspace: Workspace, run: int, taken: set[str]) -> config.Run:
    """What the run was told to compute, under a name that is free."""
    original = workspace.runs.config_of(run)
    return dataclasses.replace(original, name=free_name(original.name, taken))


def each(function: Callable[[int], None], runs: Sequence[int]) -> None:
    """Calls `function` with every run."""
    for run in runs:
        function(run)


@dataclass(frozen=True)
class Responsiveness:
    """What a run that does not stop does.

    Attributes:
        kept: Step of its newest checkpoint; None where there is none, or the store does not say.
        draft: What the next one holds so far.
        measured: Counts its signs of life where it evaluates; None where it does something else.
    """

    kept: int | None = None
    draft: frozenset[tuple[str, int]] = frozenset()
    measured: int | None = None


def look(workspace: Workspace, run: int, remind: bool) -> Responsiveness:
    """What the run has kept; `remind`: its trainer is told to stop once more, by a signal."""
    if remind:
        launch.remind(workspace, run)
    row = workspace.runs.get(run)
    measured = row.beats if row.phase == EVALUATING else None
    return Responsiveness(newest_checkpoint(workspace, run), launch.draft(workspace, run), measured)


def newest_checkpoint(workspace: Workspace, run: int) -> int | None:
    """Step of the newest checkpoint of `run`; None where there is none."""
    return max((row.step for row in workspace.results.checkpoints(run)), default=None)
