"""How much two denoisers differ: the information about a picture that an embedding adds, in bits."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float


def kept_bits(
    without: Float[np.ndarray, "levels ..."],
    with_it: Float[np.ndarray, "levels ..."],
    log_snr: Float[np.ndarray, " levels"],
) -> np.ndarray:
    """Return half the integral over log-SNR of the fall of the noise's squared error, in bits.

    `I(x; z) = 1/2 int E|eps - eps_hat(x_t)|^2 - E|eps - eps_hat(x_t, z)|^2 d log snr`, by trapezoids: Kong, Brekelmans
    and Ver Steeg, Information-Theoretic Diffusion, 2023, https://arxiv.org/abs/2302.03792. With denoisers that are not
    the best ones this is no bound on either side; differences between equal decoders are what it is for.

    Args:
        without: Squared errors without the embedding, summed or for each pixel; row k at the level k.
        with_it: The same with it.
        log_snr: Of each level, rising or falling.
    """
    order = np.argsort(log_snr)
    gap = (np.asarray(without, np.float64) - np.asarray(with_it, np.float64))[order]
    return np.asarray(np.trapezoid(gap, np.asarray(log_snr, np.float64)[order], axis=0)) / (2 * math.log(2))
