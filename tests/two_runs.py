"""A workspace with two ended runs, written through the store alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image

from trainer import config
from trainer.store import Items, RunLog, Workspace, snapshot_name, write_snapshot

PAIRS = 48
COLORS, SHAPES = ("red", "green", "blue"), ("ring", "star", "heart", "cross")


def write_two_runs(folder: Path, runs: Iterable[tuple[config.Run, float]], *, curves: bool = False) -> list[int]:
    """Write ended runs with snapshots of the same 48 pairs at steps 10 and 20; return their numbers.

    Args:
        folder: Gets the workspace `workspace` and the images of the pairs.
        runs: Their configurations, and the noise that parts the vectors of an image and its caption.
        curves: Write curves of 20 steps, too.
    """
    files = [folder / f"{i}.png" for i in range(PAIRS)]
    for i, file in enumerate(files):
        Image.new("RGB", (40, 20), COLORS[i % 3]).save(file)
    items = Items(
        np.array([f"pair {i}" for i in range(PAIRS)]),
        [str(file) for file in files],
        [f"a {COLORS[i % 3]} {SHAPES[i % 4]}, {i}" for i in range(PAIRS)],
        [SHAPES[i % 4] for i in range(PAIRS)],
        ["renderings"] * PAIRS,
        {"color": [COLORS[i % 3] for i in range(PAIRS)], "brightness": [i / PAIRS for i in range(PAIRS)]},
    )
    workspace, numbers = Workspace(folder / "workspace"), []
    for run, noise in runs:
        numbers.append(workspace.runs.create(run))
        with RunLog.claim(workspace, numbers[-1]) as log:
            for step in range(1, 21) if curves else ():
                log.scalars(step, {"train/loss": 5 / step, "val/image_to_text_R@1": step / 20})
            for step in (10, 20):
                _write_snapshot(log, step, items, noise, run.name)
            log.status("finished")
    workspace.close()
    return numbers


def _write_snapshot(log: RunLog, step: int, items: Items, noise: float, model: str) -> None:
    rng = np.random.default_rng(step)
    image = rng.normal(size=(PAIRS, 8)).astype(np.float32)
    text = image + noise * rng.normal(size=(PAIRS, 8)).astype(np.float32)
    image, text = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (image, text))
    folder = log.folder / "snapshots" / snapshot_name(dataset="scenes", split="renderings", step=step)
    about = {"step": step, "dataset": "scenes", "split": "renderings"}
    write_snapshot(folder, image=image, text=text, items=items, model=model, **about)
    log.snapshot(step, "scenes", "renderings", folder, PAIRS, 8)
