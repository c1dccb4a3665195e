import math

import pytest
import torch

from trainer.losses import autoregressive


def naive(logits, values):
    """Return bits a number by a double loop."""
    found = []
    for picture, told in zip(values.tolist(), logits.tolist(), strict=True):
        bits = []
        for color, plane in enumerate(picture):
            for y, row in enumerate(plane):
                for x, value in enumerate(row):
                    scores = [told[color][level][y][x] for level in range(len(told[color]))]
                    bits.append(math.log2(sum(math.exp(s) for s in scores)) - scores[value] / math.log(2))
        found.append(sum(bits) / len(bits))
    return torch.tensor(found, dtype=torch.float64)


def test_equals_a_double_loop():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 3, 5, 2, 4, generator=generator, dtype=torch.float64)
    values = torch.randint(0, 5, (3, 3, 2, 4), generator=generator)
    assert torch.allclose(autoregressive(logits, values), naive(logits, values), atol=1e-12)


def test_equally_likely_values_cost_the_logarithm_of_their_number():
    values = torch.randint(0, 256, (2, 3, 4, 4))
    assert autoregressive(torch.zeros(2, 3, 256, 4, 4), values).tolist() == pytest.approx([8.0, 8.0], abs=1e-6)


def test_gradient():
    logits = torch.randn(2, 3, 4, 2, 2, dtype=torch.float64, requires_grad=True)
    values = torch.randint(0, 4, (2, 3, 2, 2))
    assert torch.autograd.gradcheck(lambda one: autoregressive(one, values), logits)
