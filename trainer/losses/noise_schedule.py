"""The noise of a diffusion model: its cosine schedule, and what picture, noise and velocity tell of each other.

A noised picture is `x_t = sqrt(abar) x_0 + sqrt(1 - abar) eps` with unit Gaussian `eps`. Its velocity is
`v = sqrt(abar) eps - sqrt(1 - abar) x_0` (Salimans and Ho, Progressive Distillation for Fast Sampling of Diffusion
Models, 2022, https://arxiv.org/abs/2202.00512): `x_t` and `v` are `x_0` and `eps`, rotated.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

STEPS: Final = 1_000
"""Noise levels between a picture (level 0) and nothing but noise."""
_OFFSET: Final = 0.008
"""Of the paper: without it the first levels would hold less noise than a pixel's rounding."""
_MOST_BETA: Final = 0.999

Rows = Float[Tensor, "n ..."]
Levels = Float[Tensor, " n"]


def cosine_alpha_bar(steps: int) -> Float[Tensor, " levels"]:
    """Return the share of the picture's variance left at each of the levels 0 to `steps`, in float64; falls from 1.

    Equation 17 of Nichol and Dhariwal, Improved Denoising Diffusion Probabilistic Models, 2021,
    https://arxiv.org/abs/2102.09672
    """
    level = torch.arange(steps + 1, dtype=torch.float64) / steps
    continuous = torch.cos((level + _OFFSET) / (1 + _OFFSET) * math.pi / 2) ** 2
    ratios = (continuous[1:] / continuous[:-1]).clamp(min=1 - _MOST_BETA)
    return torch.cat((torch.ones(1, dtype=torch.float64), ratios.cumprod(0)))


def log_snr(alpha_bar: Levels) -> Levels:
    """Return the logarithm of signal to noise, `log abar / (1 - abar)`; infinite without noise."""
    return torch.log(alpha_bar) - torch.log1p(-alpha_bar)


def level_of(alpha_bar: Levels, schedule: Float[Tensor, " levels"]) -> Levels:
    """Return the level at which a schedule has these shares, between two levels linear in the log-SNR.

    Args:
        alpha_bar: Shares within those of the levels 1 to T - 1.
        schedule: As `cosine_alpha_bar` gives it.
    """
    table = log_snr(schedule[1:-1].double())
    target = log_snr(alpha_bar.double())
    right = torch.searchsorted(-table, -target).clamp(1, len(table) - 1)
    share = (table[right - 1] - target) / (table[right - 1] - table[right])
    return (right + share).to(alpha_bar)


def noised(picture: Rows, noise: Rows, alpha_bar: Levels) -> Rows:
    """Return `x_t`: the forward kernel."""
    return _of(alpha_bar, picture).sqrt() * picture + (1 - _of(alpha_bar, picture)).sqrt() * noise


def velocity_of(picture: Rows, noise: Rows, alpha_bar: Levels) -> Rows:
    """Return what a network with v-prediction learns to say about `x_t`."""
    return _of(alpha_bar, picture).sqrt() * noise - (1 - _of(alpha_bar, picture)).sqrt() * picture


def picture_from_velocity(noisy: Rows, velocity: Rows, alpha_bar: Levels) -> Rows:
    """Return `x_0` as a velocity says."""
    return _of(alpha_bar, noisy).sqrt() * noisy - (1 - _of(alpha_bar, noisy)).sqrt() * velocity


def noise_from_velocity(noisy: Rows, velocity: Rows, alpha_bar: Levels) -> Rows:
    """Return `eps` as a velocity says."""
    return (1 - _of(alpha_bar, noisy)).sqrt() * noisy + _of(alpha_bar, noisy).sqrt() * velocity


def noise_from_picture(noisy: Rows, picture: Rows, alpha_bar: Levels) -> Rows:
    """Return the `eps` that leads from a picture to `x_t`; the level must hold some noise."""
    return (noisy - _of(alpha_bar, noisy).sqrt() * picture) / (1 - _of(alpha_bar, noisy)).sqrt()


def ddim_step(noisy: Rows, picture: Rows, alpha_bar: Levels, earlier: Levels) -> Rows:
    """Return `x_s` from `x_t` and the picture foreseen in it, without new noise.

    Equation 12 of Song, Meng and Ermon, Denoising Diffusion Implicit Models, 2021, https://arxiv.org/abs/2010.02502,
    with sigma 0.

    Args:
        noisy: `x_t`.
        picture: The foreseen `x_0`.
        alpha_bar: Of t.
        earlier: Of s; larger.
    """
    return noised(picture, noise_from_picture(noisy, picture, alpha_bar), earlier)


def sampling_levels(steps: int, taken: int) -> list[int]:
    """Return the levels that `taken` DDIM steps visit: from the last before `steps` down to 0, evenly spaced."""
    # Level `steps` itself has no picture left, so that its velocity says nothing about one.
    return [round((steps - 1) * (taken - step) / taken) for step in range(taken + 1)]


def _of(levels: Levels, like: Rows) -> Float[Tensor, "n ..."]:
    return levels.to(like.dtype).view(-1, *[1] * (like.ndim - 1))
