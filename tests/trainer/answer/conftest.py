"""A workspace with two runs that have a checkpoint (of untrained models: answers need no skill) and some images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from trainer import checkpoint, config, methods, models, optim
from trainer.data.tokenizer import train_tokenizer
from trainer.store import Items, RunLog, Workspace, snapshot_name, write_snapshot

SHAPES = ("circle", "square", "star", "ring")
STEPS = (3, 7)


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Runs 1 (CLIP) and 2 (CLOOB) with checkpoints at steps 3 and 7 and a snapshot; run 3 has none. Read only."""
    workspace = Workspace(tmp_path_factory.mktemp("asked") / "a workspace")
    for name, objective in (("clip", config.Clip()), ("cloob", config.Cloob())):
        _add_run(workspace, config.Run(name=name, objective=objective, model=_small()))
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


def _small() -> config.TinyTowers:
    return config.TinyTowers(
        image_size=32, image_width=8, text_width=32, text_heads=2, text_layers=1, context_length=12, embed_dim=16
    )


def _add_run(workspace: Workspace, run: config.Run) -> None:
    torch.manual_seed(len(run.name))
    tokenizer = train_tokenizer([f"a photo of a {shape}" for shape in SHAPES] * 8, 300)
    towers, method = models.build(run.model, tokenizer), methods.build(run.objective)
    modules = nn.ModuleDict({"towers": towers, "method": method})
    with RunLog.claim(workspace, workspace.create_run(run)) as log:
        for step in STEPS:
            folder = checkpoint.save(
                log.folder / "checkpoints",
                step=step,
                modules=dict(modules),
                optimiser=optim.adamw(modules, run.optimiser),
                tokenizer=tokenizer.to_json(),
                best=None,
            )
            log.checkpoint(step, folder)
            with torch.no_grad():
                for parameter in modules.parameters():
                    parameter.mul_(1.01)
        _add_snapshot(log)
        log.status("finished")


def _add_snapshot(log: RunLog) -> None:
    rng = np.random.default_rng(1)
    n = 60
    vectors = rng.standard_normal((2, n, 8)).astype(np.float32) + rng.standard_normal((2, 1, 8)).astype(np.float32)
    image, text = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    folder = log.folder / "snapshots" / snapshot_name(dataset="scenes", split="renderings", step=STEPS[-1])
    labels = [SHAPES[i % len(SHAPES)] for i in range(n)]
    items = Items(
        id=np.arange(n),
        path=[f"{i}.png" for i in range(n)],
        caption=[f"a {label}" for label in labels],
        label=labels,
        split=["renderings"] * n,
        metadata={},
    )
    write_snapshot(
        folder,
        image=image,
        text=text,
        items=items,
        step=STEPS[-1],
        dataset="scenes",
        split="renderings",
        model=log.run.name,
    )
    log.snapshot(STEPS[-1], "scenes", "renderings", folder, n, 8)
