"""The cosine schedule and the identities of pictures, noise and velocity, against loops over plain floats."""

import itertools
import math

import pytest
import torch

from trainer.losses import noise_schedule
from trainer.losses.noise_schedule import STEPS, cosine_alpha_bar

ALPHA_BAR = cosine_alpha_bar(STEPS)
LEVELS = torch.tensor([1, 17, 250, 500, 750, 999])


def drawn(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(len(LEVELS), 2, 3, generator=generator, dtype=torch.float64) for _ in range(2))


def test_the_schedule_is_that_of_the_paper():
    kept = [1.0]
    for t in range(1, STEPS + 1):
        now, before = (math.cos((u / STEPS + 0.008) / 1.008 * math.pi / 2) ** 2 for u in (t, t - 1))
        kept.append(kept[-1] * (1 - min(1 - now / before, 0.999)))
    assert ALPHA_BAR.tolist() == pytest.approx(kept, rel=1e-9, abs=1e-15)
    assert (ALPHA_BAR.diff() < 0).all()


def test_the_forward_kernel_composes_its_own_small_steps():
    """abar_t is the product of the steps: noising in two steps gives the mean and variance of noising in one."""
    mean, variance = 1.0, 0.0
    for t in range(1, 301):
        step = (ALPHA_BAR[t] / ALPHA_BAR[t - 1]).item()
        mean, variance = math.sqrt(step) * mean, step * variance + 1 - step
    picture, noise = torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    assert noise_schedule.noised(picture, noise, ALPHA_BAR[300:301]).item() == pytest.approx(mean, abs=1e-12)
    assert 1 - ALPHA_BAR[300].item() == pytest.approx(variance, abs=1e-12)


def test_noised_pictures_and_velocities_equal_a_loop():
    (picture, noise), kept = drawn(), ALPHA_BAR[LEVELS]
    noisy = noise_schedule.noised(picture, noise, kept)
    velocity = noise_schedule.velocity_of(picture, noise, kept)
    for i in range(len(LEVELS)):
        a, b = math.sqrt(kept[i].item()), math.sqrt(1 - kept[i].item())
        for j in range(2):
            for k in range(3):
                x, e = picture[i, j, k].item(), noise[i, j, k].item()
                assert noisy[i, j, k].item() == pytest.approx(a * x + b * e, abs=1e-14)
                assert velocity[i, j, k].item() == pytest.approx(a * e - b * x, abs=1e-14)


def test_each_of_picture_noise_and_velocity_tells_the_others():
    (picture, noise), kept = drawn(), ALPHA_BAR[LEVELS]
    noisy = noise_schedule.noised(picture, noise, kept)
    velocity = noise_schedule.velocity_of(picture, noise, kept)
    assert torch.allclose(noise_schedule.picture_from_velocity(noisy, velocity, kept), picture, atol=1e-12)
    assert torch.allclose(noise_schedule.noise_from_velocity(noisy, velocity, kept), noise, atol=1e-12)
    assert torch.allclose(noise_schedule.noise_from_picture(noisy, picture, kept), noise, atol=1e-9)


def test_a_ddim_step_with_the_true_picture_stays_on_its_path():
    (picture, noise), kept, earlier = drawn(), ALPHA_BAR[LEVELS], ALPHA_BAR[LEVELS // 2]
    noisy = noise_schedule.noised(picture, noise, kept)
    stepped = noise_schedule.ddim_step(noisy, picture, kept, earlier)
    for i in range(len(LEVELS)):
        s = earlier[i].item()
        loop = [
            math.sqrt(s) * x + math.sqrt(1 - s) * (y - math.sqrt(kept[i].item()) * x) / math.sqrt(1 - kept[i].item())
            for x, y in zip(picture[i].flatten().tolist(), noisy[i].flatten().tolist())
        ]
        assert stepped[i].flatten().tolist() == pytest.approx(loop, abs=1e-12)


@pytest.mark.parametrize("taken", [8, 25, 100])
def test_ddim_samples_a_gaussian_whose_best_denoiser_is_known(taken: int):
    """With x_0 ~ N(m, s^2) the best guess is linear, and many steps turn unit noise into that Gaussian."""
    mean, deviation = 0.3, 0.5
    start = torch.linspace(-2, 2, 9, dtype=torch.float64).view(-1, 1)
    levels, now = noise_schedule.sampling_levels(STEPS, taken), start
    for t, s in itertools.pairwise(levels):
        kept = ALPHA_BAR[t].expand(9)
        gain = kept.sqrt() * deviation**2 / (kept * deviation**2 + 1 - kept)
        foreseen = mean + gain.view(-1, 1) * (now - kept.sqrt().view(-1, 1) * mean)
        now = noise_schedule.ddim_step(now, foreseen, kept, ALPHA_BAR[s].expand(9))
    assert torch.allclose(now, mean + deviation * start, atol=3.2 / taken)


def test_sampling_begins_at_the_last_level_with_a_picture_and_ends_without_noise():
    levels = noise_schedule.sampling_levels(STEPS, 25)
    assert (levels[0], levels[-1], len(levels)) == (STEPS - 1, 0, 26)
    assert all(a > b for a, b in itertools.pairwise(levels))


def test_log_snr_equals_the_plain_formula():
    kept = ALPHA_BAR[LEVELS]
    loop = [math.log(a / (1 - a)) for a in kept.tolist()]
    assert noise_schedule.log_snr(kept).tolist() == pytest.approx(loop, abs=1e-9)


def test_levels_are_found_again_and_between_two_the_log_snr_is_linear():
    schedule = noise_schedule.cosine_alpha_bar(noise_schedule.STEPS)
    whole = torch.tensor([1, 2, 500, 998, 999])
    assert torch.allclose(noise_schedule.level_of(schedule[whole], schedule), whole.double(), atol=1e-9)
    logs = noise_schedule.log_snr(schedule)
    between = torch.sigmoid(0.75 * logs[7:8] + 0.25 * logs[8:9])
    assert noise_schedule.level_of(between, schedule).item() == pytest.approx(7.25, abs=1e-9)
