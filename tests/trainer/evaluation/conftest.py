"""Runs of a few steps with stored features, and two that predict captions: as bags of words, and word by word."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import writable_copy
from trainer import config
from trainer.store import Workspace
from trainer.training.fit import fit


@pytest.fixture(scope="session")
def keeping(trained_once: Callable[[str, Callable[[Path], object]], Workspace]) -> Workspace:
    """Return runs 1 (CLIP, with features in its snapshots), 2 (bag of words) and 3 (captions), evaluated twice."""
    return trained_once("keeping", _train)


@pytest.fixture(scope="module")
def own(keeping: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a writable copy for the tests of a file."""
    return writable_copy(keeping.folder, tmp_path_factory.mktemp("own") / "workspace")


def _train(folder: Path) -> None:
    workspace = Workspace(folder / "workspace")
    caption = config.CaptionPrediction(decoder_width=32, decoder_layers=1)
    for name, objective in (("clip", config.Clip()), ("bag", config.Multiclass(drop_frequent=3)), ("said", caption)):
        fit(workspace, workspace.runs.create(short(name, objective)))
    workspace.close()


def short(name: str, objective: config.Objective, *, seed: int = 0) -> config.Run:
    """Return a run of eight steps."""
    return config.Run(
        name=name,
        seed=seed,
        data=config.Scenes(train_pairs=64, heldout_pairs=24),
        objective=objective,
        model=config.TinyTowers(
            image_tower="vit",
            patch_size=8,
            image_size=32,
            image_width=32,
            image_layers=1,
            text_width=32,
            text_heads=2,
            text_layers=1,
            context_length=64,
            embed_dim=16,
        ),
        optimizer=config.Optimizer(batch_size=16, epochs=2, warmup_steps=1),
        watching=config.Watching(evaluate_every=4, snapshots=2, checkpoint_every=8, features=True),
        device="cpu",
    )
