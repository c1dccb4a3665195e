"""A workspace with two runs that were trained for a few steps, and some images. Answers need no skill."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainer import config
from trainer.fit import fit
from trainer.store import Workspace


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Runs 1 (CLIP) and 2 (CLOOB) with checkpoints at steps 4 and 8 and snapshots; run 3 has none. Read only."""
    workspace = Workspace(tmp_path_factory.mktemp("asked") / "a workspace")
    for name, objective in (("clip", config.Clip()), ("cloob", config.Cloob())):
        fit(workspace, workspace.create_run(_short(name, objective)))
    workspace.create_run(config.Run(name="empty"))
    return workspace


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three pictures of different sizes, one with a name that is hard to write down."""
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    paths = [folder / name for name in ("plain.png", "wide.jpg", "tête-à-tête \n猫.png")]
    for path, size in zip(paths, ((40, 40), (90, 50), (64, 64)), strict=True):
        Image.fromarray(rng.integers(0, 255, (*size, 3), dtype=np.uint8)).save(path)
    return paths


def _short(name: str, objective: config.Objective) -> config.Run:
    return config.Run(
        name=name,
        data=config.Scenes(train_pairs=64, heldout_pairs=24),
        objective=objective,
        model=config.TinyTowers(
            image_size=32, image_width=8, text_width=32, text_heads=2, text_layers=1, context_length=12, embed_dim=16
        ),
        optimiser=config.Optimiser(batch_size=16, epochs=2, warmup_steps=1),
        watching=config.Watching(evaluate_every=8, snapshots=2, checkpoint_every=4),
        device="cpu",
    )
