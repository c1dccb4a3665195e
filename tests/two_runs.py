"""A workspace with two ended runs, written through the store alone."""

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


def write_run_on_other_data(workspace: Workspace, pairs: int = 20) -> int:
    """Write an ended run with a snapshot of fewer pairs of other data, of no class, at step 20; return its number."""
    names = [f"own {i}" for i in range(pairs)]
    items = Items(np.array(names), [""] * pairs, names, [""] * pairs, ["heldout"] * pairs, {})
    number = workspace.runs.create(config.Run(name="own", data=config.Folder(path="own")))
    with RunLog.claim(workspace, number) as log:
        _write_snapshot(log, 20, items, 0.4, "own", "own", "heldout")
        log.status("finished")
    return number


def _write_snapshot(
    log: RunLog, step: int, items: Items, noise: float, model: str, dataset: str = "scenes", split: str = "renderings"
) -> None:
    rng = np.random.default_rng(step)
    image = rng.normal(size=(len(items.id), 8)).astype(np.float32)
    text = image + noise * rng.normal(size=(len(items.id), 8)).astype(np.float32)
    image, text = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (image, text))
    folder = log.folder / "snapshots" / snapshot_name(dataset=dataset, split=split, step=step)
    about = {"step": step, "dataset": dataset, "split": split}
    write_snapshot(folder, image=image, text=text, items=items, model=model, **about)
    log.snapshot(step, dataset, split, folder, len(items.id), 8)
