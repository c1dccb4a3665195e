"""A workspace with two runs created through the store alone; and images of every unusual kind."""

import contextlib
import dataclasses
import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from trainer import config
from trainer.analysis.distinct import matching, numbered
from trainer.analysis.geometry import modality_gap
from trainer.analysis.retrieval import ranks, recall_at
from trainer.analysis.similarity import auc, hardest_texts, matched_cosines
from trainer.images import open_image
from trainer.store import Items, Question, RunLog, Workspace, snapshot_name, write_snapshot

SHAPES = ("circle", "square", "star", "ring", "heart", "cross", "moon", "drop")
COLORS = ("red", "blue", "green", "pink", "gray", "gold")
STEPS = (0, 80, 160, 240)
D = 32


@pytest.fixture(scope="session")
def charted(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return runs 1 (`clip-scenes`) and 2 (`cloob-scenes`) with curves, two splits and evaluations. Read only."""
    workspace = Workspace(tmp_path_factory.mktemp("charted"))
    fill(workspace, pairs=240)
    return workspace


@pytest.fixture(scope="session")
def fill_runs() -> Callable[..., None]:
    """Return `fill`, for a test's own workspaces."""
    return fill


def fill(
    workspace: Workspace,
    *,
    pairs: int,
    names: tuple[str, ...] = ("clip-scenes", "cloob-scenes"),
    steps: tuple[int, ...] = STEPS,
    splits: tuple[str, ...] = ("renderings", "combinations"),
) -> None:
    """Write CLIP and CLOOB runs in turns, with numbers from analyses of synthetic embeddings."""
    objectives = itertools.cycle(((config.Clip(), 1.1), (config.Cloob(), 0.5)))
    for name, (objective, gap) in zip(names, objectives):
        run = dataclasses.replace(config.Run(), name=name, objective=objective)
        with RunLog.claim(workspace, workspace.runs.create(run, preset=name)) as log:
            rng = np.random.default_rng(len(name))
            _train(log, rng, objective.kind)
            for step in steps:
                for split in splits:
                    _evaluate(log, rng, pairs, step, split, gap)
            log.progress(step=STEPS[-1], total_steps=STEPS[-1], phase="done", eta_s=0)
            log.status("finished")


def _train(log: RunLog, rng: np.random.Generator, kind: str) -> None:
    start = 5.5 if kind == "clip" else 0.37
    for step in range(1, STEPS[-1] + 1):
        fade = np.exp(-step / 60)
        loss = start * (0.15 + 0.85 * fade) + 0.03 * start * rng.standard_normal() - (0 if kind == "clip" else 0.2)
        log.scalars(step, {"train/loss": loss, "train/learning_rate": 1e-3 * min(step / 50, 1)})


def _evaluate(log: RunLog, rng: np.random.Generator, pairs: int, step: int, split: str, gap: float) -> None:
    skill = 1 - np.exp(-step / 70)
    noise = (1.9 if split == "renderings" else 2.4) - (1.0 if gap > 1 else 1.15) * skill
    items = _items(np.random.default_rng(len(split)), pairs, split)  # of every run and step the same pairs
    image, text = _embeddings(rng, items, noise, gap)
    pairs_of = matching(numbered(items.caption))
    values = {f"image_to_text_R@{k}": recall_at(ranks(image, text, pairs_of.texts), k) for k in (1, 5, 10)}
    values |= {f"text_to_image_R@{k}": recall_at(ranks(text, image, pairs_of.images), k) for k in (1, 5, 10)}
    values["auc_hard10"] = auc(matched_cosines(image, text), hardest_texts(image, text, 10, pairs_of.texts).cosines)
    values["modality_gap"] = modality_gap(image, text)[1]
    prefix = "val" if split == "renderings" else split
    log.scalars(step, {f"{prefix}/{key}": value for key, value in values.items()})
    folder = log.folder / "snapshots" / snapshot_name(dataset="scenes", split=split, step=step)
    write_snapshot(
        folder, image=image, text=text, items=items, step=step, dataset="scenes", split=split, model=log.run.name
    )
    log.snapshot(step, "scenes", split, folder, pairs, D)
    log.evaluation(step, "scenes", split, values, {task: Question(task, pairs) for task in ("retrieval", "similarity")})


def _items(rng: np.random.Generator, n: int, split: str) -> Items:
    shape, color = rng.integers(0, len(SHAPES), n), rng.integers(0, len(COLORS), n)
    other = rng.integers(0, len(SHAPES), n)
    captions = [f"a {COLORS[c]} {SHAPES[s]} left of a {SHAPES[o]}" for c, s, o in zip(color, shape, other)]
    return Items(
        id=np.arange(n),
        path=[f"{i:05d}.jpg" for i in range(n)],
        caption=captions,
        label=[SHAPES[s] for s in shape],
        split=[split] * n,
        metadata={"subject_color": [COLORS[c] for c in color], "relation": ["left of"] * n},
    )


def _embeddings(rng: np.random.Generator, items: Items, noise: float, gap: float) -> tuple[np.ndarray, np.ndarray]:
    words = sorted({word for caption in items.caption for word in caption.split()})
    # The words' directions are those of the language, the same at every step and in both runs.
    directions = {word: np.random.default_rng(sum(map(ord, word))).standard_normal(D) for word in words}
    meaning = np.array([2.5 * directions[label] for label in items.label])
    meaning += [sum(directions[word] for word in caption.split()) for caption in items.caption]
    offset = np.random.default_rng(99).standard_normal(D) * gap * 2
    image = meaning + offset + noise * rng.standard_normal(meaning.shape)
    text = meaning - offset
    unit = [m / np.linalg.norm(m, axis=1, keepdims=True) for m in (image, text)]
    return unit[0].astype(np.float32), unit[1].astype(np.float32)


SIZES = ((97, 61), (61, 97), (224, 224), (33, 200), (301, 17), (32, 31), (7, 5), (1, 1), (64, 640), (255, 254))


@pytest.fixture(scope="session")
def odd_pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return 42 JPEGs and PNGs: color, gray, CMYK, rotated by the camera, palette, transparent."""
    return write_odd_pictures(tmp_path_factory.mktemp("odd"), SIZES)


def write_odd_pictures(folder: Path, sizes: tuple[tuple[int, int], ...]) -> list[Path]:
    """Write four images of each size, and two more."""
    rng, paths = np.random.default_rng(0), []

    def save(image: Image.Image, suffix: str, **how: object) -> None:
        paths.append(folder / f"{len(paths)}.{suffix}")
        image.save(paths[-1], **how)

    for place, (width, height) in enumerate(sizes):
        color = Image.fromarray(_blobs(rng, width, height, 3))
        turned = Image.Exif()
        turned[0x0112] = 2 + place % 7
        save(color, "png")
        save(color, "jpg", quality=90)
        save(color.convert("L"), ("jpg", "png")[place % 2])
        if place % 2:
            save(color, "jpg", exif=turned, quality=80, subsampling=0)
        else:
            save(Image.fromarray(_blobs(rng, width, height, 4), mode="CMYK"), "jpg", quality=95)
    save(Image.fromarray(_blobs(rng, 90, 50, 4), mode="RGBA"), "png")
    save(Image.fromarray(_blobs(rng, 50, 91, 3)).quantize(16), "png")
    return paths


def upright(path: Path) -> Image.Image:
    """Return the image as Pillow reads it for open_clip, but upright, and on white where transparent."""
    image = Image.open(path)
    return open_image(str(path)) if image.mode == "RGBA" else ImageOps.exif_transpose(image)


def _blobs(rng: np.random.Generator, width: int, height: int, channels: int) -> np.ndarray:
    """Return blobs and noise: edges that ring and flat parts that do not."""
    small = Image.fromarray(rng.integers(0, 256, (4, 5, 3), np.uint8)).resize((width, height), Image.Resampling.BICUBIC)
    values = np.asarray(small).astype(int) + rng.integers(-20, 20, (height, width, 3))
    return np.concatenate((values, values), axis=2)[..., :channels].clip(0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def asked(trained_once: Callable[[str, Callable[[Path], object]], Workspace]) -> Workspace:
    """Return runs 1 (CLIP) and 2 (CLOOB) with checkpoints at steps 4 and 8 and snapshots; 3 has none. Read only."""
    return trained_once("asked", _train_asked)


def _train_asked(folder: Path) -> None:
    from trainer.training.fit import fit  # seconds of imports

    workspace = Workspace(folder / "workspace")
    for name, objective in (("clip", config.Clip()), ("cloob", config.Cloob())):
        fit(workspace, workspace.runs.create(_short_run(name, objective)))
    workspace.runs.create(config.Run(name="empty"))
    workspace.close()


@pytest.fixture
def trained_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in this process, where torch is loaded, what would start a process; store/test_launch.py starts them."""
    from trainer.scheduling import launch
    from trainer.training.fit import fit

    def start(workspace: Workspace, run: int, *, slot: str = "", queued_only: bool = False, beside: int = 1) -> int:
        assert workspace.runs.begin_launch(run, slot=slot, queued_only=queued_only)
        with contextlib.redirect_stdout(sys.stderr):  # a process writes it to its log
            fit(workspace, run)
        return os.getpid()

    monkeypatch.setattr(launch, "start_detached", start)


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return three images of different sizes, one with an unusual name."""
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    paths = [folder / name for name in ("plain.png", "wide.jpg", "tête-à-tête \n猫.png")]
    for path, size in zip(paths, ((40, 40), (90, 50), (64, 64)), strict=True):
        Image.fromarray(rng.integers(0, 255, (*size, 3), dtype=np.uint8)).save(path)
    return paths


def _short_run(name: str, objective: config.Objective) -> config.Run:
    return config.Run(
        name=name,
        data=config.Scenes(train_pairs=64, heldout_pairs=24),
        objective=objective,
        model=config.TinyTowers(
            image_size=32, image_width=8, text_width=32, text_heads=2, text_layers=1, context_length=12, embed_dim=16
        ),
        optimizer=config.Optimizer(batch_size=16, epochs=2, warmup_steps=1),
        watching=config.Watching(evaluate_every=8, snapshots=2, checkpoint_every=4),
        device="cpu",
    )
