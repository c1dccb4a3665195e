"""The networks of a decoder: sizes, and which inputs they heed."""

import pytest
import torch
import torch.nn.functional as F

from trainer.models.decoder import Denoiser, DiffusionPrior, MeanPicture, ResidualPrior, parameters_of


def shaken(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module without zero weights, so that every input has an effect."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return module.eval()


def unit(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return F.normalize(torch.randn(n, d, generator=torch.Generator().manual_seed(seed)), dim=1)


def test_the_default_decoder_has_at_most_two_and_a_half_million_parameters():
    assert parameters_of(MeanPicture(128, 64, 32)) + parameters_of(Denoiser(128, 32)) <= 2_500_000


@pytest.mark.parametrize("size", [16, 32, 64, 128])
def test_pictures_have_the_size_that_was_asked_for(size):
    assert MeanPicture(12, size, 8)(unit(3, 12)).shape == (3, 3, size, size)
    noisy = torch.randn(3, 3, size, size)
    level, kept = torch.full((3,), 0.5), torch.zeros(3, dtype=torch.bool)
    assert Denoiser(12, 8)(noisy, level, unit(3, 12), kept).shape == noisy.shape


def test_a_dropped_embedding_has_no_effect_and_any_other_has():
    net, noisy, level = shaken(Denoiser(12, 8)), torch.randn(2, 3, 16, 16), torch.full((2,), 0.5)
    kept, dropped = torch.zeros(2, dtype=torch.bool), torch.ones(2, dtype=torch.bool)
    one, other = unit(2, 12), unit(2, 12, seed=1)
    assert torch.equal(net(noisy, level, one, dropped), net(noisy, level, other, dropped))
    assert (net(noisy, level, one, kept) - net(noisy, level, other, kept)).abs().max() > 1e-4


def test_the_noise_level_matters():
    net, noisy, kept = shaken(Denoiser(12, 8)), torch.randn(2, 3, 16, 16), torch.zeros(2, dtype=torch.bool)
    low, high = (net(noisy, torch.full((2,), level), unit(2, 12), kept) for level in (0.1, 0.9))
    assert (low - high).abs().max() > 1e-4


def test_the_mean_picture_learns_the_mean_of_what_an_embedding_stands_for():
    """Two embeddings, two pictures each: the best answer to squared error is the mean of the two."""
    torch.manual_seed(0)
    net, rows = MeanPicture(4, 16, 8), torch.eye(4)[[0, 0, 1, 1]]
    shades = torch.tensor([-0.8, 0.4, 0.0, 0.6])
    pictures = shades.view(4, 1, 1, 1).expand(4, 3, 16, 16)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(150):
        optimizer.zero_grad()
        F.mse_loss(net(rows), pictures).backward()
        optimizer.step()
    found = net(torch.eye(4)[:2]).mean(dim=(1, 2, 3))
    assert found.tolist() == pytest.approx([-0.2, 0.3], abs=0.06)


def test_the_priors_read_the_text_and_give_rows_of_the_embedding():
    prior, diffusion = shaken(ResidualPrior(12, 16)), shaken(DiffusionPrior(12, 16))
    text, other, noisy, level = unit(3, 12), unit(3, 12, seed=1), torch.randn(3, 12), torch.full((3,), 0.5)
    assert prior(text).shape == diffusion(noisy, level, text).shape == (3, 12)
    assert (prior(text) - prior(other)).abs().max() > 1e-4
    assert (diffusion(noisy, level, text) - diffusion(noisy, level, other)).abs().max() > 1e-4
