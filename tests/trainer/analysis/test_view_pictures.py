"""Each augmentation of one picture is what training does to a batch with the same numbers."""

import numpy as np
import pytest
import torch

from trainer.analysis import view_pictures
from trainer.data import view_effects, views
from trainer.data.augment import DEVIATION, MEAN, placed, uniform

PICTURES = np.random.default_rng(0).integers(0, 256, (3, 24, 24, 3), dtype=np.uint8)
ROWS = np.arange(3)
DRAWN = uniform(ROWS, seed=4, epoch=2, purpose=(0x71E5, 1), count=12)
CROPS = placed(DRAWN[:4], scale=0.3, ratio=4 / 3).astype(float)


def trained(**strength: float) -> np.ndarray:
    look = views.ViewStrength(
        **({"smallest_crop": 0.3, "color": 0.0, "gray": 0.0, "blur": 0.0, "flip": False} | strength)
    )
    view = views.augmented_view(torch.from_numpy(PICTURES), ROWS, look, seed=4, epoch=2, view=1)
    return (view.numpy() * np.array(DEVIATION)[:, None, None] + np.array(MEAN)[:, None, None]).transpose(0, 2, 3, 1)


def cropped(k: int) -> np.ndarray:
    width, across, height, down = CROPS[:, k]
    left, top = (1 + across - width) / 2, (1 + down - height) / 2
    return view_pictures.crop_and_resize(PICTURES[k] / 255, left, top, width, height)


def test_crops():
    for k, picture in enumerate(trained()):
        np.testing.assert_allclose(cropped(k), picture, rtol=0, atol=1e-4)


def test_colors():
    for k, picture in enumerate(trained(color=0.8)):
        bright, contrast, saturation = 1 + 0.8 * 0.8 * (2 * DRAWN[5:8, k] - 1)
        jittered = view_pictures.jittered(cropped(k), bright, contrast, saturation, 0.2 * 0.8 * (2 * DRAWN[8, k] - 1))
        np.testing.assert_allclose(jittered, picture, rtol=0, atol=2e-3)
    for k, picture in enumerate(trained(gray=1.0)):
        np.testing.assert_allclose(view_pictures.without_color(cropped(k)), picture, rtol=0, atol=1e-4)


def test_blur():
    for k, picture in enumerate(trained(blur=1.0)):
        np.testing.assert_allclose(
            view_pictures.blurred(cropped(k), 0.1 + 1.9 * DRAWN[11, k]), picture, rtol=0, atol=1e-3
        )


def test_edges_turns_and_cutout():
    pixels = torch.from_numpy(PICTURES / 255).permute(0, 3, 1, 2)
    draw = view_effects.ViewDraw(ROWS, seed=4, epoch=2, view=1)
    numbers = draw.numbers(6)
    erased = view_effects.cut_out(pixels, view_effects.ViewEffects(cutout=0.5), draw)
    turned = view_effects.rotated(pixels, torch.tensor([1.0, 2, 3])[:, None, None, None])
    for k, picture in enumerate(PICTURES / 255):
        black = view_pictures.cut_out(picture, 0.5, numbers[4, k], numbers[5, k], np.zeros(3))
        for ours, theirs in (
            (view_pictures.edges(picture), view_effects.sobel(pixels)[k]),
            (np.rot90(picture, k + 1), turned[k]),
            (black, erased[k]),
        ):
            np.testing.assert_allclose(ours, theirs.permute(1, 2, 0).numpy(), rtol=0, atol=1e-9)


def test_noise_has_its_deviation():
    noisy = view_pictures.noisy(np.full((64, 64, 3), 0.5), 0.1, np.random.default_rng(0))
    assert noisy.std() == pytest.approx(0.1, rel=0.03)
    assert view_pictures.mirrored(noisy)[0, 0].tolist() == noisy[0, -1].tolist()
