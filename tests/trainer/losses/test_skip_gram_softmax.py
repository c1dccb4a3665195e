import math

import pytest
import torch

from trainer.losses import skip_gram_softmax


def test_equals_double_loop():
    logits = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    context = torch.tensor([0, 4, 2, 2, 1, 3, 0])
    total = sum(math.log(sum(map(math.exp, row))) - row[word] for row, word in zip(logits.tolist(), context.tolist()))
    assert skip_gram_softmax(logits, context).item() == pytest.approx(total / 7, abs=1e-12)


def test_gradient():
    logits = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda rows: skip_gram_softmax(rows, torch.tensor([5, 0, 1, 1])), [logits])


def test_untrained_vectors_cost_the_logarithm_of_the_vocabulary():
    assert skip_gram_softmax(torch.zeros(3, 8).double(), torch.zeros(3).long()).item() == pytest.approx(math.log(8))
