import math

import pytest
import torch

from trainer.losses import noise_schedule, variational_bound

ALPHA_BAR = noise_schedule.cosine_alpha_bar(noise_schedule.STEPS)[1:-1]
GRID = torch.linspace(-1, 1, 256, dtype=torch.float64)


def pictures(n: int, seed: int = 0) -> torch.Tensor:
    """Return pictures whose numbers are independent, each value equally likely: exactly 8 bits a number."""
    return GRID[torch.randint(0, 256, (n, 3, 4, 4), generator=torch.Generator().manual_seed(seed))]


def best(noisy: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Return the mean of the posterior over the 256 values, which no model foresees better."""
    kept = kept.view(-1, 1, 1, 1, 1)
    scores = -(noisy[..., None] - kept.sqrt() * GRID).square() / (2 * (1 - kept))
    return (scores.softmax(dim=-1) * GRID).sum(dim=-1)


def test_the_best_model_of_known_data_has_their_entropy():
    """8 bits exactly; a bound is above, by what the independent steps of the reverse lose."""
    found = variational_bound(pictures(64), best, ALPHA_BAR, draws=200, generator=torch.Generator().manual_seed(1))
    error = float(found.std() / math.sqrt(len(found)))
    assert found.mean() > 8 - 3 * error
    assert found.mean() < 8.05 + 3 * error
    assert error < 0.05


def test_a_worse_model_has_a_larger_bound():
    def bounds(foresee):
        generator = torch.Generator().manual_seed(1)
        return variational_bound(pictures(16), foresee, ALPHA_BAR, draws=50, generator=generator).mean()

    assert bounds(lambda noisy, kept: torch.zeros_like(noisy)) > bounds(best) + 1


def test_every_term_equals_a_loop():
    alpha_bar = torch.tensor([0.9, 0.6, 0.4], dtype=torch.float64)
    picture = pictures(2)[:, :, :2, :2]
    found = variational_bound(
        picture, lambda noisy, kept: noisy / 2, alpha_bar, draws=2, generator=torch.Generator().manual_seed(3)
    )
    chance = torch.Generator().manual_seed(3)
    near = torch.randn(picture.shape, generator=chance, dtype=torch.float64)
    drawn = []
    for _ in range(2):
        parts = torch.rand(2, generator=chance, dtype=torch.float64).tolist()
        drawn.append((parts, torch.randn(picture.shape, generator=chance, dtype=torch.float64)))
    low, high = math.log(0.4 / 0.6), math.log(9)
    for row in range(2):
        nats = 0.0
        for place, x in enumerate(picture[row].flatten().tolist()):
            seen = math.sqrt(0.9) * x + math.sqrt(0.1) * float(near[row].flatten()[place])
            each = [math.exp(-((seen - math.sqrt(0.9) * float(v)) ** 2) / 0.2) for v in GRID]
            nats -= math.log(math.exp(-((seen - math.sqrt(0.9) * x) ** 2) / 0.2) / sum(each))
            nats += (0.6 + 0.4 * x * x - 1 - math.log(0.6)) / 2
            for draw, (parts, noise) in enumerate(drawn):
                snr = math.exp(low + (high - low) * (draw + parts[row]) / 2)
                kept = snr / (1 + snr)
                noisy = math.sqrt(kept) * x + math.sqrt(1 - kept) * float(noise[row].flatten()[place])
                nats += snr * (x - noisy / 2) ** 2 * (high - low) / 2 / 2
        assert float(found[row]) == pytest.approx(nats / 12 / math.log(2), rel=1e-9)
