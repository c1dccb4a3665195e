"""The comparison of loaders measures both on the same pairs and reports how long a step waits."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.benchmarks.data import _Decoding, _loader, measure
from trainer import config
from trainer.config import presets
from trainer.data import load
from trainer.data.tokenizer import train_tokenizer

pytestmark = pytest.mark.slow


def few(tmp_path: Path) -> config.Run:
    generator = np.random.default_rng(0)
    for number in range(24):
        (tmp_path / "few").mkdir(exist_ok=True)
        Image.fromarray(generator.integers(0, 256, (40, 40, 3), np.uint8)).save(tmp_path / "few" / f"{number}.png")
        (tmp_path / "few" / f"{number}.txt").write_text(f"picture {number}", encoding="utf-8")
    run = presets.preset("clip-scenes")
    for field, value in {"model.image_size": "32", "optimizer.batch_size": "8", "model.text_width": "32"}.items():
        run = config.replace(run, field, value)
    return dataclasses.replace(run, data=config.Folder(path=str(tmp_path / "few")))


def test_both_ways_are_measured_on_the_same_pairs(tmp_path: Path) -> None:
    speed = measure(few(tmp_path), tmp_path, workers=1, seconds=0.2)
    assert (speed.name, speed.batch_size, speed.workers) == ("few", 8, 1)
    assert 16 <= speed.pairs < 24
    assert min(speed.prepare_s, speed.ours, speed.streamed, speed.theirs, speed.train_ours, speed.train_theirs) > 0
    assert 0 < speed.wait < 1
    # A step cannot be quicker than its loader, whatever the machine does meanwhile.
    assert speed.train_ours < speed.ours


def test_the_other_way_decodes_the_same_pictures(tmp_path: Path) -> None:
    run = few(tmp_path)
    pairs = load(run.data, image_size=32, workspace_folder=tmp_path, progress=lambda share, note: None).train
    loader = _loader(pairs, train_tokenizer(pairs.captions, run.model.vocabulary), run, 0)
    images, tokens = next(iter(loader))
    assert images.shape == (8, 3, 32, 32)
    assert tokens.shape == (8, run.model.context_length)
    whole = _Decoding(pairs.paths, torch.arange(len(pairs)), lambda image: torch.from_numpy(np.array(image)))
    assert whole[3][0].shape == (40, 40, 3)
