"""A workspace with a tiny set of Scenes, and runs of a few steps on it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from trainer import config
from trainer.store import Workspace
from trainer.training.session import TrainingSession

TINY = config.Run(
    name="tiny",
    device="cpu",
    data=config.Scenes(train_pairs=256, heldout_pairs=64),
    model=config.TinyTowers(
        image_size=32, image_width=8, text_width=32, text_layers=1, text_heads=2, context_length=16, embed_dim=32
    ),
    optimizer=config.Optimizer(batch_size=64, epochs=3, learning_rate=2e-3, warmup_steps=4),
    watching=config.Watching(log_every=1, evaluate_every=5, snapshots=3, checkpoint_every=4),
)
"""Twelve steps of a second or so."""


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a workspace shared by all tests, so that Scenes are drawn and decoded once."""
    return Workspace(tmp_path_factory.mktemp("fit"))


@pytest.fixture(scope="session")
def tiny(workspace):
    """Create a tiny run with fields changed, such as `tiny(**{"optimizer.epochs": 1})`; return its id."""

    def make(objective: config.Objective | None = None, **changes: object) -> int:
        run = replace(TINY, objective=objective or config.Clip())
        for field, value in changes.items():
            run = config.replace(run, field, str(value))
        return workspace.runs.create(run)

    return make


@pytest.fixture(scope="session")
def journal(workspace):
    """Return the journal of a run as {step: {name: value}}; fail on duplicate numbers."""

    def read(run: int) -> dict[int, dict[str, float]]:
        found: dict[int, dict[str, float]] = {}
        lines = (workspace.runs.get(run).folder / "metrics.jsonl").read_text().splitlines()
        for line in map(json.loads, lines):
            known = found.setdefault(line["step"], {})
            assert not known.keys() & line["values"].keys(), f"step {line['step']} is there twice"
            known.update(line["values"])
        return found

    return read


@pytest.fixture
def log_text(workspace):
    return lambda run: Path(workspace.runs.get(run).folder, "log.txt").read_text()


@pytest.fixture
def after_update(monkeypatch):
    """Call a function once, right after the update that leads to a step."""

    def arrange(step: int, act) -> None:
        update = TrainingSession.update
        done = []

        def acting(training: TrainingSession):
            result = update(training)
            if training.step == step and not done:
                done.append(step)
                act()
            return result

        monkeypatch.setattr(TrainingSession, "update", acting)

    return arrange
