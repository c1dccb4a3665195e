"""Bits per dimension of a diffusion model: its variational bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from trainer.losses import noise_schedule
from trainer.losses.precision import full_precision

VALUES: Final = 256
"""Values of a number in a picture of 8 bits."""

Pictures = Float[Tensor, "n 3 h w"]
Foresee = Callable[[Pictures, Float[Tensor, " n"]], Pictures]
"""Noised pictures and the share of the picture's variance left in each -> the pictures foreseen in them."""


@full_precision
def variational_bound(
    pictures: Pictures,
    foresee: Foresee,
    alpha_bar: Float[Tensor, " levels"],
    *,
    draws: int = 32,
    generator: torch.Generator | None = None,
) -> Float[Tensor, " n"]:
    """Return a bound from above on each picture's negative log-likelihood, in bits a number (three a pixel).

    What the noisiest level still says about the picture, the 8-bit values given the least noisy one, and
    `1/2 integral of snr |x - x_hat|^2 d log snr` between both: the bound in continuous time of Kingma et al.,
    Variational Diffusion Models, 2021, https://arxiv.org/abs/2107.00630, equations 11, 13 and 15. The integral is
    estimated without bias from `draws` noise levels, one from each equal part of the log-SNR.

    Args:
        pictures: Values from -1 to 1 on the grid of 256.
        alpha_bar: Share of the picture's variance from the least noisy level to the noisiest; both above 0 and below 1.
        draws: Levels for each picture.
        generator: Of noise and levels; None: torch's own.
    """
    n, numbers = len(pictures), pictures[0].numel()
    least, most = (alpha_bar[end].to(pictures.dtype) for end in (0, -1))
    nats = _of_last(pictures, most) + _of_values(pictures, least, generator)
    low, high = (float(noise_schedule.log_snr(alpha_bar.double())[end]) for end in (-1, 0))
    for draw in range(draws):
        part = (draw + torch.rand(n, generator=generator, dtype=torch.float64)) / draws
        snr = low + (high - low) * part
        alpha_bar_drawn = snr.sigmoid().to(pictures)
        noisy = noise_schedule.noised(pictures, _noise(pictures, generator), alpha_bar_drawn)
        error = (pictures - foresee(noisy, alpha_bar_drawn)).square().flatten(1).sum(dim=1)
        nats = nats + error * (snr.exp() * (high - low) / 2 / draws).to(error)
    return nats / numbers / math.log(2)


def _of_last(pictures: Pictures, alpha_bar: Float[Tensor, ""]) -> Float[Tensor, " n"]:
    """Return the divergence in nats of the noisiest level from unit Gaussian noise."""
    each = alpha_bar * pictures.square() - alpha_bar - torch.log1p(-alpha_bar)
    return each.flatten(1).sum(dim=1) / 2


def _of_values(
    pictures: Pictures, alpha_bar: Float[Tensor, ""], generator: torch.Generator | None
) -> Float[Tensor, " n"]:
    """Return the nats that values of 8 bits need once the least noisy level is known, each number by itself."""
    noise = _noise(pictures, generator)
    levels = alpha_bar.expand(len(pictures))
    noisy = noise_schedule.noised(pictures, noise, levels)
    grid = torch.linspace(-1, 1, VALUES, dtype=pictures.dtype, device=pictures.device)
    nats = torch.zeros(len(pictures), dtype=pictures.dtype, device=pictures.device)
    for row, (seen, true) in enumerate(zip(noisy.flatten(1), pictures.flatten(1), strict=True)):
        apart = -(seen[:, None] - alpha_bar.sqrt() * grid).square() / (2 * (1 - alpha_bar))
        target = ((true + 1) * (VALUES - 1) / 2).round().long()
        nats[row] = (torch.logsumexp(apart, dim=1) - apart.gather(1, target[:, None])[:, 0]).sum()
    return nats


def _noise(like: Pictures, generator: torch.Generator | None) -> Pictures:
    return torch.randn(like.shape, generator=generator, dtype=like.dtype).to(like.device)
