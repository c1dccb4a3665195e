import math

import pytest
import torch

from trainer.losses import one_vs_all_logistic


def naive(logits, bag) -> float:
    """Compute the one-versus-all logistic loss term by term."""
    total = 0.0
    for k in range(len(logits[0])):
        with_word = [row[k] for row, words in zip(logits, bag, strict=True) if words[k]]
        without = [row[k] for row, words in zip(logits, bag, strict=True) if not words[k]]
        total += sum(math.log1p(math.exp(-f)) for f in with_word) / max(len(with_word), 1)
        total += sum(math.log1p(math.exp(f)) for f in without) / max(len(without), 1)
    return total


def test_equals_double_loop():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 5, dtype=torch.float64, generator=generator)
    bag = torch.tensor([[1, 0, 1, 0, 1], [0, 0, 1, 0, 1], [1, 1, 1, 0, 0]] * 2, dtype=torch.float64)
    expected = naive(logits.tolist(), bag.tolist())
    assert one_vs_all_logistic(logits, bag).item() == pytest.approx(expected, abs=1e-12)


def test_gradient():
    logits = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    bag = torch.tensor([[1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda f: one_vs_all_logistic(f, bag), (logits,))


def test_a_rare_word_weighs_as_much_as_a_frequent_one():
    """Class balance: at logit 0 every word costs 2 ln 2, whatever its frequency."""
    bag = torch.zeros(100, 2, dtype=torch.float64)
    bag[0, 0] = 1
    bag[:90, 1] = 1
    assert one_vs_all_logistic(torch.zeros_like(bag), bag).item() == pytest.approx(4 * math.log(2), abs=1e-12)
