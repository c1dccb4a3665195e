"""The objective of a diffusion model: the velocity of noised pictures, levels weighted by min-SNR."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from trainer.losses.precision import full_precision


@full_precision
def denoising(
    prediction: Float[Tensor, "n ..."],
    velocity: Float[Tensor, "n ..."],
    alpha_bar: Float[Tensor, " n"],
    *,
    most_snr: float = 5.0,
) -> Float[Tensor, ""]:
    """Return the mean over pictures of `w(t) |v_hat - v|^2 / pixels` with `w = min(snr, most_snr) / (snr + 1)`.

    With these weights the error of the picture itself counts `min(snr, most_snr)`: levels with little noise, where
    anything foresees the picture, do not take over. Section 3.4 of Hang et al., Efficient Diffusion Training via
    Min-SNR Weighting Strategy, 2023, https://arxiv.org/abs/2303.09556

    Args:
        velocity: As `noise_schedule.velocity_of` gives it.
        alpha_bar: Of each picture's level; below 1.
        most_snr: Largest weight; infinity weighs every picture error by its signal to noise.
    """
    snr = alpha_bar.to(prediction.dtype) / (1 - alpha_bar).to(prediction.dtype)
    weight = snr.clamp(max=most_snr) / (snr + 1)
    return (weight * (prediction - velocity).square().flatten(1).mean(dim=1)).mean()


def errors_by_level(prediction: Float[Tensor, "n ..."], velocity: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
    """Return each picture's mean squared error of the velocity, unweighted: `|v_hat - v|^2 / pixels`."""
    return torch.square(prediction - velocity).flatten(1).mean(dim=1)
