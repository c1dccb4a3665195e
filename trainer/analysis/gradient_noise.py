"""Noise of the gradient on an anchor by the distance of its negative, exactly."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def direction_variance(distance: Float[np.ndarray, " m"], noise: float, dimension: int) -> Float[np.ndarray, " m"]:
    """Return the total variance of a gradient's direction, from 0 (always the same) to 1 (any).

    All distance losses move an anchor along h / |h|, h being its difference to the negative; with Gaussian noise z of
    deviation `noise` in each direction it is u = (h + z) / |h + z|, and the total variance 1 - |E u|^2 with
    |E u| = t G((n + 1)/2) / G(n/2 + 1) 1F1(1/2; n/2 + 1; -t^2), t = |h| / (noise sqrt 2). The mean of a projected
    normal (Mardia and Jupp, Directional Statistics, 2000, section 9.3.3); the effect: Wu et al., Sampling
    Matters in Deep Embedding Learning, 2017, https://arxiv.org/abs/1706.07567, figure 3.

    Args:
        distance: Between anchor and negative.
        noise: Standard deviation in each direction; 0: none.
    """
    from scipy.special import gammaln, hyp1f1

    distance = np.asarray(distance, np.float64)
    if noise == 0:
        return np.where(distance > 0, 0.0, 1.0)
    t = distance / (noise * np.sqrt(2))
    half = dimension / 2
    mean = t * np.exp(gammaln(half + 0.5) - gammaln(half + 1)) * hyp1f1(0.5, half + 1, -(t**2))
    return 1 - np.clip(mean, 0, 1) ** 2
