import math

import pytest
import torch

from trainer.losses import multiclass_logistic


def naive(logits, bag) -> float:
    rows = []
    for row, words in zip(logits, bag, strict=True):
        if sum(words):
            normalizer = math.log(sum(map(math.exp, row)))
            rows.append(-sum((f - normalizer) / sum(words) for f, w in zip(row, words, strict=True) if w))
    return sum(rows) / len(rows)


def test_equals_double_loop_and_leaves_wordless_rows_out():
    logits = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    bag = torch.tensor([[1, 0, 1, 0, 1], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.float64)
    expected = naive(logits.tolist(), bag.tolist())
    assert multiclass_logistic(logits, bag).item() == pytest.approx(expected, abs=1e-12)


def test_gradient():
    logits = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    bag = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda f: multiclass_logistic(f, bag), (logits,))


def test_no_word_at_all_costs_nothing():
    assert multiclass_logistic(torch.ones(2, 3), torch.zeros(2, 3)).item() == 0
