"""The pixels of published models against open_clip's own transform, bit for bit."""

from pathlib import Path

import numpy as np
import pytest
import torch
from open_clip.transform import image_transform
from PIL import Image

from tests.trainer.conftest import upright
from trainer.images import Preprocessing, read_image, read_pictures

pytestmark = pytest.mark.slow

MEAN, STD = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)


@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
@pytest.mark.parametrize("mode", ["shortest", "squash", "longest"])
@pytest.mark.parametrize("size", [32, 63])
def test_the_pixels_are_those_of_open_clip(odd_pictures: list[Path], size: int, mode: str, interpolation: str) -> None:
    own = Preprocessing(size, mode, interpolation, MEAN, STD, fill_color=77)
    theirs = image_transform(
        size, is_train=False, mean=MEAN, std=STD, resize_mode=mode, interpolation=interpolation, fill_color=77
    )
    read = 0
    for path in odd_pictures:
        decoded = upright(path)
        try:
            wanted = theirs(decoded)
        except ValueError:
            assert mode == "longest", "a side of no pixels"
            continue
        found = torch.from_numpy(read_image(str(path), size, preprocessing=own)).permute(2, 0, 1)
        assert (found.float() / 255).equal(wanted), path.name
        read += 1
    assert read >= 40


def test_a_helper_reads_the_same(odd_pictures: list[Path]) -> None:
    for own in (
        Preprocessing(40, "squash", "bilinear", MEAN, STD),
        Preprocessing(40, "longest", "lanczos", MEAN, STD, fill_color=9),
    ):
        pixels, told = read_pictures(list(map(str, odd_pictures)), 40, own)
        assert not any(one.reason for one in told)
        for path, found in zip(odd_pictures, pixels, strict=True):
            assert (found == read_image(str(path), 40, preprocessing=own)).all()
    cropped, _ = read_pictures([str(odd_pictures[0])], 40)
    assert (cropped[0] == read_image(str(odd_pictures[0]), 40)).all(), "towers of our own keep their crop"
    assert (cropped[0] != pixels[0]).any()


def test_a_thread_of_a_picture_takes_little_memory(tmp_path: Path) -> None:
    """Resizing its shorter side to 64 pixels would make it 1.6 million long: 300 MB a copy."""
    path, ramp = tmp_path / "thread.png", np.arange(25_000) // 10 % 256
    Image.fromarray(np.repeat(ramp[None, :, None], 3, axis=2).astype(np.uint8)).save(path)
    (found,), (told,) = read_pictures([str(path)], 64, Preprocessing(64, "shortest", "bicubic", MEAN, STD))
    assert told.reason == ""
    assert np.abs(found.astype(int) - ramp[12_500]).max() <= 1


def test_it_survives_json() -> None:
    own = Preprocessing(40, "longest", "bilinear", (0.1, 0.2, 0.3), STD, 9)
    assert Preprocessing.from_json(own.to_json()) == own
