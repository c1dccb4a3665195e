import math

import numpy as np
import pytest
import torch
from scipy import stats

from trainer.analysis.diffusion import STEPS, cosine_alpha_bar, noised, smoothed_density
from trainer.losses import noise_schedule


def test_the_schedule_is_that_of_decoders():
    np.testing.assert_allclose(cosine_alpha_bar(), noise_schedule.cosine_alpha_bar(STEPS).numpy(), rtol=1e-12)
    picture, noise = np.random.default_rng(0).standard_normal((2, 4, 4, 3))
    rows = (torch.from_numpy(values)[None] for values in (picture, noise))
    trained = noise_schedule.noised(*rows, torch.tensor([0.3], dtype=torch.float64))[0]
    np.testing.assert_allclose(noised(picture, noise, 0.3), trained.numpy(), rtol=1e-12)


@pytest.mark.parametrize("alpha_bar", [1.0, 0.7, 0.2, 0.0])
def test_the_smoothed_density_is_that_of_noised_draws(alpha_bar: float):
    generator = np.random.default_rng(1)
    centers, widths, weights = np.array([-1.5, 1.0]), np.array([0.3, 0.6]), np.array([0.25, 0.75])
    x = np.linspace(-4, 4, 9)
    density = smoothed_density(x, centers, widths, weights, alpha_bar)
    for at, value in zip(x, density, strict=True):
        parts = [
            weight * stats.norm.pdf(at, math.sqrt(alpha_bar) * mean, math.sqrt(alpha_bar * width**2 + 1 - alpha_bar))
            for mean, width, weight in zip(centers, widths, weights, strict=True)
        ]
        assert value == pytest.approx(sum(parts), rel=1e-12)
    mode = generator.choice(2, 200_000, p=weights)
    start = centers[mode] + widths[mode] * generator.standard_normal(len(mode))
    drawn = noised(start, generator.standard_normal(len(mode)), alpha_bar)
    counts, edges = np.histogram(drawn, 40, (-4, 4), density=True)
    middle = smoothed_density((edges[1:] + edges[:-1]) / 2, centers, widths, weights, alpha_bar)
    assert counts == pytest.approx(middle, abs=0.03)
