"""A run small enough to break hundreds of times in minutes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults.breakable_trainer import start_trainer
from tests.two_runs import write_two_runs
from trainer import config
from trainer.store import Workspace
from trainer.store.journal import read_journal

SMALL = config.Run(
    name="small",
    device="cpu",
    data=config.Scenes(train_pairs=96, heldout_pairs=16),
    model=config.TinyTowers(
        image_size=32, image_width=8, text_width=16, text_layers=1, text_heads=2, context_length=16, embed_dim=16
    ),
    optimizer=config.Optimizer(batch_size=16, epochs=2, learning_rate=5e-3, warmup_steps=2),
    watching=config.Watching(log_every=1, evaluate_every=5, snapshots=3, checkpoint_every=3),
)
"""Twelve steps; a checkpoint at least every third."""
NOISY = ("system/", "train/pairs_per_s", "train/data_wait")
"""Curves that no two runs share: speeds and loads."""


@pytest.fixture(autouse=True)
def _windows_load_no_model(request: pytest.FixtureRequest) -> None:
    """Leave models to the tests that ask for them; those without a window need not even import it."""
    if {"qapp", "qtbot"} & set(request.fixturenames):
        request.getfixturevalue("cold_models")


@pytest.fixture(scope="session")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Return a workspace for many small runs, whose images are drawn once."""
    workspace = Workspace(tmp_path_factory.mktemp("faults"))
    yield workspace
    workspace.close()


@pytest.fixture(scope="session")
def small(space: Workspace) -> Callable[..., int]:
    """Create a small run with some fields changed and return its id."""

    def make(workspace: Workspace = space, **changes: object) -> int:
        run = replace(SMALL)
        for field, value in changes.items():
            run = config.replace(run, field, str(value))
        return workspace.runs.create(run)

    return make


@pytest.fixture(scope="session")
def interval() -> int:
    """Return the steps between two checkpoints of a small run."""
    return SMALL.watching.checkpoint_every


@pytest.fixture(scope="session")
def straight(space: Workspace, small) -> Outcome:
    """Return the outcome of an undisturbed run."""
    run = small()
    assert start_trainer(space, run).wait() == 0, log_of(space, run)
    return outcome(space, run)


@dataclass(frozen=True)
class Outcome:
    """All results of a run that two equal runs share.

    Attributes:
        curves: (step, name) -> value, of the journal and the same of the database.
        twice: Numbers that the journal or the database has more than once.
        weights: Bytes of the newest checkpoint's tensors.
        kept: Steps of the checkpoints, of the snapshots and of the evaluations; registered and on disk alike.
    """

    status: str
    curves: dict[tuple[int, str], float]
    twice: int
    weights: dict[str, bytes]
    kept: tuple[Any, ...]

    of = staticmethod(lambda workspace, run: outcome(workspace, run))

    def same_as(self, other: Outcome) -> bool:
        """Return whether both outcomes are equal."""
        return self == other and not self.twice


def outcome(workspace: Workspace, run: int) -> Outcome:
    """Read the outcome of a run."""
    from trainer.checkpoints import checkpoint

    row = workspace.runs.get(run)
    told = [
        (e.step, name, value) for e in read_journal(row.folder / "metrics.jsonl") for name, value in e.values.items()
    ]
    stored = [(r.step, r.name, r.value) for r in workspace.results.scalars_after(0, runs=[run])]
    curves = [_curves(told), _curves(stored)]
    twice = len(told) - len(curves[0]) + len(stored) - len(curves[1])
    if curves[0] != curves[1]:
        twice = -1
    found, complaints = checkpoint.newest(row.folder / "checkpoints")
    assert found is not None, complaints
    steps = tuple(sorted(checkpoint.steps(row.folder / "checkpoints")))
    snapshots = tuple(sorted(s.folder.name for s in workspace.results.snapshots(run)))
    kept = (
        steps == tuple(c.step for c in workspace.results.checkpoints(run)),
        steps,
        tuple(c.step for c in workspace.results.checkpoints(run) if c.best),
        snapshots == tuple(sorted(path.name for path in (row.folder / "snapshots").glob("*"))),
        snapshots,
        tuple((e.step, e.split, tuple(sorted(e.metrics.items()))) for e in workspace.results.evaluations(run)),
        row.step,
        row.best,
    )
    weights = {name: value.numpy().tobytes() for name, value in found.weights.items()}
    quiet = {key: value for key, value in curves[0].items() if not key[1].startswith(NOISY)}
    return Outcome(row.status, quiet, twice, weights, kept)


def _curves(rows: list[tuple[int, str, float]]) -> dict[tuple[int, str], float]:
    return {(step, name): ("nan" if math.isnan(value) else value) for step, name, value in rows}


def log_of(workspace: Workspace, run: int) -> str:
    """Return the output of the run's trainers."""
    return (workspace.runs.get(run).folder / "log.txt").read_text(encoding="utf-8")


@pytest.fixture
def two_small_runs(tmp_path: Path) -> Path:
    """Return the folder of a workspace with two ended runs: curves, and snapshots of the same 48 pairs."""
    runs = (("good", config.Clip(), 0.4), ("bad", config.Cloob(), 1.6))
    made = [(replace(SMALL, name=name, objective=objective), noise) for name, objective, noise in runs]
    write_two_runs(tmp_path, made, curves=True)
    return tmp_path / "workspace"
