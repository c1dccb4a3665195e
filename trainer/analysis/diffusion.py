"""The forward process of diffusion: how much of a picture is left at a level, and densities smoothed by its noise."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from jaxtyping import Float

STEPS: Final = 1_000
"""Noise levels between a picture (level 0) and nothing but noise, as decoders are trained with."""
_OFFSET: Final = 0.008
_MOST_BETA: Final = 0.999


def cosine_alpha_bar(steps: int = STEPS) -> Float[np.ndarray, " levels"]:
    """Return the share of the variance left at each level, as `trainer.losses.noise_schedule.cosine_alpha_bar`.

    Equation 17 of Nichol and Dhariwal, Improved Denoising Diffusion Probabilistic Models, 2021,
    https://arxiv.org/abs/2102.09672
    """
    level = np.arange(steps + 1) / steps
    continuous = np.cos((level + _OFFSET) / (1 + _OFFSET) * math.pi / 2) ** 2
    ratios = np.maximum(continuous[1:] / continuous[:-1], 1 - _MOST_BETA)
    return np.concatenate([[1.0], ratios.cumprod()])


def noised(picture: Float[np.ndarray, ...], noise: Float[np.ndarray, ...], alpha_bar: float) -> Float[np.ndarray, ...]:
    """Return a draw of `q(x_t | x_0) = N(sqrt(abar) x_0, (1 - abar) I)`, given its unit noise.

    Equation 4 of Ho, Jain and Abbeel, Denoising Diffusion Probabilistic Models, 2020, https://arxiv.org/abs/2006.11239
    """
    return math.sqrt(alpha_bar) * picture + math.sqrt(1 - alpha_bar) * noise


def smoothed_density(
    x: Float[np.ndarray, " m"],
    centers: Float[np.ndarray, " k"],
    widths: Float[np.ndarray, " k"],
    weights: Float[np.ndarray, " k"],
    alpha_bar: float,
) -> Float[np.ndarray, " m"]:
    """Return the density of `x_t` where `x_0` is of a mixture of Gaussians: the mixture, shrunk and widened.

    `q(x_t) = sum_k w_k N(sqrt(abar) mu_k, abar s_k^2 + 1 - abar)`.

    Args:
        x: Where.
        centers: Mean of each Gaussian.
        widths: Its standard deviation.
        weights: Its share; they sum to 1.
        alpha_bar: Share of the variance left.
    """
    variance = alpha_bar * widths**2 + 1 - alpha_bar
    square = (x[:, None] - math.sqrt(alpha_bar) * centers) ** 2 / variance
    return (weights * np.exp(-square / 2) / np.sqrt(2 * math.pi * variance)).sum(axis=1)
