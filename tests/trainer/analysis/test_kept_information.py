import math

import numpy as np
import pytest

from trainer.analysis.kept_information import kept_bits
from trainer.losses.noise_schedule import STEPS, cosine_alpha_bar, log_snr

SPREAD, NOISE = 0.6, 0.3
"""Deviation of each pixel, and of what the embedding leaves open about it before the pixel is known."""


def exact_bits() -> float:
    """Return I(x; z) of a pixel x ~ N(0, SPREAD^2) and z = x + N(0, NOISE^2)."""
    return 0.5 * math.log2(1 + SPREAD**2 / NOISE**2)


def levels(count: int) -> list[int]:
    return sorted({round(level) for level in np.linspace(2, STEPS - 2, count)})


def test_the_best_errors_of_a_gaussian_give_its_information_within_one_percent():
    alpha = log_snr(cosine_alpha_bar(STEPS)[levels(60)]).numpy()
    snr = np.exp(alpha)
    left = SPREAD**2 * NOISE**2 / (SPREAD**2 + NOISE**2)
    without, with_it = (snr * v / (1 + snr * v) for v in (SPREAD**2, left))
    assert kept_bits(without, with_it, alpha) == pytest.approx(exact_bits(), rel=0.01)


def test_noised_gaussian_pictures_and_their_best_denoisers_give_it_within_one_percent():
    """Draw pictures, embeddings and noise; both denoisers see the same noise, as the decoder's do.

    What is drawn is made exactly uncorrelated, of unit variance, so that mean squares have no error of sampling.
    """
    rng, n = np.random.default_rng(0), 2_000
    drawn = np.linalg.qr(rng.standard_normal((n, 2 + 60)))[0].T * math.sqrt(n)
    picture = SPREAD * drawn[0]
    told = picture + NOISE * drawn[1]
    known, left = told * SPREAD**2 / (SPREAD**2 + NOISE**2), SPREAD**2 * NOISE**2 / (SPREAD**2 + NOISE**2)
    kept = cosine_alpha_bar(STEPS)[levels(60)]
    errors: dict[bool, list[np.ndarray]] = {False: [], True: []}
    for share, noise in zip(kept.tolist(), drawn[2:]):
        noisy = math.sqrt(share) * picture + math.sqrt(1 - share) * noise
        for with_it in (False, True):
            mean, variance = (known, left) if with_it else (0.0, SPREAD**2)
            gain = math.sqrt(share) * variance / (share * variance + 1 - share)
            best = mean + gain * (noisy - math.sqrt(share) * mean)
            errors[with_it].append((noise - (noisy - math.sqrt(share) * best) / math.sqrt(1 - share)) ** 2)
    bits = kept_bits(np.stack(errors[False]), np.stack(errors[True]), log_snr(kept).numpy())
    assert bits.shape == (n,)
    assert bits.mean() == pytest.approx(exact_bits(), rel=0.01)


def test_it_is_a_loop_over_trapezoids_in_any_order():
    without, with_it, at = np.array([3.0, 2.0, 5.0]), np.array([1.0, 2.0, 1.0]), np.array([0.0, 2.0, -1.0])
    by_hand = ((4 + 2) / 2 * 1 + (2 + 0) / 2 * 2) / 2 / math.log(2)
    assert kept_bits(without, with_it, at) == pytest.approx(by_hand)
