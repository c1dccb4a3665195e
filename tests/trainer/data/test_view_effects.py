import numpy as np
import pytest
import torch
from scipy import ndimage

from trainer.data.view_effects import LUMA, ViewDraw, ViewEffects, changed, cut_out, rotated, sobel
from trainer.data.views import ViewStrength, augmented_view

PIXELS = torch.from_numpy(np.random.default_rng(0).random((4, 3, 8, 8)))
DRAW = ViewDraw(np.arange(4), seed=3, epoch=1, view=0)
PLAIN = {"smallest_crop": 1.0, "color": 0.0, "gray": 0.0, "blur": 0.0, "flip": False}


def test_quarter_turns_are_numpys():
    quarters = torch.tensor([0.0, 1, 2, 3])[:, None, None, None]
    for k, picture in enumerate(rotated(PIXELS, quarters)):
        np.testing.assert_array_equal(picture, np.rot90(PIXELS[k].numpy(), k, (1, 2)))


def test_edges_are_scipys():
    for k, edges in enumerate(sobel(PIXELS).numpy()):
        gray = np.tensordot(LUMA, PIXELS[k].numpy(), 1)
        length = np.hypot(ndimage.sobel(gray, 0, mode="nearest"), ndimage.sobel(gray, 1, mode="nearest")) / 4
        assert edges[0] == pytest.approx(np.minimum(length, 1), abs=1e-12)
        np.testing.assert_array_equal(edges[0], edges[2])


def test_noise_is_normal_and_an_image_has_its_own():
    gray = torch.full((64, 3, 16, 16), 0.5)
    draw = ViewDraw(np.arange(64), seed=0, epoch=0, view=0)
    noise = (changed(gray, ViewEffects(noise=0.1), draw) - gray).numpy()
    assert noise.mean() == pytest.approx(0, abs=0.002)
    assert noise.std() == pytest.approx(0.1, rel=0.02)
    assert np.mean(np.abs(noise) > 0.196) == pytest.approx(0.05, abs=0.005)
    alone = changed(gray[:1], ViewEffects(noise=0.1), ViewDraw(np.array([5]), seed=0, epoch=0, view=0))
    np.testing.assert_array_equal(noise[5], (alone - gray[:1])[0])


def test_cutout_is_a_square_of_the_mean_color():
    side, numbers = 0.5, DRAW.numbers(6)
    erased = cut_out(PIXELS, ViewEffects(cutout=side), DRAW).numpy() == 0
    for k in range(4):
        for row in range(8):
            for column in range(8):
                inside = max(abs(row - 8 * numbers[4, k]), abs(column - 8 * numbers[5, k])) < 8 * side / 2
                assert erased[k, :, row, column].all() == inside


@pytest.mark.parametrize("name", ["rotate", "sobel"])
def test_a_share_of_the_views_is_changed(name: str):
    pixels, draw = PIXELS.repeat(250, 1, 1, 1), ViewDraw(np.arange(1000), seed=0, epoch=0, view=1)
    view = changed(pixels, ViewEffects(**{name: 0.3}), draw)
    assert (view != pixels).flatten(1).any(dim=1).double().mean() == pytest.approx(0.3, abs=0.05)
    assert view.min() >= 0
    assert view.max() <= 1


def test_views_without_effects_stay_what_they_were_and_others_resume():
    images = torch.from_numpy(np.random.default_rng(1).integers(0, 256, (4, 16, 16, 3), dtype=np.uint8))
    strong = ViewStrength(**PLAIN, effects=ViewEffects(0.5, 0.5, 0.1, 0.4))
    view = augmented_view(images, np.arange(4), strong, seed=1, epoch=2, view=1)
    again = augmented_view(images[2:3], np.array([2]), strong, seed=1, epoch=2, view=1)
    assert torch.allclose(view[2], again[0], atol=1e-5)
    plain = augmented_view(images, np.arange(4), ViewStrength(**PLAIN), seed=1, epoch=2, view=1)
    none = augmented_view(images, np.arange(4), ViewStrength(**PLAIN, effects=ViewEffects()), seed=1, epoch=2, view=1)
    assert torch.equal(plain, none)
    assert not torch.allclose(plain, view, atol=0.1)
