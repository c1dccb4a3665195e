"""Occlusion against a naive loop, the gradient against finite differences, in float64."""

import numpy as np
import pytest
import torch
from torch import nn

from trainer.inference.attribution import COVER, edges, gradient, occlusion, pixel_gradient


@pytest.mark.parametrize(("size", "grid"), [(12, 4), (13, 5)])
def test_occlusion_is_the_mean_fall_of_the_patches_that_cover_a_cell(size: int, grid: int) -> None:
    rng = np.random.default_rng(0)
    image, weight = rng.integers(0, 256, (size, size, 3), dtype=np.uint8), rng.normal(size=(size, size, 3))

    def score(images: np.ndarray) -> np.ndarray:
        return np.tanh((images * weight).sum(axis=(1, 2, 3)) / 1e3)

    told: list[float] = []
    found = occlusion(image, score, grid=grid, progress=lambda share, _note: told.append(share))
    at, mean = edges(size, grid), np.rint(image.reshape(-1, 3).mean(axis=0))
    for row in range(grid):
        for column in range(grid):
            falls = []
            for top in range(row - COVER + 1, row + 1):
                for left in range(column - COVER + 1, column + 1):
                    covered = image.copy()
                    for y in range(at[max(top, 0)], at[min(top + COVER, grid)]):
                        for x in range(at[max(left, 0)], at[min(left + COVER, grid)]):
                            covered[y, x] = mean
                    falls.append(float(score(image[None])[0] - score(covered[None])[0]))
            assert found[row, column] == pytest.approx(np.mean(falls), abs=1e-12)
    assert told[-1] == 1.0


@pytest.fixture
def tiny() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 36, 1)).double()


def test_the_gradient_is_that_of_finite_differences(tiny: nn.Module) -> None:
    pixels = torch.rand(3, 8, 8, dtype=torch.float64)
    found = pixel_gradient(pixels, lambda images: tiny(images)[:, 0])
    step = 1e-6
    for place in [(0, 0, 0), (1, 3, 4), (2, 7, 7), (0, 5, 2)]:
        up, down = pixels.clone(), pixels.clone()
        up[place] += step
        down[place] -= step
        with torch.no_grad():
            slope = (tiny(up[None]) - tiny(down[None])).item() / (2 * step)
        assert found[place].item() == pytest.approx(slope, rel=1e-6, abs=1e-9)


@pytest.mark.slow
def test_the_cells_of_the_gradient_add_up_to_what_the_image_adds(tiny: nn.Module) -> None:
    pixels = torch.rand(3, 8, 8, dtype=torch.float64)
    found = gradient(pixels, lambda images: tiny(images)[:, 0], grid=3, steps=400)
    blank = pixels.mean(dim=(1, 2), keepdim=True).expand_as(pixels)
    with torch.no_grad():
        whole = (tiny(pixels[None]) - tiny(blank[None])).item()
    assert found.shape == (3, 3)
    assert found.sum() == pytest.approx(whole, abs=1e-5)
    assert np.abs(found).max() > 1e-4
