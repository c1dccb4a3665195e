import math

import pytest
import torch

from trainer.losses import denoising
from trainer.losses.denoising import errors_by_level


def naive(prediction, velocity, alpha_bar, most_snr) -> float:
    total = 0.0
    for guess, true, kept in zip(prediction.tolist(), velocity.tolist(), alpha_bar.tolist()):
        snr = kept / (1 - kept)
        error = sum((p - q) ** 2 for row, other in zip(guess, true) for p, q in zip(row, other))
        total += min(snr, most_snr) / (snr + 1) * error / (len(guess) * len(guess[0]))
    return total / len(alpha_bar)


@pytest.fixture
def drawn():
    generator = torch.Generator().manual_seed(1)
    prediction, velocity = (torch.randn(6, 3, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    return prediction, velocity, torch.tensor([0.001, 0.2, 0.5, 0.7, 0.9, 0.9999], dtype=torch.float64)


@pytest.mark.parametrize("most_snr", [1.0, 5.0, math.inf])
def test_equals_loop(drawn, most_snr):
    assert denoising(*drawn, most_snr=most_snr).item() == pytest.approx(naive(*drawn, most_snr), abs=1e-12)


def test_gradient(drawn):
    prediction, velocity, alpha_bar = drawn
    loss = lambda guess: denoising(guess, velocity, alpha_bar)  # noqa: E731
    assert torch.autograd.gradcheck(loss, (prediction.requires_grad_(),))


def test_without_a_limit_it_is_the_pictures_error_by_signal_to_noise(drawn):
    """|v_hat - v|^2 = (snr + 1) |x_hat - x|^2, so that the weight of the picture's error is snr itself."""
    prediction, velocity, alpha_bar = drawn
    snr = alpha_bar / (1 - alpha_bar)
    picture_error = errors_by_level(prediction, velocity) * (1 - alpha_bar)
    assert denoising(*drawn, most_snr=math.inf).item() == pytest.approx((snr * picture_error).mean().item(), rel=1e-12)


def test_half_precision_is_widened(drawn):
    prediction, velocity, alpha_bar = drawn
    half = denoising(prediction.bfloat16(), velocity.bfloat16(), alpha_bar)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(
        naive(prediction.bfloat16().double(), velocity.bfloat16().double(), alpha_bar, 5.0), rel=1e-5
    )
