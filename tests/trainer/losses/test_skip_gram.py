import math

import pytest
import torch

from trainer.losses import skip_gram


def naive(center, context, negatives) -> float:
    total = 0.0
    for h, pos, negs in zip(center.tolist(), context.tolist(), negatives.tolist(), strict=True):
        total += math.log1p(math.exp(-sum(a * b for a, b in zip(h, pos, strict=True))))
        for neg in negs:
            total += math.log1p(math.exp(sum(a * b for a, b in zip(h, neg, strict=True))))
    return total / len(center)


def vectors(*shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_equals_double_loop():
    arguments = vectors(6, 4, seed=0), vectors(6, 4, seed=1), vectors(6, 5, 4, seed=2)
    assert skip_gram(*arguments).item() == pytest.approx(naive(*arguments), abs=1e-12)


def test_gradient():
    arguments = [vectors(3, 4, seed=0), vectors(3, 4, seed=1), vectors(3, 2, 4, seed=2)]
    assert torch.autograd.gradcheck(skip_gram, [a.requires_grad_() for a in arguments])


def test_untrained_vectors_cost_one_bit_a_question():
    zero = torch.zeros(2, 4, dtype=torch.float64)
    assert skip_gram(zero, zero, torch.zeros(2, 5, 4).double()).item() == pytest.approx(6 * math.log(2))
