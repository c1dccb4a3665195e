import math

import pytest
import torch

from trainer.losses import moco


def naive(query, key, queue, inv_tau) -> float:
    total = 0.0
    for v, own in zip(query.tolist(), key.tolist(), strict=True):
        scores = [inv_tau * sum(p * q for p, q in zip(v, other, strict=True)) for other in (own, *queue.tolist())]
        total += math.log(sum(map(math.exp, scores))) - scores[0]
    return total / len(query)


@pytest.mark.parametrize("n", [1, 5])
def test_equals_double_loop(unit_rows, n):
    rows = unit_rows(n, 4, 0), unit_rows(n, 4, 1), unit_rows(7, 4, 2)
    assert moco(*rows, 5.0).item() == pytest.approx(naive(*rows, 5.0), abs=1e-12)


def test_gradient_reaches_the_queries_alone(unit_rows):
    query, key, queue = (rows.requires_grad_() for rows in (unit_rows(5, 4, 0), unit_rows(5, 4, 1), unit_rows(7, 4, 2)))
    assert torch.autograd.gradcheck(lambda q: moco(q, key, queue, 5.0), (query,))
    moco(query, key, queue, 5.0).backward()
    assert key.grad is None
    assert queue.grad is None


def test_equal_cosines_count_the_queue_and_the_key(unit_rows):
    row = unit_rows(1, 4, 0)
    assert moco(row, row, row.repeat(9, 1), 5.0).item() == pytest.approx(math.log(10), abs=1e-12)
